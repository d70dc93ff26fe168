/*
 * door: one keep-alive connection to a daemon, as a client of its REST door has it. Blocking, one call at a time.
 */
#pragma once

#include "base/buf.h"

struct door {
    int fd;
    const char *key;
    struct buf in;   /* what has come and is not used yet */
    struct buf body; /* of the last answer */
    int status;      /* of the last answer */
};

_must_use_ int door_open(struct door *door, const char *port, const char *key, struct error *err);
void door_close(struct door *door);

/* One call; `json` may be NULL. Anything but `status` is an error that says what came instead. */
_must_use_ int door_call(struct door *door, const char *method, const char *path, const char *json, int status,
                         struct error *err);

/* GET raw bytes and only count them. */
_must_use_ int door_count(struct door *door, const char *path, uint64_t *ret_bytes, struct error *err);

/* The string behind "NAME": in the last answer's body, at most `size` - 1 bytes of it. */
_must_use_ int door_word(const struct door *door, const char *name, char *word, size_t size, struct error *err);
