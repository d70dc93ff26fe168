/*
 * batch: several writes that are recorded together or not at all.
 *
 * Made, filled and submitted on the loop's thread. Everything is copied into memory of the batch's own, at most
 * BATCH_BYTES_MAX. Filling never fails: what did not fit is told by the outcome, as everything else is. A batch is
 * submitted or freed, once.
 */
#pragma once

#include "gateway/store/records.h"
#include "gateway/store/store.h"

enum { BATCH_BYTES_MAX = 8 << 20 };

struct batch;

/* NULL: no memory. */
struct batch *batch_new(struct store *store);
void batch_free(struct batch *batch);

/*
 * Record it; `done` may be NULL. Takes the batch. -ENOBUFS in the outcome: too much is waiting, or too large; -EEXIST,
 * -ENOENT: something is there already, or is not; -EIO, -ENOSPC and others: recording is not possible. The call is of
 * use to store_cancel() only.
 */
struct store_call *batch_submit(struct batch *batch, store_done_fn done, void *data);

void batch_add_sandbox(struct batch *batch, const struct store_sandbox *sandbox);

/* Status, settings, reason, agent and all times but the first, of the one with this id; all others stay. */
void batch_set_sandbox(struct batch *batch, const struct store_sandbox *sandbox);
void batch_touch_sandbox(struct batch *batch, const char *id, int64_t used_ms);

void batch_add_exec(struct batch *batch, const struct store_exec *exec);

/* Everything from `state` on but `started_ms` and `deadline_ms`, of the one with this id. */
void batch_set_exec(struct batch *batch, const struct store_exec *exec);
void batch_add_output(struct batch *batch, const struct store_output *output);

void batch_add_audit(struct batch *batch, const struct store_audit *audit);

/* Through credentials.h, which knows of them in memory too. */
void batch_add_key(struct batch *batch, const struct store_key *key);
void batch_revoke_key(struct batch *batch, const char *id, int64_t revoked_ms);
void batch_touch_key(struct batch *batch, const char *id, int64_t used_ms);
void batch_set_password(struct batch *batch, const char *name, const char *hash);

/* NULL as the value removes it. */
void batch_set_setting(struct batch *batch, const char *name, const char *value);
