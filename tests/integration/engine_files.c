#include "engine_cases.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MIB = 1 << 20, SIZE = 5 * MIB };

struct transfer {
    const uint8_t *data;
    size_t size;
    size_t sent;
    struct buf content;
    size_t records;
    size_t events;
    struct wire_entry entry;
    uint64_t written;
    char names[512];
    bool cancels;
    bool is_ended;
    struct error err;
};

static void take_record(void *data, struct file_job *job, const struct wire_message *record)
{
    struct transfer *transfer = data;

    (void)job;
    transfer->records++;
    if (record->type == WIRE_ENTRY) {
        transfer->entry = record->entry;
        (void)snprintf(transfer->names + strlen(transfer->names), sizeof transfer->names - strlen(transfer->names),
                       "%s ", record->entry.name.text);
    } else if (record->type == WIRE_WRITTEN) {
        transfer->written = record->written.bytes;
    } else if (record->type == WIRE_EVENT) {
        transfer->events++;
    }
}

static void take_content(void *data, struct file_job *job, const uint8_t *content, size_t length)
{
    struct transfer *transfer = data;

    if (transfer->content.length == 0 && buf_append(&transfer->content, "", 0) == 0)
        transfer->content.cap = SIZE;
    if (buf_append(&transfer->content, content, length) < 0)
        transfer->content.length = 0;
    if (transfer->cancels)
        file_cancel(job);
}

static void send_more(void *data, struct file_job *job)
{
    struct transfer *transfer = data;

    transfer->sent += file_write(job, transfer->data + transfer->sent, transfer->size - transfer->sent, true);
}

static void take_end(void *data, struct file_job *job, const struct error *err)
{
    struct transfer *transfer = data;

    (void)job;
    transfer->is_ended = true;
    if (err != NULL)
        transfer->err = *err;
}

static const struct file_callbacks callbacks = {take_record, take_content, send_more, take_end};

static struct file_question about(enum wire_file_operation operation, const char *path)
{
    return (struct file_question){
        .operation = operation, .uid = WORLD_USER, .path = path, .mode = 0644, .length = WIRE_FILE_ALL};
}

static bool ask(struct world *world, struct sandbox *sandbox, struct file_question question, struct transfer *transfer)
{
    struct file_job *job = NULL;
    const uint8_t *data = transfer->data;
    size_t size = transfer->size;

    buf_release(&transfer->content);
    *transfer = (struct transfer){.data = data, .size = size, .content = buf_init(SIZE)};
    if (file_start(sandbox, &question, &callbacks, transfer, &job, &transfer->err) < 0)
        return false;
    if (question.operation == WIRE_FILE_WRITE || question.operation == WIRE_FILE_APPEND)
        send_more(transfer, job);
    return WORLD_UNTIL(world, transfer->is_ended) && transfer->err.code == ERROR_NONE;
}

static void moves_files(struct world *world)
{
    struct sandbox *sandbox = make(world);
    _cleanup_free_ uint8_t *data = malloc(SIZE);
    struct transfer transfer = {.data = data, .size = SIZE};
    struct file_question question;

    for (size_t i = 0; data != NULL && i < SIZE; i++)
        data[i] = (uint8_t)(i * 13 + i / 997);
    CHECK(ask(world, sandbox, about(WIRE_FILE_WRITE, "big"), &transfer) && transfer.written == SIZE);
    CHECK(ask(world, sandbox, about(WIRE_FILE_READ, "big"), &transfer) && transfer.entry.size == SIZE);
    CHECK(transfer.content.length == SIZE && memcmp(transfer.content.data, data, SIZE) == 0);
    transfer.size = 100;
    CHECK(ask(world, sandbox, about(WIRE_FILE_APPEND, "big"), &transfer) && transfer.written == 100);
    CHECK(ask(world, sandbox, about(WIRE_FILE_STAT, "big"), &transfer) && transfer.entry.size == SIZE + 100);
    question = about(WIRE_FILE_MKDIR, "a/b/c");
    question.flags = WIRE_FILE_PARENTS;
    question.mode = 0755;
    CHECK(ask(world, sandbox, question, &transfer));
    question = about(WIRE_FILE_RENAME, "big");
    question.new_path = "a/small";
    CHECK(ask(world, sandbox, question, &transfer));
    question = about(WIRE_FILE_CHMOD, "a/small");
    question.mode = 0600;
    CHECK(ask(world, sandbox, question, &transfer));
    CHECK(ask(world, sandbox, about(WIRE_FILE_STAT, "a/small"), &transfer) && transfer.entry.mode == 0600);
    CHECK(ask(world, sandbox, about(WIRE_FILE_LIST, "a"), &transfer) && transfer.records == 2);
    question = about(WIRE_FILE_REMOVE, "a");
    question.flags = WIRE_FILE_RECURSIVE;
    CHECK(ask(world, sandbox, question, &transfer));
    CHECK(run_says(world, sandbox, "ls -A", ""));
    buf_release(&transfer.content);
}

