/*
 * helper: a short-lived process of the keeper's for what would keep its only thread too long: making a disk image,
 * letting go of one.
 *
 * AS ROOT. It shares nothing with the keeper but a socket, over which it may say one message, and ends with it.
 */
#pragma once

#include "base/error.h"

struct helper {
    int socket; /* readable when it has spoken or ended */
    int pidfd;
};

#define HELPER_EMPTY ((struct helper){-1, -1})

/*
 * Run work(socket, fd, context) in a process of its own, which then exits. Of the caller's descriptors it has only 0 to
 * 2 and a copy of `fd`: no lock outlives the keeper in it, and nobody waits for the end of a link that it holds.
 */
_must_use_ int helper_start(struct helper *ret_helper, void (*work)(int socket, int fd, void *context), int fd,
                            void *context, struct error *err);

/* End it, should it still run, and reap it. */
void helper_release(struct helper *helper);
