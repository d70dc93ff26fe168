/*
 * launch: one program, `hutch run` or a control, from start to end, while the neighbour is asked how it fares.
 */
#pragma once

#include "attack/neighbour.h"
#include "attack/process.h"
#include "base/buf.h"

struct launch {
    struct process process; /* its streams are made here */
    unsigned limit_ms;
    bool count_only; /* output is counted, not kept */
    struct neighbour *neighbour;
};

struct outcome {
    int status; /* as shells tell it */
    bool timed_out;
    struct buf out;
    struct buf err;
    uint64_t out_bytes; /* all there were */
};

void outcome_release(struct outcome *outcome);

_must_use_ int launch_run(const struct launch *launch, struct outcome *ret_outcome, struct error *err);
