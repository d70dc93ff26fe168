/*
 * ledger: the engine's recorder, bound to the store. recorded.h turns what was recorded into settings again.
 *
 * Used by gateway.c and adopt.c, in the loop's thread. Sandboxes and execs are known to it from their first record to
 * their last, so that the audit log can say whose exec ended, and the store be told whether a row is new.
 */
#pragma once

#include "gateway/engine/recorder.h"
#include "gateway/seal.h"
#include "gateway/store/records.h"
#include "gateway/store/store.h"

struct ledger;

/* `seal` must outlive it. */
_must_use_ int ledger_new(struct store *store, uv_loop_t *loop, const struct seal *seal, struct ledger **ret_ledger,
                          struct error *err);

/* After the engine. NULL is legal. */
void ledger_free(struct ledger *ledger);

const struct recorder *ledger_recorder(const struct ledger *ledger);

/* Features of a sandbox are asked of its engine. */
void ledger_set_engine(struct ledger *ledger, struct engine *engine);

/* One that an earlier gateway recorded. */
_must_use_ int ledger_know_sandbox(struct ledger *ledger, const char *id);
_must_use_ int ledger_know_exec(struct ledger *ledger, const char *id, const char *sandbox, const char *owner);

void ledger_forget_exec(struct ledger *ledger, const char *id);

/* What the environments of sandboxes are sealed with. */
const struct seal *ledger_seal(const struct ledger *ledger);
