/*
 * recorded: what the ledger has recorded, turned into settings again.
 *
 * Used by adopt.c, when a new gateway takes over what an earlier one had made. -EINVAL: it is not what we wrote.
 */
#pragma once

#include "gateway/engine/recorder.h"
#include "gateway/seal.h"
#include "gateway/store/records.h"

#include <jansson.h>

enum { RECORDED_ENV_MAX = 4096 };

/* Settings as they were recorded, with the environment opened; views of `root`, which is the caller's to json_decref().
 */
struct recorded_sandbox {
    struct sandbox_settings settings;
    uint32_t features;
    json_t *root;
    const char *env[RECORDED_ENV_MAX + 1];
};

_must_use_ int recorded_read_sandbox(const struct seal *seal, const struct store_sandbox *row,
                                     struct recorded_sandbox *ret_sandbox);

/* It outlives the row. */
struct recorded_exec {
    struct exec_settings settings;
    const char *owner;
    uint64_t channel;
    uint64_t started_ms;
    json_t *root;
};

_must_use_ int recorded_read_exec(const struct store_exec *row, struct recorded_exec *ret_exec);
