/*
 * recover: what an earlier process spooled, put into the database. At the start, before the store's threads run.
 */
#pragma once

#include "gateway/store/apply.h"

/*
 * The folder is made if it is not there. A spool that is not whole, or whose exec is not recorded, is removed: all that
 * was ever said of its output is in the database.
 */
_must_use_ int recover_spools(struct applier *applier, const char *folder, struct error *err);
