#include "gateway/store/recover.h"

#include "gateway/store/spool_file.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum { PIECE_BYTES = 64 << 10, PATH_SIZE = 4096, START_PART = 4 };

static int find_free(const struct recovery *recovery, uint64_t *ret_bytes, struct error *err)
{
    struct statvfs disk;

    if (statvfs(recovery->folder, &disk) < 0)
        return error_errno(err, "looking for space in %s", recovery->folder);
    *ret_bytes = (uint64_t)disk.f_bavail * disk.f_frsize;
    return 0;
}

/* `ret_is_read`: what failed is the database, not the spool. */
static int copy_pieces(struct applier *applier, const char *exec, struct spool_file *file, bool *ret_is_read,
                       struct error *err)
{
    uint8_t buffer[PIECE_BYTES];
    struct store_output piece;
    uint64_t position = 0;
    int r = apply_output_end(applier, exec, &position, err);
    bool has_gap = position < file->first; /* then what is before it goes */

    *ret_is_read = r < 0;
    while (r == 0 && (r = spool_file_read(file, position, buffer, sizeof buffer, &piece, err)) > 0) {
        piece.exec = exec;
        position = piece.position + piece.length;
        piece.keep_bytes = has_gap ? position - file->first : file->cap;
        r = apply_output(applier, &piece, err);
        *ret_is_read = r < 0;
    }
    return r;
}

static int copy_spool(struct applier *applier, const char *exec, struct spool_file *file, bool *ret_is_read,
                      struct error *err)
{
    struct error ignored;
    int r = database_run(applier->database, STATEMENT_BEGIN, NULL, 0, NULL, err);

    *ret_is_read = true;
    if (r == 0)
        r = copy_pieces(applier, exec, file, ret_is_read, err);
    if (r == 0) {
        *ret_is_read = true;
        r = database_run(applier->database, STATEMENT_COMMIT, NULL, 0, NULL, err);
    }
    if (r < 0 && sqlite3_get_autocommit(applier->database->handle) == 0)
        ignore_result(database_run(applier->database, STATEMENT_ROLLBACK, NULL, 0, NULL, &ignored)); /* told already */
    return r;
}

/* The log takes it now, the database when the log is moved there, and only in between is the spool's own space free. */
static int copy_if_it_fits(struct recovery *recovery, const char *exec, struct spool_file *file, bool *ret_is_read,
                           struct error *err)
{
    uint64_t length = file->next - file->first;
    uint64_t wanted = recovery->copied_bytes + length + recovery->reserve_bytes / START_PART;
    uint64_t free_bytes = 0;
    int r = find_free(recovery, &free_bytes, err);

    *ret_is_read = true;
    if (r == 0 && free_bytes < wanted)
        r = error_set(err, ERROR_LIMIT, ENOSPC, "%s has %llu bytes", exec, (unsigned long long)length);
    if (r == 0)
        r = copy_spool(recovery->applier, exec, file, ret_is_read, err);
    if (r == 0)
        recovery->copied_bytes += length;
    return r;
}

/* Is this a failure of the database that has to be mended first? Space is made by removing the spool. */
static bool is_serious(int r, bool is_read)
{
    return is_read && r != -EBADMSG && r != -ENOSPC && database_is_broken_by(r);
}

static void settle(struct recovery *recovery, const char *path, int r, bool is_read)
{
    bool stays = !is_read && r < 0 && r != -EBADMSG && r != -ENOENT;
    struct stat status;

    recovery->lost += r < 0 && r != -ENOENT;
    if (!stays)
        (void)unlink(path);
    else if (lstat(path, &status) == 0)
        recovery->left_bytes += (uint64_t)status.st_size;
}

static int recover_spool(struct recovery *recovery, const char *path, const char *exec, struct error *err)
{
    struct spool_file file;
    bool is_read = false;
    int r = spool_file_open(&file, path, recovery->boot, err);

    if (r == 0) {
        r = copy_if_it_fits(recovery, exec, &file, &is_read, err);
        spool_file_close(&file);
    }
    if (is_serious(r, is_read))
        return r;
    settle(recovery, path, r, is_read);
    return 0;
}

struct largest {
    char path[PATH_SIZE];
    uint64_t bytes;
};

/* What is done with each: -errno ends it. */
typedef int (*visit_fn)(struct recovery *recovery, const char *path, const char *name, void *data, struct error *err);

static int visit_spools(struct recovery *recovery, visit_fn visit, void *data, struct error *err)
{
    char path[PATH_SIZE];
    int r = 0;
    DIR *entries = opendir(recovery->folder);

    if (entries == NULL)
        return error_errno(err, "opening %s", recovery->folder);
    for (const struct dirent *entry; r == 0 && (entry = readdir(entries)) != NULL;) {
        if (entry->d_name[0] == '.')
            continue;
        if (snprintf(path, sizeof path, "%s/%s", recovery->folder, entry->d_name) >= (int)sizeof path)
            r = error_set(err, ERROR_INVALID, ENAMETOOLONG, "%s", recovery->folder);
        else
            r = visit(recovery, path, entry->d_name, data, err);
    }
    (void)closedir(entries);
    return r;
}

static int visit_for_size(struct recovery *recovery, const char *path, const char *name, void *data, struct error *err)
{
    struct largest *largest = data;
    struct stat status;

    (void)recovery;
    (void)name;
    (void)err;
    if (lstat(path, &status) == 0 && (uint64_t)status.st_blocks >= largest->bytes) {
        largest->bytes = (uint64_t)status.st_blocks;
        (void)snprintf(largest->path, sizeof largest->path, "%s", path);
    }
    return 0;
}

static int visit_to_recover(struct recovery *recovery, const char *path, const char *name, void *data,
                            struct error *err)
{
    (void)data;
    return recover_spool(recovery, path, name, err);
}

int recover_space(struct recovery *recovery, struct error *err)
{
    uint64_t free_bytes = 0;

    if (mkdir(recovery->folder, 0700) < 0 && errno != EEXIST)
        return error_errno(err, "making %s", recovery->folder);
    for (;;) {
        struct largest largest = {0};
        int r = find_free(recovery, &free_bytes, err);
        if (r < 0 || free_bytes >= recovery->reserve_bytes / START_PART)
            return r;
        r = visit_spools(recovery, visit_for_size, &largest, err);
        if (r < 0 || largest.path[0] == '\0')
            return r;
        if (unlink(largest.path) < 0)
            return error_errno(err, "removing %s to make space", largest.path);
        recovery->lost++;
    }
}

int recover_spools(struct recovery *recovery, struct error *err)
{
    int r = visit_spools(recovery, visit_to_recover, NULL, err);

    if (r < 0)
        error_wrap(err, "recording what was spooled in %s", recovery->folder);
    return r;
}
