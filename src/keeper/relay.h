/*
 * relay: what a service says on its standard error, handed on to the keeper's.
 *
 * AS ROOT. A service gets the write end of a pipe and never the keeper's own standard error, which may be a terminal
 * to read from, a stream to shut down or a file to rewrite. Its bytes are taken to be hostile: every line starts with
 * who said it, so that none passes for the keeper's own; lines are cut at RELAY_LINE_MAX bytes, what is neither text
 * nor a tab is escaped, and of one that floods the log the rest is counted only. In a log of JSON a line is an object
 * with `source` and `line`: what was said is a text in it, whatever it looks like. What is held back is wiped: the
 * first credentials come this way.
 */
#pragma once

#include "base/error.h"
#include "base/log.h"

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { RELAY_LINE_MAX = 4096 };

struct relay {
    int fd; /* the read end, not blocking; -1: none */
    int to_fd;
    const char *source;     /* who speaks */
    enum log_format format; /* the owner's to set, at any time between two calls */
    uint64_t room;          /* bytes that may still be handed on; one relay's, however many services it had */
    uint64_t filled_ns;     /* when that grew last */
    uint64_t left_out;      /* lines, since one was handed on */
    bool is_stuck;          /* nobody reads `to_fd`: wait until it can be written to */
    size_t length;
    char line[RELAY_LINE_MAX];
    uint8_t rest[4]; /* the beginning of a character */
    size_t rest_length;
};

#define RELAY_EMPTY ((struct relay){.fd = -1})

/* Until relay_finish(); `source` is a constant. The write end is the caller's. */
_must_use_ int relay_open(struct relay *relay, const char *source, int to_fd, int *ret_write_fd, struct error *err);

/* What relay_some() waits for. */
struct pollfd relay_wait(const struct relay *relay);

/* A little of what there is, without waiting. At the end of it the read end closes. */
void relay_some(struct relay *relay);

/* The service has ended: what it has left in the pipe, within a moment, and close. */
void relay_finish(struct relay *relay);
