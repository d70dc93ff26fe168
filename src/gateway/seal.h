/*
 * seal: text that lies in the database and that only this daemon can read: the environment of sandboxes, where callers
 * put secrets.
 *
 * The key is the keeper's. It is made when the daemon starts, handed to each of its gateways, never written anywhere,
 * and gone with the daemon, just as the sandboxes are whose settings it sealed. So a copy of the database, or of the
 * whole state folder, tells nothing. Pure but for the nonce.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { SEAL_KEY_BYTES = 32 };

struct seal {
    uint8_t key[SEAL_KEY_BYTES];
};

/* Base64 of what `name` alone opens again; the caller frees it. NULL: no memory. */
char *seal_close(const struct seal *seal, const char *name, const void *text, size_t length);

/* What was sealed for this name, with a NUL behind it; the caller wipes and frees it. NULL: it is not that. */
char *seal_open(const struct seal *seal, const char *name, const char *sealed, size_t *ret_length);
