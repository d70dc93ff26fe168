/*
 * supervisor: one gateway after the other, each started when the last has ended, later and later while they fail.
 *
 * AS ROOT. Holds the process and the keeper's end of the conversation; the daemon says when something happened. The
 * times between starts: 0.1 s, then twice as long up to 10 s, until one was ready for a minute.
 */
#pragma once

#include "keeper/service.h"

#include <stdint.h>

enum {
    SUPERVISOR_FIRST_MS = 100,
    SUPERVISOR_LONGEST_MS = 10000,
    SUPERVISOR_HEALTHY_MS = 60000,
    SUPERVISOR_TRIES = 5, /* of a daemon that never was ready */
};

struct supervisor {
    int pidfd;         /* -1 while none runs */
    int socket;        /* the keeper's end; -1 with it */
    bool was_ready;    /* one of them */
    uint64_t ready_ns; /* since when this one is; 0: it is not */
    uint64_t start_ns; /* when the next is to start; 0: not waiting */
    uint64_t pause_ms; /* before the next start but one */
    unsigned tries;    /* that never were ready, since one was */
};

#define SUPERVISOR_EMPTY ((struct supervisor){.pidfd = -1, .socket = -1, .pause_ms = SUPERVISOR_FIRST_MS})

/* Start one; `service` is all but its descriptor 3, which is the other end of the conversation. */
_must_use_ int supervisor_start(struct supervisor *supervisor, struct service *service, struct error *err);

void supervisor_ready(struct supervisor *supervisor, uint64_t now_ns);

/* It has ended (by itself), or has to: reap it and say when the next one starts. The wait status. */
int supervisor_lost(struct supervisor *supervisor, bool by_itself, uint64_t now_ns);

/* Close the conversation, wait so long for its end, kill it. */
void supervisor_stop(struct supervisor *supervisor, int grace_ms);
