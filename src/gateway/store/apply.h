/*
 * apply: the writes of a batch, put into the open transaction. On the writer's thread.
 */
#pragma once

#include "gateway/store/chain.h"
#include "gateway/store/database.h"
#include "gateway/store/op.h"

struct applier {
    struct database *database;
    struct chain_link head;    /* of the audit log, as the open transaction has it */
    struct chain_link indexed; /* so far can records be found by name; those after it are looked at one by one */
    uint64_t output_keep_bytes;
};

/* Where the log and its index end, from the database. */
_must_use_ int apply_load_chain(struct applier *applier, struct error *err);

/* -EEXIST, -ENOENT: this batch can't be recorded, others can. The transaction then has a part of it in it. */
_must_use_ int apply_batch(struct applier *applier, struct batch *batch, struct error *err);

/* A piece of output by itself, and where the next one would start. -ENOENT: no such exec. */
_must_use_ int apply_output(struct applier *applier, const struct store_output *output, struct error *err);
_must_use_ int apply_output_end(struct applier *applier, const char *exec, uint64_t *ret_end, struct error *err);

/* Before the commit, when the log has grown. */
_must_use_ int apply_save_head(struct applier *applier, struct error *err);

/* Put so many more records into the index. */
_must_use_ int apply_index(struct applier *applier, uint64_t count, struct error *err);
