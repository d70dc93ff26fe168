/*
 * address: IP addresses as values, and which of them a sandbox must never be led to. Pure.
 */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

enum { ADDRESS_TEXT_SIZE = 46 };

struct address {
    uint8_t family; /* 4 or 6 */
    uint8_t bytes[16];
};

/*
 * As it is written in full: four decimal numbers, or what RFC 4291 has. Not 0x7f.1 and its like. ::ffff:a.b.c.d is the
 * IPv4 address that it means. 0 or -EINVAL.
 */
_must_use_ int address_parse(const char *text, size_t length, struct address *ret_address);
void address_format(const struct address *address, char text[ADDRESS_TEXT_SIZE]);
bool address_equal(const struct address *a, const struct address *b);

/* An IPv4 address that came as ::ffff:a.b.c.d is one. -EINVAL for any other family. */
_must_use_ int address_from_socket(const struct sockaddr_storage *from, struct address *ret_address,
                                   uint16_t *ret_port);
socklen_t address_to_socket(const struct address *address, uint16_t port, struct sockaddr_storage *ret_to);

/* Why nobody is led there ("a private address"), or NULL: it is an ordinary one. */
const char *address_vet(const struct address *address);

/* A 6to4 or NAT64 address is another way to an IPv4 address: which one? */
bool address_unwrap(const struct address *address, struct address *ret_inner);

/* This machine itself, or the sandbox, depending on who connects there: no rule can name it. */
bool address_is_loopback(const struct address *address);
