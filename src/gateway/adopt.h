/*
 * adopt: what an earlier gateway left: sandboxes and execs that still live are taken over, those that ended while
 * nobody looked are recorded as ended.
 *
 * Used once by gateway.c, before anybody is served: it runs the loop until the store has answered.
 */
#pragma once

#include "gateway/engine/engine.h"
#include "gateway/handover.h"
#include "gateway/ledger.h"

struct adoption {
    uv_loop_t *loop;
    struct store *store;
    struct engine *engine;
    struct ledger *ledger;
    struct handover *handover;
    size_t sandboxes; /* that were taken over */
    size_t execs;
    size_t lost; /* sandboxes that had ended */
};

_must_use_ int adopt_all(struct adoption *adoption, struct error *err);
