/*
 * The format (https://www.sqlite.org/fileformat2.html, section 4): a header of 32 bytes at 0, then frames of a header
 * of 24 bytes and a page. Bytes 4 to 7 of a frame's header are not 0 in the last frame of a transaction.
 *
 * SQLite may go back and write frames again, after a rollback or when a transaction was too large for its cache; then
 * it also writes headers alone, to mend their checksums. `end` is where nothing has been written yet: only there is
 * anything gathered.
 */
#include "gateway/store/logfile.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    LOG_HEADER_BYTES = 32,
    FRAME_HEADER_BYTES = 24,
    GATHERED_MAX = 120 << 10, /* SQLite's own layer writes at most 131,071 bytes at once (seekAndWriteFd) */
    NAME_MAX_LENGTH = 40,
};

struct logfile {
    sqlite3_vfs layer; /* first: SQLite gives us this */
    sqlite3_vfs *system;
    char name[NAME_MAX_LENGTH];
};

struct log {
    sqlite3_file file; /* first: SQLite gives us this */
    sqlite3_file *system;
    sqlite3_int64 end;
    sqlite3_int64 start; /* where what is gathered belongs */
    size_t gathered;
    bool is_last; /* the frame that is being gathered ends the transaction */
    uint8_t *data;
};

static int flush(struct log *log)
{
    size_t length = log->gathered;

    log->gathered = 0;
    log->is_last = false;
    return length > 0 ? log->system->pMethods->xWrite(log->system, log->data, (int)length, log->start) : SQLITE_OK;
}

static int write_through(struct log *log, const void *data, int length, sqlite3_int64 offset)
{
    int r = flush(log);

    if (offset == 0)
        log->end = LOG_HEADER_BYTES; /* the log starts anew */
    else if (offset + length > log->end)
        log->end = offset + length;
    return r == SQLITE_OK ? log->system->pMethods->xWrite(log->system, data, length, offset) : r;
}

static bool is_last_frame(const uint8_t *header)
{
    return (header[4] | header[5] | header[6] | header[7]) != 0;
}

static int log_write(sqlite3_file *file, const void *data, int length, sqlite3_int64 offset)
{
    struct log *log = (struct log *)file;
    bool is_header = length == FRAME_HEADER_BYTES;
    bool is_next = log->gathered > 0 && offset == log->start + (sqlite3_int64)log->gathered;

    if (offset < log->end || offset < LOG_HEADER_BYTES || (!is_header && !is_next))
        return write_through(log, data, length, offset);
    if (!is_next || log->gathered + (size_t)length > GATHERED_MAX) {
        int r = flush(log);
        if (r != SQLITE_OK)
            return r;
        if (!is_header)
            return write_through(log, data, length, offset);
        log->start = offset;
    }
    if (is_header)
        log->is_last = is_last_frame(data);
    memcpy(log->data + log->gathered, data, (size_t)length);
    log->gathered += (size_t)length;
    log->end = offset + length;
    return !is_header && log->is_last ? flush(log) : SQLITE_OK;
}

static int log_read(sqlite3_file *file, void *data, int length, sqlite3_int64 offset)
{
    struct log *log = (struct log *)file;
    int r = flush(log);

    return r == SQLITE_OK ? log->system->pMethods->xRead(log->system, data, length, offset) : r;
}

static int log_truncate(sqlite3_file *file, sqlite3_int64 size)
{
    struct log *log = (struct log *)file;
    int r = flush(log);

    log->end = size < log->end ? size : log->end;
    return r == SQLITE_OK ? log->system->pMethods->xTruncate(log->system, size) : r;
}

static int log_sync(sqlite3_file *file, int flags)
{
    struct log *log = (struct log *)file;
    int r = flush(log);

    return r == SQLITE_OK ? log->system->pMethods->xSync(log->system, flags) : r;
}

static int log_size(sqlite3_file *file, sqlite3_int64 *ret_size)
{
    struct log *log = (struct log *)file;
    int r = flush(log);

    return r == SQLITE_OK ? log->system->pMethods->xFileSize(log->system, ret_size) : r;
}

