/*
 * history: execs that have ended and that the engine no longer knows, because it was started again since or because it
 * keeps only so many results. The store still has them.
 */
#pragma once

#include "gateway/store/records.h"
#include "gateway/surface/call.h"

/* What is left of a row once its callback has returned: the numbers, and whose it was. */
struct history {
    struct store_exec row; /* its strings are gone */
    char sandbox[ENGINE_ID_SIZE];
};

/*
 * Look for the exec that the path names. `found` is called with what there is, if the caller may see it; otherwise 404
 * was answered. Fills in call->exec and call->sandbox.
 */
void history_find(struct call *call, struct history *history, call_then found);

/* As run_write_figures(), of what was recorded. */
void history_write_figures(struct writer *writer, const struct history *history);

/* GET /api/v1/execs/{eid} of one that only the store has. */
void history_answer(struct call *call);
