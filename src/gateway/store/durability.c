#include "gateway/store/durability.h"

#include "base/cleanup.h"
#include "gateway/store/core.h"

#include <fcntl.h>
#include <stdio.h>
#include <time.h>

enum {
    CHECKPOINT_PAGES = 4096,       /* 16 MiB */
    CHECKPOINT_PAGES_MANY = 16384, /* 64 MiB: from here on the writer is asked to wait */
    CHECKPOINT_PAGES_FEW = 256,
    CHECKPOINT_PASSES = 4,
    SYNC_DELAY_MS = STORE_SYNC_MS / 2, /* the rest is for the disk */
};

static void answer(struct durability *durability, struct call_list *calls, const struct error *failure)
{
    for (struct store_call *call = calls->first; failure != NULL && call != NULL; call = call->next) {
        call->result = -failure->err;
        call->error = *failure;
    }
    core_answer(durability->store, calls);
}

static void sync_log(struct durability *durability, struct call_list *calls)
{
    struct error failure = {0};

    if (fdatasync(durability->log_fd) < 0) {
        (void)error_errno(&failure, "bringing records to the disk");
        core_set_failure(durability->store, &failure);
    }
    atomic_fetch_add(&durability->syncs, 1);
    answer(durability, calls, failure.err != 0 ? &failure : NULL);
}

static void wait_ms(struct durability *durability, int delay_ms)
{
    struct timespec until;

    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += delay_ms * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000L;
    until.tv_nsec %= 1000000000L;
    while (!durability->stopping && pthread_cond_timedwait(&durability->sync_wanted, &durability->mutex, &until) == 0)
        ;
}

static void *syncer_main(void *argument)
{
    struct durability *durability = argument;
    bool over = false;

    while (!over) {
        struct call_list calls = {0};
        (void)pthread_mutex_lock(&durability->mutex);
        while (!durability->dirty && !durability->stopping)
            (void)pthread_cond_wait(&durability->sync_wanted, &durability->mutex);
        if (!durability->always)
            wait_ms(durability, SYNC_DELAY_MS);
        bool dirty = durability->dirty;
        durability->dirty = false;
        call_list_join(&calls, &durability->waiting);
        over = durability->stopping && !dirty;
        (void)pthread_mutex_unlock(&durability->mutex);
        if (dirty)
            sync_log(durability, &calls);
    }
    return NULL;
}

/* Copy what is in the log. How many pages have come in meanwhile: with none, the next write starts it anew. */
static uint64_t checkpoint(struct durability *durability)
{
    int pages = 0;
    int copied = 0;
    int r = sqlite3_wal_checkpoint_v2(durability->database.handle, NULL, SQLITE_CHECKPOINT_PASSIVE, &pages, &copied);

    atomic_fetch_add(&durability->checkpoints, 1);
    (void)pthread_mutex_lock(&durability->mutex);
    uint64_t now = durability->pages;
    (void)pthread_mutex_unlock(&durability->mutex);
    if (r != SQLITE_OK)
        return now;
    return now > (uint64_t)copied ? now - (uint64_t)copied : 0;
}

static void copy_log(struct durability *durability, uint64_t pages)
{
    uint64_t left = 1;
    bool many = false;

    /* Each pass is shorter than the one before; the writer waits for the last only, which has little to copy. */
    for (int pass = 0; pass < CHECKPOINT_PASSES && left > 0 && !(many && left <= CHECKPOINT_PAGES_FEW); pass++) {
        left = checkpoint(durability);
        many = pages + left >= CHECKPOINT_PAGES_MANY;
    }
    if (left > 0 && many) {
        (void)pthread_mutex_lock(&durability->gate);
        (void)checkpoint(durability);
        (void)pthread_mutex_unlock(&durability->gate);
    }
}

/* Many pages, and many more than the last time. */
static bool is_due(const struct durability *durability)
{
    return durability->pages >= durability->pages_seen + CHECKPOINT_PAGES;
}

