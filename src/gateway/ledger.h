/*
 * ledger: the engine's recorder, bound to the store; and what was recorded turned into settings again.
 *
 * Used by gateway.c and adopt.c, in the loop's thread. Sandboxes and execs are known to it from their first record to
 * their last, so that the audit log can say whose exec ended, and the store be told whether a row is new.
 */
#pragma once

#include "gateway/engine/recorder.h"
#include "gateway/seal.h"
#include "gateway/store/records.h"
#include "gateway/store/store.h"

#include <jansson.h>

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

enum { LEDGER_ENV_MAX = 4096 };

/* Settings as they were recorded, with the environment opened; views of `root`, which is the caller's to json_decref().
 */
struct ledger_sandbox {
    struct sandbox_settings settings;
    uint32_t features;
    json_t *root;
    const char *env[LEDGER_ENV_MAX + 1];
};

_must_use_ int ledger_read_sandbox(const struct ledger *ledger, const struct store_sandbox *row,
                                   struct ledger_sandbox *ret_sandbox);

/* It outlives the row. */
struct ledger_exec {
    struct exec_settings settings;
    const char *owner;
    uint64_t channel;
    uint64_t started_ms;
    json_t *root;
};

_must_use_ int ledger_read_exec(const struct store_exec *row, struct ledger_exec *ret_exec);
