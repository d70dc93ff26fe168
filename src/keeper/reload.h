/*
 * reload: which settings the gateway was told, and which it has answered to.
 *
 * AS ROOT. Generations only; the daemon sends and hears. The first settings of a gateway are answered by READY, later
 * ones by RELOADED, each once and in their order. A signal that comes while a reload is under way is kept for
 * afterwards: what it was sent for may have been written after the file was read.
 */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

enum { RELOAD_LIMIT_MS = 15000 };

struct reload {
    bool is_wanted;    /* one is to start when none is under way */
    uint64_t told;     /* the newest generation that this gateway was sent; 0: none */
    uint64_t heard;    /* the newest that it has answered to; 0: it is not ready */
    uint64_t until_ns; /* when nobody waits for its answer any longer; 0: nobody does */
};

void reload_told(struct reload *reload, uint64_t generation, uint64_t now_ns);

/* The gateway has gone; the next is told anew. */
void reload_forget(struct reload *reload);

/* Whether the time for an answer is over; said once. The answer may still come. */
_must_use_ bool reload_is_late(struct reload *reload, uint64_t now_ns);

/* READY came. 0, or -EBADMSG for what was not told, or not for the first time. */
_must_use_ int reload_ready(struct reload *reload, uint64_t generation);

/* RELOADED came. 1 when it was for the newest, 0 for an older one, -EBADMSG for what was not told or is answered. */
_must_use_ int reload_answered(struct reload *reload, uint64_t generation);