static void says_why_not(struct world *world)
{
    struct sandbox *sandbox = make(world);
    _cleanup_free_ uint8_t *data = calloc(1, SIZE);
    struct transfer transfer = {.data = data, .size = SIZE};

    CHECK(!ask(world, sandbox, about(WIRE_FILE_READ, "nowhere"), &transfer) && transfer.err.code == ERROR_NOT_FOUND);
    CHECK(!ask(world, sandbox, about(WIRE_FILE_READ, "/etc"), &transfer) && transfer.err.code == ERROR_INVALID);
    CHECK(!ask(world, sandbox, about(WIRE_FILE_WRITE, "/etc/x"), &transfer) && transfer.err.code == ERROR_DENIED);
    CHECK(!ask(world, sandbox, about(WIRE_FILE_READ, "/proc/1/environ"), &transfer));
    CHECK(run_says(world, sandbox, "head -c 62m /dev/zero > fill; echo ok", "ok\n"));
    CHECK(!ask(world, sandbox, about(WIRE_FILE_WRITE, "more"), &transfer) && transfer.err.code == ERROR_LIMIT);
    CHECK(run_says(world, sandbox, "rm -f fill more; echo alive", "alive\n"));
    buf_release(&transfer.content);
}

static void waits_for_who_reads(struct world *world)
{
    struct sandbox *sandbox = make(world);
    struct transfer transfer = {.content = buf_init(SIZE)};
    struct file_question question = about(WIRE_FILE_READ, "zeros");
    struct file_job *job = NULL;

    CHECK(run_says(world, sandbox, "head -c 4m /dev/zero > zeros; echo ok", "ok\n"));
    CHECK(file_start(sandbox, &question, &callbacks, &transfer, &job, &transfer.err) == 0);
    file_pause(job, true);
    world_pass(world, 100);
    CHECK(transfer.content.length > 0 && transfer.content.length <= WIRE_WINDOW && !transfer.is_ended);
    file_pause(job, false);
    CHECK(WORLD_UNTIL(world, transfer.is_ended) && transfer.content.length == 4 * MIB);
    /* One that is given up leaves its slot to others, however often. */
    for (int i = 0; i < 3 * FILES_AT_ONCE; i++) {
        buf_release(&transfer.content);
        transfer = (struct transfer){.content = buf_init(SIZE), .cancels = true};
        while (file_start(sandbox, &question, &callbacks, &transfer, &job, &transfer.err) < 0 &&
               transfer.err.code == ERROR_LIMIT)
            world_pass(world, 1);
        CHECK(WORLD_UNTIL(world, transfer.content.length > 0) && !transfer.is_ended);
    }
    CHECK(run_says(world, sandbox, "sleep 0.2; ls", "zeros\n"));
    buf_release(&transfer.content);
}

static void watches_folders(struct world *world)
{
    struct sandbox *sandbox = make(world);
    struct transfer transfer = {.content = buf_init(SIZE)};
    struct file_question question = about(WIRE_FILE_WATCH, ".");
    struct file_job *job = NULL;

    CHECK(file_start(sandbox, &question, &callbacks, &transfer, &job, &transfer.err) == 0);
    CHECK(WORLD_UNTIL(world, transfer.events == 1));
    CHECK(run_says(world, sandbox, "echo x > new; echo ok", "ok\n") && WORLD_UNTIL(world, transfer.events >= 3));
    sandbox_destroy(sandbox, SANDBOX_DESTROYED, NULL, NULL);
    CHECK(transfer.is_ended && engine_is_not_running(&transfer.err));
    buf_release(&transfer.content);
}

const struct engine_case engine_cases_files[] = {
    {"moves files", moves_files},
    {"says why a file can't be had", says_why_not},
    {"waits for who reads a file", waits_for_who_reads},
    {"watches folders", watches_folders},
    {NULL, NULL},
};
