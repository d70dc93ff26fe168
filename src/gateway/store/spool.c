/*
 * The loop's side of spools, and the spooler's thread. A spool belongs to that thread from its first write on; the loop
 * only holds on to it. Its end is never refused, and comes when its last write has come back. When the store closes
 * that thread may have gone: then the loop's ends the spool.
 *
 * When the database has no space, all spools are given up: what they hold is still in memory, and whoever wrote it
 * records it another way once his next write has failed. Nothing else that takes space can be had back so easily.
 */
#include "gateway/store/spool.h"

#include "gateway/store/core.h"
#include "gateway/store/spool_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

enum { AT_ONCE = 64, DISK_PART = 4 };

struct spool_call {
    struct store_call call;
    struct spool *spool;
    store_done_fn done;
    size_t count;
    struct store_output pieces[];
};

struct spool {
    struct spool_file file;
    uint64_t cap;
    struct spool *next;      /* of those with a file; the spooler's thread alone */
    bool is_given_up;        /* likewise */
    struct spool_call *last; /* made with the spool, so that it can always end */
    size_t writes_out;       /* the loop's thread alone, as the next two */
    bool is_freed;
    bool remove;
    char path[SCHEMA_PATH_MAX];
};

static void end_spool(struct store *store, struct spool *spool)
{
    bool is_made = spool->file.fd >= 0;

    for (struct spool **at = &store->spool_list; is_made && *at != NULL; at = &(*at)->next) {
        if (*at == spool) {
            *at = spool->next;
            break;
        }
    }
    spool_file_close(&spool->file);
    /* If not now, then at the next start. */
    if (spool->remove && is_made && unlink(spool->path) == 0)
        store->spool_bytes -= spool_file_size(spool->cap);
    free(spool);
}

/* Once nobody is interested in it any more and no write is under way. */
static void end_if_over(struct spool *spool)
{
    struct store_call *last = &spool->last->call;

    if (!spool->is_freed || spool->writes_out > 0)
        return;
    if (!last->store->closing) {
        core_submit(last->store, last);
        return;
    }
    end_spool(last->store, spool);
    call_free(last);
}

static void deliver(struct store_call *call)
{
    struct spool_call *spooling = (struct spool_call *)call;
    struct store_outcome outcome = {.result = call->result, .message = call->result < 0 ? call->error.message : NULL};

    spooling->done(call->data, &outcome);
    spooling->spool->writes_out--;
    end_if_over(spooling->spool);
}

static void deliver_end(struct store_call *call)
{
    (void)call; /* nobody asked */
}

static struct spool_call *new_call(struct store *store, struct spool *spool, size_t count)
{
    struct spool_call *call = call_new(store, sizeof *call + count * sizeof *call->pieces, 0);

    if (call == NULL)
        return NULL;
    call->call.kind = CALL_SPOOL;
    call->call.deliver = deliver;
    call->spool = spool;
    call->count = count;
    return call;
}

struct spool *spool_new(struct store *store, const char *exec, uint64_t cap)
{
    struct spool *spool = store->options.sync == STORE_SYNC_ALWAYS ? NULL : calloc(1, sizeof *spool);

    if (spool == NULL)
        return NULL;
    spool->file.fd = -1;
    spool->cap = cap;
    spool->last = new_call(store, spool, 0);
    if (spool->last != NULL) {
        spool->last->call.kind = CALL_SPOOL_END;
        spool->last->call.deliver = deliver_end;
    }
    if (spool->last == NULL || snprintf(spool->path, sizeof spool->path, "%s/" SPOOL_FOLDER "/%s", store->folder,
                                        exec) >= (int)sizeof spool->path) {
        if (spool->last != NULL)
            call_free(&spool->last->call);
        free(spool);
        return NULL;
    }
    return spool;
}

bool spool_write(struct spool *spool, const struct store_output *pieces, size_t count, store_done_fn done, void *data)
{
    struct store *store = spool->last->call.store;
    struct spool_call *call = new_call(store, spool, count);

    if (call == NULL)
        return false;
    call->done = done;
    call->call.data = data;
    memcpy(call->pieces, pieces, count * sizeof *pieces);
    spool->writes_out++;
    core_submit(store, &call->call);
    return true;
}