static int log_close(sqlite3_file *file)
{
    struct log *log = (struct log *)file;
    int r = flush(log);
    int closed = log->system->pMethods->xClose(log->system);

    free(log->data);
    return r != SQLITE_OK ? r : closed;
}

static int log_control(sqlite3_file *file, int operation, void *argument)
{
    struct log *log = (struct log *)file;

    return log->system->pMethods->xFileControl(log->system, operation, argument);
}

static int log_sector_size(sqlite3_file *file)
{
    struct log *log = (struct log *)file;

    return log->system->pMethods->xSectorSize(log->system);
}

static int log_characteristics(sqlite3_file *file)
{
    struct log *log = (struct log *)file;

    return log->system->pMethods->xDeviceCharacteristics(log->system);
}

/* A log is not locked; the database beside it is. */
static int log_lock(sqlite3_file *file, int level)
{
    (void)file;
    (void)level;
    return SQLITE_OK;
}

static int log_check_lock(sqlite3_file *file, int *ret_locked)
{
    (void)file;
    *ret_locked = 0;
    return SQLITE_OK;
}

static const sqlite3_io_methods log_methods = {
    .iVersion = 1,
    .xClose = log_close,
    .xRead = log_read,
    .xWrite = log_write,
    .xTruncate = log_truncate,
    .xSync = log_sync,
    .xFileSize = log_size,
    .xLock = log_lock,
    .xUnlock = log_lock,
    .xCheckReservedLock = log_check_lock,
    .xFileControl = log_control,
    .xSectorSize = log_sector_size,
    .xDeviceCharacteristics = log_characteristics,
};

static int open_file(sqlite3_vfs *layer, const char *name, sqlite3_file *file, int flags, int *ret_flags)
{
    struct logfile *logfile = (struct logfile *)layer;
    struct log *log = (struct log *)file;

    if ((flags & SQLITE_OPEN_WAL) == 0)
        return logfile->system->xOpen(logfile->system, name, file, flags, ret_flags);
    *log = (struct log){.system = (sqlite3_file *)(void *)(log + 1), .data = malloc(GATHERED_MAX)};
    if (log->data == NULL)
        return SQLITE_NOMEM;
    int r = logfile->system->xOpen(logfile->system, name, log->system, flags, ret_flags);
    /* What is there already may be valid: nothing of it is ours to append to before we know where it ends. */
    if (r == SQLITE_OK)
        r = log->system->pMethods->xFileSize(log->system, &log->end);
    if (r == SQLITE_OK) {
        log->file.pMethods = &log_methods;
        return r;
    }
    if (log->system->pMethods != NULL)
        (void)log->system->pMethods->xClose(log->system);
    free(log->data);
    return r;
}

int logfile_new(struct logfile **ret_logfile, struct error *err)
{
    sqlite3_vfs *system = sqlite3_vfs_find(NULL);
    struct logfile *logfile = calloc(1, sizeof *logfile);

    if (system == NULL || logfile == NULL) {
        free(logfile);
        return error_set(err, ERROR_SYSTEM, ENOMEM, "preparing the log");
    }
    logfile->system = system;
    logfile->layer = *system;
    logfile->layer.pNext = NULL;
    logfile->layer.zName = logfile->name;
    logfile->layer.szOsFile = system->szOsFile + (int)sizeof(struct log);
    logfile->layer.xOpen = open_file;
    (void)snprintf(logfile->name, sizeof logfile->name, "hutch-%p", (void *)logfile);
    if (sqlite3_vfs_register(&logfile->layer, 0) != SQLITE_OK) {
        free(logfile);
        return error_set(err, ERROR_SYSTEM, ENOMEM, "preparing the log");
    }
    *ret_logfile = logfile;
    return 0;
}

const char *logfile_name(const struct logfile *logfile)
{
    return logfile->name;
}

void logfile_free(struct logfile *logfile)
{
    if (logfile == NULL)
        return;
    (void)sqlite3_vfs_unregister(&logfile->layer);
    free(logfile);
}
