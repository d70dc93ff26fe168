#include "gateway/store/password.h"

#include <stdlib.h>
#include <string.h>

struct job {
    uv_work_t work;
    struct password_line *line;
    struct job *next;
    char password[PASSWORD_MAX];
    size_t length;
    char hash[PASSWORD_HASH_SIZE]; /* to check against, or made */
    uint64_t generation;
    int64_t asked_ms;
    int result;
    password_checked_fn checked; /* NULL: forgotten */
    password_hashed_fn hashed;   /* NULL: a check */
    void *data;
};

struct remembered {
    uint8_t hash[STORE_HASH_BYTES];
    int64_t until_ms; /* 0: free */
};

struct password_line {
    uv_loop_t *loop;
    uint8_t key[STORE_KEY_BYTES];
    char hash[PASSWORD_HASH_SIZE];
    uint64_t generation; /* of the hash: a check against an older one is not remembered */
    struct job *jobs;    /* running ones first, then those that wait, in order */
    size_t count;
    size_t running;
    struct remembered remembered[PASSWORD_REMEMBERED_MAX];
    bool freed;
};

struct password_line *password_line_new(uv_loop_t *loop, const uint8_t key[STORE_KEY_BYTES])
{
    struct password_line *line = calloc(1, sizeof *line);

    if (line == NULL)
        return NULL;
    line->loop = loop;
    memcpy(line->key, key, sizeof line->key);
    return line;
}

static void free_job(struct job *job)
{
    sodium_memzero(job->password, sizeof job->password);
    free(job);
}

static void free_line(struct password_line *line)
{
    sodium_memzero(line->key, sizeof line->key);
    free(line);
}

/* Those that wait never start. */
static void drop_waiting(struct password_line *line)
{
    struct job **at = &line->jobs;

    for (size_t i = 0; *at != NULL && i < line->running; i++)
        at = &(*at)->next;
    while (*at != NULL) {
        struct job *job = *at;
        *at = job->next;
        line->count--;
        if (job->hashed != NULL)
            job->hashed(job->data, -ECANCELED, NULL);
        free_job(job);
    }
}

void password_line_free(struct password_line *line)
{
    if (line == NULL)
        return;
    line->freed = true;
    drop_waiting(line);
    for (struct job *job = line->jobs; job != NULL; job = job->next)
        job->checked = NULL;
    if (line->count == 0)
        free_line(line);
}

void password_line_set(struct password_line *line, const char *hash)
{
    memset(line->remembered, 0, sizeof line->remembered);
    memset(line->hash, 0, sizeof line->hash);
    memcpy(line->hash, hash, strnlen(hash, sizeof line->hash - 1));
    line->generation++;
}

bool password_line_has(const struct password_line *line)
{
    return line->hash[0] != '\0';
}

static void hash_keyed(const struct password_line *line, const char *password, size_t length,
                       uint8_t ret_hash[STORE_HASH_BYTES])
{
    (void)crypto_generichash(ret_hash, STORE_HASH_BYTES, (const uint8_t *)password, length, line->key,
                             sizeof line->key);
}

bool password_is_remembered(struct password_line *line, const char *password, size_t length, int64_t now_ms)
{
    uint8_t hash[STORE_HASH_BYTES];
    bool found = false;

    hash_keyed(line, password, length, hash);
    for (size_t i = 0; i < PASSWORD_REMEMBERED_MAX; i++) {
        const struct remembered *entry = &line->remembered[i];
        bool is_same = sodium_memcmp(entry->hash, hash, sizeof hash) == 0;
        found = found || (is_same && entry->until_ms > now_ms && entry->until_ms <= now_ms + PASSWORD_REMEMBERED_MS);
    }
    return found;
}

static void remember(struct password_line *line, const struct job *job)
{
    struct remembered *oldest = &line->remembered[0];

    for (size_t i = 1; i < PASSWORD_REMEMBERED_MAX; i++) {
        if (line->remembered[i].until_ms < oldest->until_ms)
            oldest = &line->remembered[i];
    }
    hash_keyed(line, job->password, job->length, oldest->hash);
    oldest->until_ms = job->asked_ms + PASSWORD_REMEMBERED_MS;
}

static void work(uv_work_t *request)
{
    struct job *job = request->data;

    if (job->hashed == NULL)
        job->result = crypto_pwhash_str_verify(job->hash, job->password, job->length) == 0 ? 0 : -EACCES;
    else if (crypto_pwhash_str(job->hash, job->password, job->length, crypto_pwhash_OPSLIMIT_INTERACTIVE,
                               crypto_pwhash_MEMLIMIT_INTERACTIVE) != 0)
        job->result = -ENOMEM;
}

static void start_waiting(struct password_line *line);

static void finished(uv_work_t *request, int status)
{
    struct job *job = request->data;
    struct password_line *line = job->line;
    struct job **at = &line->jobs;

    while (*at != job)
        at = &(*at)->next;
    *at = job->next;
    line->count--;
    line->running--;
    if (status < 0 || line->freed)
        job->result = -ECANCELED;
    if (job->hashed == NULL && job->result == 0 && job->generation == line->generation)
        remember(line, job);
    if (!line->freed)
        start_waiting(line);
    else if (line->count == 0)
        free_line(line);
    if (job->hashed != NULL)
        job->hashed(job->data, job->result, job->hash);
    else if (job->checked != NULL)
        job->checked(job->data, job->result);
    free_job(job);
}

static void start_waiting(struct password_line *line)
{
    struct job *job = line->jobs;

    for (size_t i = 0; job != NULL && i < line->running; i++)
        job = job->next;
    for (; job != NULL && line->running < PASSWORD_AT_ONCE; job = job->next) {
        line->running++;
        (void)uv_queue_work(line->loop, &job->work, work, finished); /* fails without a callback only */
    }
}

static int add(struct password_line *line, const char *password, size_t length, const struct job *template)
{
    struct job **last = &line->jobs;

    if (length > PASSWORD_MAX)
        return -EINVAL;
    if (line->count >= PASSWORD_AT_ONCE + PASSWORD_WAITING_MAX)
        return -EBUSY;
    struct job *job = malloc(sizeof *job);
    if (job == NULL)
        return -ENOMEM;
    *job = *template;
    job->work.data = job;
    job->line = line;
    job->length = length;
    job->generation = line->generation;
    memcpy(job->password, password, length);
    memcpy(job->hash, line->hash, sizeof job->hash);
    while (*last != NULL)
        last = &(*last)->next;
    *last = job;
    line->count++;
    start_waiting(line);
    return 0;
}

int password_check(struct password_line *line, const char *password, size_t length, int64_t now_ms,
                   password_checked_fn checked, void *data)
{
    return add(line, password, length, &(struct job){.asked_ms = now_ms, .checked = checked, .data = data});
}

int password_hash(struct password_line *line, const char *password, size_t length, password_hashed_fn hashed,
                  void *data)
{
    return add(line, password, length, &(struct job){.hashed = hashed, .data = data});
}

void password_forget(struct password_line *line, const void *data)
{
    for (struct job *job = line->jobs; job != NULL; job = job->next) {
        if (job->data == data)
            job->checked = NULL;
    }
}
