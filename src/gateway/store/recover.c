#include "gateway/store/recover.h"

#include "gateway/store/spool_file.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PIECE_BYTES = 64 << 10, PATH_SIZE = 4096 };

static int copy_pieces(struct applier *applier, const char *exec, struct spool_file *file, struct error *err)
{
    uint8_t buffer[PIECE_BYTES];
    struct store_output piece;
    uint64_t position = 0;
    int r = apply_output_end(applier, exec, &position, err);

    while (r == 0 && (r = spool_file_read(file, position, buffer, sizeof buffer, &piece, err)) > 0) {
        piece.exec = exec;
        position = piece.position + piece.length;
        r = apply_output(applier, &piece, err);
    }
    return r;
}

static int copy_spool(struct applier *applier, const char *exec, struct spool_file *file, struct error *err)
{
    struct error ignored;
    int r = database_run(applier->database, STATEMENT_BEGIN, NULL, 0, NULL, err);

    if (r == 0)
        r = copy_pieces(applier, exec, file, err);
    if (r == 0)
        r = database_run(applier->database, STATEMENT_COMMIT, NULL, 0, NULL, err);
    if (r < 0 && sqlite3_get_autocommit(applier->database->handle) == 0)
        ignore_result(database_run(applier->database, STATEMENT_ROLLBACK, NULL, 0, NULL, &ignored)); /* told already */
    return r;
}

static int recover_spool(struct applier *applier, const char *folder, const char *exec, struct error *err)
{
    char path[PATH_SIZE];
    struct spool_file file;

    if (snprintf(path, sizeof path, "%s/%s", folder, exec) >= (int)sizeof path)
        return error_set(err, ERROR_INVALID, ENAMETOOLONG, "%s", folder);
    if (spool_file_open(&file, path, err) == 0) {
        int r = copy_spool(applier, exec, &file, err);
        spool_file_close(&file);
        /* What is wrong with the database has to be mended first. */
        if (r != -EBADMSG && database_is_broken_by(r))
            return r;
    }
    (void)unlink(path);
    return 0;
}

int recover_spools(struct applier *applier, const char *folder, struct error *err)
{
    int r = 0;

    if (mkdir(folder, 0700) < 0 && errno != EEXIST)
        return error_errno(err, "making %s", folder);
    DIR *entries = opendir(folder);
    if (entries == NULL)
        return error_errno(err, "opening %s", folder);
    for (const struct dirent *entry; r == 0 && (entry = readdir(entries)) != NULL;) {
        if (entry->d_name[0] != '.')
            r = recover_spool(applier, folder, entry->d_name, err);
    }
    (void)closedir(entries);
    if (r < 0)
        error_wrap(err, "recording what was spooled in %s", folder);
    return r;
}