void spool_free(struct spool *spool, bool remove)
{
    if (spool == NULL)
        return;
    spool->remove = remove;
    spool->is_freed = true;
    end_if_over(spool);
}

/* All that is spooled goes to the database in the end, and before it is removed: there must be room for it twice. */
static int check_space(const struct store *store, uint64_t size, struct error *err)
{
    uint64_t all = store->spool_bytes + size;
    struct statvfs disk;

    if (atomic_load(&store->failing))
        return error_set(err, ERROR_LIMIT, ENOSPC, "no spool while nothing can be recorded");
    if (fstatvfs(store->lock_fd, &disk) < 0)
        return error_errno(err, "looking for space for a spool");
    uint64_t free_bytes = (uint64_t)disk.f_bavail * disk.f_frsize;
    if (all > store->options.spool_bytes || all > (uint64_t)disk.f_blocks * disk.f_frsize / DISK_PART ||
        free_bytes < size + all || free_bytes - size - all < store->options.reserve_bytes)
        return error_set(err, ERROR_LIMIT, ENOSPC, "%llu bytes are spooled", (unsigned long long)store->spool_bytes);
    return 0;
}

static int make_file(struct store *store, struct spool *spool, struct error *err)
{
    uint64_t size = spool_file_size(spool->cap);
    int r = check_space(store, size, err);

    if (r == 0)
        r = spool_file_make(&spool->file, spool->path, spool->cap, store->options.boot, err);
    if (r == 0) {
        store->spool_bytes += size;
        spool->next = store->spool_list;
        store->spool_list = spool;
    }
    return r;
}

static int write_pieces(struct store *store, struct spool_call *call, struct error *err)
{
    struct spool *spool = call->spool;
    int r = spool->is_given_up   ? error_set(err, ERROR_LIMIT, ENOSPC, "the spool was given up")
            : spool->file.fd < 0 ? make_file(store, spool, err)
                                 : 0;

    return r == 0 ? spool_file_write(&spool->file, call->pieces, call->count, err) : r;
}

static void carry_out(struct store *store, struct spool_call *call)
{
    struct call_list one = {0};

    if (call->call.kind == CALL_SPOOL_END)
        end_spool(store, call->spool);
    else
        call->call.result = write_pieces(store, call, &call->call.error);
    call_list_add(&one, &call->call);
    core_answer(store, &one);
}

static void remove_files(const struct store *store)
{
    char folder[SCHEMA_PATH_MAX + sizeof SPOOL_FOLDER + 1];

    (void)snprintf(folder, sizeof folder, "%s/" SPOOL_FOLDER, store->folder);
    DIR *entries = opendir(folder);
    for (const struct dirent *entry; entries != NULL && (entry = readdir(entries)) != NULL;) {
        if (entry->d_name[0] != '.')
            (void)unlinkat(dirfd(entries), entry->d_name, 0);
    }
    if (entries != NULL)
        (void)closedir(entries);
}

/* Those too that nobody writes to any more. */
static void give_up(struct store *store)
{
    struct error failure;

    if (!atomic_load(&store->failing))
        return;
    core_get_failure(store, &failure);
    if (failure.err != ENOSPC)
        return;
    for (struct spool *spool = store->spool_list; spool != NULL; spool = spool->next) {
        spool->is_given_up = true;
        spool_file_close(&spool->file);
    }
    store->spool_list = NULL;
    store->spool_bytes = 0;
    remove_files(store);
}

void *spooler_main(void *argument)
{
    struct store *store = argument;
    struct call_list calls;

    while (queue_take(&store->spools, AT_ONCE, SIZE_MAX, -1, &calls)) {
        for (struct store_call *call = call_list_take(&calls); call != NULL; call = call_list_take(&calls))
            carry_out(store, (struct spool_call *)call);
        give_up(store);
    }
    return NULL;
}
