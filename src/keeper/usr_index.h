/*
 * usr_index: every program below /usr, and every folder as it was when they were looked for.
 *
 * AS ROOT, in a helper. Kept in a file, because looking takes seconds where nothing is cached. Whether it still holds
 * is found by looking at the folders' times alone: what is added, removed or renamed changes its folder's.
 */
#pragma once

#include "base/buf.h"

#include <stdint.h>

struct usr_index {
    uint64_t generation;  /* another for each time it was made */
    struct buf data;      /* the file */
    const char *programs; /* paths relative to /usr, each ending in NUL, up to the end of the data */
    const char *end;
};

void usr_index_release(struct usr_index *index);

/* -ENOENT when there is none, or /usr has changed since. */
_must_use_ int usr_index_load(int folder, int usr_fd, struct usr_index *ret_index);

/*
 * Just its generation, without looking at every folder again when that was done a few seconds ago: a sandbox that lives
 * for longer would not see it either. -ENOENT as above.
 */
_must_use_ int usr_index_current(int folder, int usr_fd, uint64_t *ret_generation);

/* Look for all programs and keep what was found for usr_index_load(). */
_must_use_ int usr_index_make(int folder, int usr_fd, struct error *err);
