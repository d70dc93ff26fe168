/*
 * verify: does the audit log hang together, from its anchor to its head? On the reader's thread, slice by slice.
 *
 * Finds a record that was changed, is missing or is not where it was written, at either end too, and output that is not
 * what its exec's record says.
 */
#pragma once

#include "gateway/store/chain.h"
#include "gateway/store/database.h"

struct verify {
    bool started;
    struct chain_link at; /* the last record that was found to be right */
    uint64_t first;
    uint64_t checked;
    bool broken;
    uint64_t bad;         /* the record, if it is */
    struct error problem; /* what is wrong with it */
};

/* 0: done, `broken` says with which result; 1: there is more; or a negative errno. */
_must_use_ int verify_slice(struct verify *verify, struct database *database, struct error *err);
