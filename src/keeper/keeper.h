/*
 * keeper: the one way to make a sandbox.
 *
 * AS ROOT. A keeper holds a conversation with one client over SOCK_SEQPACKET: the gateway in a daemon, the command
 * line in `hutch run`, where both sit in the same process on a socket pair. The client is taken to be compromised: a
 * message that its state does not permit ends the conversation.
 *
 * One thread, no blocking but for the clone of a sandbox. The owner polls keeper_fd() and calls keeper_dispatch() when
 * it is readable, and after keeper_wait_ms() at the latest.
 */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

struct keeper;

struct keeper_options {
    const char *state; /* folder for layers; made when missing */
    int init_fd;       /* the program that becomes PID 1; stays the caller's */
    int client_fd;     /* the keeper's end of the conversation; stays the caller's */
    int zygote_fd;     /* from zygote_start(); becomes the keeper's */
    int zygote_pidfd;  /* the same */
    bool single;       /* for one sandbox, see keeper_may_leave() */
    uint32_t id_first;
    uint32_t id_last;
};

enum { KEEPER_ID_FIRST = 0x10000000, KEEPER_ID_LAST = 0x6fffffff };

_must_use_ int keeper_new(const struct keeper_options *options, struct keeper **ret_keeper, struct error *err);

/* Ends and removes every sandbox that is left, then itself. */
void keeper_free(struct keeper *keeper);

/*
 * For a caller whose only sandbox has done its work and who ends now. When this is true it may exit without
 * keeper_free(): the zygote ends and removes the sandbox, and holds what was held until nothing is left.
 */
bool keeper_may_leave(struct keeper *keeper);

int keeper_fd(const struct keeper *keeper);
int keeper_wait_ms(const struct keeper *keeper);

/* 1 to go on, 0 when the client has gone, -EBADMSG when it sent what is not permitted, or another -errno. */
_must_use_ int keeper_dispatch(struct keeper *keeper, struct error *err);
