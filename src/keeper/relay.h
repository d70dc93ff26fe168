/*
 * relay: what a service says on its standard error, handed on to the keeper's.
 *
 * AS ROOT. A service gets the write end of a pipe and never the keeper's own standard error, which may be a terminal
 * to read from, a stream to shut down or a file to rewrite. Its bytes are taken to be hostile: lines are cut at
 * RELAY_LINE_MAX bytes, and what is neither text nor a tab is escaped. What is held back is wiped: the first
 * credentials come this way.
 */
#pragma once

#include "base/error.h"

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { RELAY_LINE_MAX = 4096 };

struct relay {
    int fd; /* the read end, not blocking; -1: none */
    int to_fd;
    bool is_stuck; /* nobody reads `to_fd`: wait until it can be written to */
    size_t length;
    char line[RELAY_LINE_MAX];
    uint8_t rest[4]; /* the beginning of a character */
    size_t rest_length;
};

#define RELAY_EMPTY ((struct relay){.fd = -1})

/* Until relay_finish(). The write end is the caller's. */
_must_use_ int relay_open(struct relay *relay, int to_fd, int *ret_write_fd, struct error *err);

/* What relay_some() waits for. */
struct pollfd relay_wait(const struct relay *relay);

/* A little of what there is, without waiting. At the end of it the read end closes. */
void relay_some(struct relay *relay);

/* The service has ended: what it has left in the pipe, within a moment, and close. */
void relay_finish(struct relay *relay);
