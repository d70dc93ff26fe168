/*
 * state: which state of a sandbox an event leads to. One table; pure.
 */
#pragma once

#include "gateway/engine/sandbox.h"

enum state_event {
    STATE_MADE,    /* init has said HELLO */
    STATE_REFUSED, /* the keeper could not make it */
    STATE_FROZEN,
    STATE_THAWED,
    STATE_HALTED, /* its commands were killed, new ones are refused */
    STATE_RESTARTED,
    STATE_ENDED,    /* it is to end, for whatever reason */
    STATE_VANISHED, /* nothing is left of it */
    STATE_EVENTS,
};

/* -EINVAL when this can't happen in this state; then nothing changes. */
_must_use_ int state_next(enum sandbox_state state, enum state_event event, enum sandbox_state *ret_next);

/* Is there, or is there going to be, something that runs? */
bool state_is_live(enum sandbox_state state);
