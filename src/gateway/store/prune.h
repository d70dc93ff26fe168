/*
 * prune: retention, one short slice at a time, on the writer's thread between its transactions.
 */
#pragma once

#include "gateway/store/apply.h"
#include "gateway/store/call.h"
#include "gateway/store/store.h"

enum prune_phase { PRUNE_AUDIT, PRUNE_EXECS, PRUNE_SANDBOXES, PRUNE_SIZE, PRUNE_DONE };

struct prune {
    struct store_call call;
    store_done_fn done;
    struct store_retention retention;
    enum prune_phase phase;
    uint64_t removed; /* rows, so far */
};

/* One slice, in the open transaction; `phase` is PRUNE_DONE at the end. */
_must_use_ int prune_slice(struct prune *prune, struct applier *applier, struct error *err);
