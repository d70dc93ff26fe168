/*
 * spool_file: the newest output of one running exec, in a file of a fixed size.
 *
 * Used by the store, on the spooler's thread and at the start. Blocking. Everything is written with pwrite() and in an
 * order that leaves the file whole whenever this process ends: bytes first, then the runs that say whose they are, then
 * the header that says how far both reach. It is not synced: of what a machine that went down left, nothing is
 * believed.
 */
#pragma once

#include "base/error.h"
#include "gateway/store/records.h"

enum {
    SPOOL_SLACK = 1 << 20, /* at most so many bytes in one write: two windows of init's */
    SPOOL_RUNS_KEPT = 16384,
    SPOOL_RUNS_ROOM = 2 * SPOOL_RUNS_KEPT, /* so that new ones never lie where the header still points */
    SPOOL_PIECES_MAX = 64,                 /* in one write */
};

struct spool_file {
    int fd; /* -1: there is none */
    uint64_t cap;
    uint64_t boot;  /* which start of the machine it was made in */
    uint64_t first; /* position of the oldest byte */
    uint64_t next;
    uint64_t run_first; /* runs are counted from 0 */
    uint64_t run_next;
    uint8_t stream; /* of the last run */
};

/* What one of this cap takes of the disk. */
uint64_t spool_file_size(uint64_t cap);

/* All of its space is taken at once, so that what comes later can't fail for want of it; or there is none. */
_must_use_ int spool_file_make(struct spool_file *file, const char *path, uint64_t cap, uint64_t boot,
                               struct error *err);

/* Pieces that follow one another and what is there already, SPOOL_SLACK bytes at most. The newest `cap` are kept. */
_must_use_ int spool_file_write(struct spool_file *file, const struct store_output *pieces, size_t count,
                                struct error *err);

/* One that an earlier process left. -EBADMSG: it is not whole, or of another start of the machine. */
_must_use_ int spool_file_open(struct spool_file *file, const char *path, uint64_t boot, struct error *err);

/* What lies at `position` or after it, at most `size` bytes of one stream: 1, or 0 when there is no more. */
_must_use_ int spool_file_read(struct spool_file *file, uint64_t position, void *buffer, size_t size,
                               struct store_output *ret_output, struct error *err);
void spool_file_close(struct spool_file *file);
