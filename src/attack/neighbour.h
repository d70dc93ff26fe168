/*
 * neighbour: a second sandbox that lives through all attacks. It answers questions, and the time that takes is
 * measured all along; it holds what the attacks between two sandboxes are after, and says when something happened
 * to it.
 */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { NEIGHBOUR_TIMES_MAX = 4096, NEIGHBOUR_HARM_SIZE = 200 };

struct neighbour {
    const char *name; /* for people */
    pid_t pid;        /* of its `hutch run` */
    int to_fd;
    int from_fd;
    uint64_t usual_ns; /* what an answer takes when nothing else goes on: the median */
    uint64_t asked_ns; /* 0: no question is open */
    uint64_t next_ns;  /* when to ask again */
    uint64_t times_ns[NEIGHBOUR_TIMES_MAX];
    size_t count;
    char answer[NEIGHBOUR_HARM_SIZE];
    size_t answer_length;
    char harm[NEIGHBOUR_HARM_SIZE]; /* "": none */
};

#define NEIGHBOUR_EMPTY ((struct neighbour){.to_fd = -1, .from_fd = -1})

/* `argv` runs `hutch-attack --neighbour` in a sandbox, or whatever answers as that does. Learns its usual time. */
_must_use_ int neighbour_start(struct neighbour *neighbour, const char *name, const char *const *argv,
                               const char *const *envp, struct error *err);
void neighbour_end(struct neighbour *neighbour);

/* From here on times are those of another attack. */
void neighbour_begin(struct neighbour *neighbour);

/* Called from a loop that polls from_fd: asks when it is time to, and takes answers. */
void neighbour_step(struct neighbour *neighbour);
int neighbour_wait_ms(const struct neighbour *neighbour);

/* Wait for an open answer; false, with the reason in harm, when it fared worse than usual. */
bool neighbour_is_well(struct neighbour *neighbour);