static void *checkpointer_main(void *argument)
{
    struct durability *durability = argument;

    for (;;) {
        (void)pthread_mutex_lock(&durability->mutex);
        while (!is_due(durability) && !durability->stopping)
            (void)pthread_cond_wait(&durability->checkpoint_wanted, &durability->mutex);
        uint64_t pages = durability->pages;
        durability->pages_seen = pages;
        bool stopping = durability->stopping;
        (void)pthread_mutex_unlock(&durability->mutex);
        if (stopping)
            return NULL;
        copy_log(durability, pages);
    }
}

void durability_committed(struct durability *durability, struct call_list *calls, uint64_t pages)
{
    struct store *store = durability->store;
    bool always = durability->always;

    /* Nobody waits for the syncer: first those who wait for us. */
    if (!always)
        core_answer(store, calls);
    (void)pthread_mutex_lock(&durability->mutex);
    bool was_dirty = durability->dirty;
    durability->dirty = true;
    if (always)
        call_list_join(&durability->waiting, calls);
    if (pages < durability->pages)
        durability->pages_seen = 0; /* the log was started anew */
    durability->pages = pages;
    bool due = is_due(durability);
    (void)pthread_mutex_unlock(&durability->mutex);
    if (!was_dirty)
        (void)pthread_cond_signal(&durability->sync_wanted);
    if (due)
        (void)pthread_cond_signal(&durability->checkpoint_wanted);
}

static int open_log(struct durability *durability, const char *path, struct error *err)
{
    char log[SCHEMA_PATH_MAX + 8];

    (void)snprintf(log, sizeof log, "%s-wal", path);
    durability->log_fd = open(log, O_RDONLY | O_CLOEXEC);
    return durability->log_fd >= 0 ? 0 : error_errno(err, "opening %s", log);
}

/* The files' names, too, must survive the end of the machine. */
static int sync_folder(const char *folder, struct error *err)
{
    _cleanup_fd_ int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    return fd >= 0 && fsync(fd) == 0 ? 0 : error_errno(err, "bringing %s to the disk", folder);
}

static void init(struct durability *durability, struct store *store, bool always)
{
    pthread_condattr_t monotonic;

    *durability = (struct durability){.store = store, .log_fd = -1, .always = always};
    (void)pthread_condattr_init(&monotonic);
    (void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    (void)pthread_mutex_init(&durability->mutex, NULL);
    (void)pthread_mutex_init(&durability->gate, NULL);
    (void)pthread_cond_init(&durability->sync_wanted, &monotonic);
    (void)pthread_cond_init(&durability->checkpoint_wanted, &monotonic);
    (void)pthread_condattr_destroy(&monotonic);
}

int durability_start(struct durability *durability, struct store *store, const char *path, bool always,
                     struct error *err)
{
    init(durability, store, always);
    int r = open_log(durability, path, err);
    if (r == 0)
        r = sync_folder(store->folder, err);
    if (r == 0)
        r = database_open(&durability->database, path, DATABASE_CHECKPOINTER, err);
    if (r < 0)
        return r;
    durability->syncer_runs = pthread_create(&durability->syncer, NULL, syncer_main, durability) == 0;
    durability->checkpointer_runs = pthread_create(&durability->checkpointer, NULL, checkpointer_main, durability) == 0;
    if (!durability->syncer_runs || !durability->checkpointer_runs)
        return error_set(err, ERROR_SYSTEM, EAGAIN, "starting the store's threads");
    return 0;
}

void durability_stop(struct durability *durability)
{
    if (durability->store == NULL)
        return;
    (void)pthread_mutex_lock(&durability->mutex);
    durability->stopping = true;
    (void)pthread_mutex_unlock(&durability->mutex);
    (void)pthread_cond_broadcast(&durability->sync_wanted);
    (void)pthread_cond_broadcast(&durability->checkpoint_wanted);
    if (durability->syncer_runs)
        (void)pthread_join(durability->syncer, NULL);
    if (durability->checkpointer_runs)
        (void)pthread_join(durability->checkpointer, NULL);
    database_release(&durability->database);
    close_fd(&durability->log_fd);
    (void)pthread_cond_destroy(&durability->sync_wanted);
    (void)pthread_cond_destroy(&durability->checkpoint_wanted);
    (void)pthread_mutex_destroy(&durability->mutex);
    (void)pthread_mutex_destroy(&durability->gate);
    durability->store = NULL;
}
