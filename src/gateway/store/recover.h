/*
 * recover: what an earlier process spooled, put into the database. At the start, before the store's threads run.
 */
#pragma once

#include "gateway/store/apply.h"
#include "gateway/store/schema.h"

struct recovery {
    struct applier *applier;
    uint64_t boot;
    char folder[SCHEMA_PATH_MAX + 8];
    uint64_t reserve_bytes; /* of the disk, for everything else: a part of it is enough to start with */
    uint64_t copied_bytes;  /* that lie in the log and are going to be in the database as well */
    uint64_t left_bytes;    /* of the files that are still there */
    uint64_t lost;          /* spools that are not in the database */
};

/*
 * Before the first write to the database: without space for that, spools are removed, the largest first. The folder is
 * made if it is not there.
 */
_must_use_ int recover_space(struct recovery *recovery, struct error *err);

/*
 * A spool that is not whole, whose exec is not recorded, or that there is no space for is removed; one that can't be
 * read for another reason stays for the next time.
 */
_must_use_ int recover_spools(struct recovery *recovery, struct error *err);
