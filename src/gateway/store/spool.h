/*
 * spool: where the output of an exec goes that prints faster than a database takes it.
 *
 * Used on the loop's thread; a thread of the store's does the writing. What was answered with 0 survives the end of
 * every process of Hutch's: the next store_open() finds it and puts what is still kept of it into the database. Until
 * then only its writer knows of it: who ends a spool has put into the database what is to stay. It is not durable in
 * the sense of store.h; with STORE_SYNC_ALWAYS there are no spools.
 */
#pragma once

#include "gateway/store/records.h"
#include "gateway/store/store.h"

struct spool;

/* For the newest `cap` bytes of this exec's output. The file is made with the first write. NULL: none can be had. */
struct spool *spool_new(struct store *store, const char *exec, uint64_t cap);

/*
 * Pieces that follow one another, at most SPOOL_PIECES_MAX and SPOOL_SLACK bytes (spool_file.h), and one write at a
 * time. Their data is the caller's and must stay where it is until `done`. False: no memory, and `done` is not called.
 * After an error the spool is of no use any more, but for what was written before.
 */
_must_use_ bool spool_write(struct spool *spool, const struct store_output *pieces, size_t count, store_done_fn done,
                            void *data);

/* `remove`: what it holds is in the database, or not wanted. The data of a write must stay until that is answered. */
void spool_free(struct spool *spool, bool remove);
