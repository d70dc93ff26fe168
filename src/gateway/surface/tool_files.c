#include "base/cleanup.h"
#include "gateway/surface/plan.h"
#include "gateway/surface/tools.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    READ_MAX = 16 << 20, /* larger files are to be downloaded */
    LIST_ENTRIES_MAX = 10000,
    PATH_MAX_BYTES = 4095,
    FILE_MODE = 0644,
    MODE_BITS = 07777,
    NS_PER_MS = 1000000,
};

struct file_body {
    const char *path;
    const char *encoding;
    const char *content;
    const char *mode;
    struct body_switch recursive;
};

#define AT(member) offsetof(struct file_body, member)
#define PATH(required)                                                                                                 \
    {                                                                                                                  \
        "path", BODY_TEXT, AT(path), required, 1, PATH_MAX_BYTES, NULL, NULL                                           \
    }
#define ENCODING                                                                                                       \
    {                                                                                                                  \
        "encoding", BODY_TEXT, AT(encoding), false, 0, 0, "utf-8|base64", NULL                                         \
    }

static const struct body_field read_items[] = {PATH(true), ENCODING};
static const struct body_field write_items[] = {
    PATH(true),
    ENCODING,
    {"content", BODY_TEXT, AT(content), true, 0, INT64_MAX, NULL, NULL},
    {"mode", BODY_TEXT, AT(mode), false, 1, 5, NULL, NULL},
};
static const struct body_field list_items[] = {
    PATH(false),
    {"recursive", BODY_SWITCH, AT(recursive), false, 0, 0, NULL, NULL},
};

struct file_call {
    struct call *call;
    struct file_body body;
    struct file_job *job;
    struct buf content; /* that was read */
    uint64_t size;
    uint8_t *decoded;
    const uint8_t *data; /* to be written */
    size_t left;
    uint64_t written;
    struct writer writer; /* of a listing */
    size_t entries;
    bool is_cut;
};

static void release(struct file_call *file)
{
    buf_release(&file->content);
    writer_release(&file->writer);
    free(file->decoded);
    file->decoded = NULL;
    file->call->request->events = NULL;
}

static void client_gone(struct request *request)
{
    struct call *call = call_of(request);
    struct file_call *file = call->state;

    file_cancel(file->job);
    release(file);
    call->verdict = STORE_FAILED;
    call_answer_empty(call, 499);
}

static const struct request_events events = {.gone = client_gone};

static struct file_call *begin(struct call *call, const json_t *arguments, const struct body_fields *fields)
{
    struct file_call *file = call_alloc(call, sizeof *file);
    struct error err = {0};

    if (file == NULL)
        return NULL;
    file->call = call;
    file->content = buf_init(READ_MAX);
    call->state = file;
    if (body_take(arguments, "arguments", fields, &file->body, &err) < 0) {
        call_fail(call, &err);
        return NULL;
    }
    writer_text(call_detail(call), "file", file->body.path);
    return file;
}

static void start(struct file_call *file, struct sandbox *sandbox, struct file_question *question,
                  const struct file_callbacks *callbacks)
{
    struct call *call = file->call;
    struct error err = {0};

    question->uid = plan_user(sandbox);
    question->path = file->body.path;
    if (file_start(sandbox, question, callbacks, file, &file->job, &err) < 0) {
        release(file);
        call_fail_file(call, &err);
        return;
    }
    call->request->events = &events;
}

static bool failed(struct file_call *file, const struct error *err)
{
    if (err == NULL)
        return false;
    release(file);
    call_fail_file(file->call, err);
    return true;
}

static bool is_base64(const struct file_call *file)
{
    return file->body.encoding != NULL && strcmp(file->body.encoding, "base64") == 0;
}

static void too_large(struct file_call *file)
{
    file_cancel(file->job);
    release(file);
    call_refuse(file->call, 413, "too_large", "%s is larger than %d MiB; download it instead: GET .../files/{path}",
                file->body.path, READ_MAX >> 20);
}

static void read_entry(void *data, struct file_job *job __attribute__((unused)), const struct wire_message *record)
{
    struct file_call *file = data;

    if (record->type != WIRE_ENTRY)
        return;
    file->size = record->entry.size;
    if (file->size > READ_MAX)
        too_large(file);
}

static void read_content(void *data, struct file_job *job __attribute__((unused)), const uint8_t *content,
                         size_t length)
{
    struct file_call *file = data;

    if (buf_append(&file->content, content, length) < 0)
        too_large(file);
}

static void read_ended(void *data, struct file_job *job __attribute__((unused)), const struct error *err)
{
    struct file_call *file = data;
    struct writer writer = writer_init(CALL_ANSWER_MAX);

    if (failed(file, err))
        return;
    tools_open_answer(file->call, &writer, "file_read", true);
    if (is_base64(file))
        writer_base64(&writer, "content", file->content.data, file->content.length);
    else
        writer_bytes(&writer, "content", file->content.data, file->content.length);
    writer_number(&writer, "size", (int64_t)file->content.length);
    release(file);
    tools_close_answer(file->call, &writer);
}

void tool_file_read(struct call *call, struct sandbox *sandbox, const json_t *arguments)
{
    static const struct file_callbacks callbacks = {.record = read_entry, .content = read_content, .ended = read_ended};
    struct file_question question = {.operation = WIRE_FILE_READ, .length = WIRE_FILE_ALL};
    struct file_call *file = begin(call, arguments, &BODY_FIELDS(read_items));

    if (file != NULL)
        start(file, sandbox, &question, &callbacks);
}

static void write_more(void *data, struct file_job *job)
{
    struct file_call *file = data;
    size_t taken = file_write(job, file->data, file->left, true);

    file->data += taken;
    file->left -= taken;
}

static void write_told(void *data, struct file_job *job __attribute__((unused)), const struct wire_message *record)
{
    struct file_call *file = data;

    if (record->type == WIRE_WRITTEN)
        file->written = record->written.bytes;
}

static void write_ended(void *data, struct file_job *job __attribute__((unused)), const struct error *err)
{
    struct file_call *file = data;
    struct writer writer = writer_init(CALL_ANSWER_MAX);

    if (failed(file, err))
        return;
    tools_open_answer(file->call, &writer, "file_write", true);
    writer_text(&writer, "path", file->body.path);
    writer_number(&writer, "bytes_written", (int64_t)file->written);
    release(file);
    tools_close_answer(file->call, &writer);
}

/* w, a, or permissions in octal, which a file that is there gets too: so it is written anew then. */
static int take_mode(const struct file_call *file, struct file_question *question)
{
    const char *mode = file->body.mode;
    char *end = NULL;

    if (mode == NULL || strcmp(mode, "w") == 0)
        return 0;
    if (strcmp(mode, "a") == 0) {
        question->operation = WIRE_FILE_APPEND;
        return 0;
    }
    unsigned long bits = strtoul(mode, &end, 8);
    if (*end != '\0' || *mode < '0' || *mode > '7' || bits > MODE_BITS) {
        call_refuse(file->call, 400, "invalid_request",
                    "arguments.mode: must be w, a, or permissions in octal such as 0755");
        return -EINVAL;
    }
    question->mode = (uint32_t)bits;
    question->flags |= WIRE_FILE_ATOMIC;
    return 0;
}

static int take_content(struct file_call *file)
{
    size_t length = strlen(file->body.content);
    const char *end = NULL;

    file->data = (const uint8_t *)file->body.content;
    file->left = length;
    if (!is_base64(file))
        return 0;
    file->decoded = malloc(length + 1);
    if (file->decoded != NULL &&
        sodium_base642bin(file->decoded, length + 1, file->body.content, length, NULL, &file->left, &end,
                          sodium_base64_VARIANT_ORIGINAL) == 0 &&
        *end == '\0') {
        file->data = file->decoded;
        return 0;
    }
    release(file);
    call_refuse(file->call, 400, "invalid_request", "arguments.content: is not base64");
    return -EINVAL;
}

void tool_file_write(struct call *call, struct sandbox *sandbox, const json_t *arguments)
{
    static const struct file_callbacks callbacks = {.record = write_told, .room = write_more, .ended = write_ended};
    struct file_question question = {
        .operation = WIRE_FILE_WRITE, .flags = WIRE_FILE_PARENTS, .mode = FILE_MODE, .length = WIRE_FILE_ALL};
    struct file_call *file = begin(call, arguments, &BODY_FIELDS(write_items));

    if (file == NULL || take_mode(file, &question) < 0 || take_content(file) < 0)
        return;
    question.length = file->left;
    start(file, sandbox, &question, &callbacks);
    if (call->request->events == &events)
        write_more(file, file->job);
}

static void answer_listing(struct file_call *file)
{
    struct writer writer = file->writer;

    file->writer = writer_init(0);
    writer_close(&writer, ']');
    writer_switch(&writer, "truncated", file->is_cut);
    release(file);
    tools_close_answer(file->call, &writer);
}

static void write_entry(struct file_call *file, const struct wire_entry *entry)
{
    static const char *const types[WIRE_ENTRY_KINDS] = {"file", "directory", "symlink", "fifo", "socket", "device"};
    const char *slash = strrchr(entry->name.text, '/');
    struct writer *writer = &file->writer;
    char mode[8];

    (void)snprintf(mode, sizeof mode, "%04o", entry->mode & MODE_BITS);
    writer_open(writer, NULL, '{');
    writer_text(writer, "name", slash != NULL ? slash + 1 : entry->name.text);
    writer_text(writer, "path", entry->name.text);
    writer_text(writer, "type", entry->kind < WIRE_ENTRY_KINDS ? types[entry->kind] : "unknown");
    writer_number(writer, "size", (int64_t)entry->size);
    writer_text(writer, "mode", mode);
    writer_time(writer, "mtime", entry->modified_ns / NS_PER_MS);
    if (entry->kind == WIRE_ENTRY_SYMLINK)
        writer_text(writer, "target", entry->target.text);
    writer_close(writer, '}');
}

static void list_entry(void *data, struct file_job *job, const struct wire_message *record)
{
    struct file_call *file = data;

    if (record->type != WIRE_ENTRY)
        return;
    if (file->entries++ < LIST_ENTRIES_MAX) {
        write_entry(file, &record->entry);
        return;
    }
    file->is_cut = true;
    file_cancel(job);
    answer_listing(file);
}

static void list_ended(void *data, struct file_job *job __attribute__((unused)), const struct error *err)
{
    struct file_call *file = data;

    /* Folders below that can't be read leave a listing that is still of use. */
    if (err != NULL && file->entries == 0 && failed(file, err))
        return;
    answer_listing(file);
}

void tool_file_list(struct call *call, struct sandbox *sandbox, const json_t *arguments)
{
    static const struct file_callbacks callbacks = {.record = list_entry, .ended = list_ended};
    struct file_question question = {.operation = WIRE_FILE_LIST};
    struct file_call *file = begin(call, arguments, &BODY_FIELDS(list_items));

    if (file == NULL)
        return;
    if (file->body.path == NULL)
        file->body.path = ".";
    if (file->body.recursive.value)
        question.flags |= WIRE_FILE_RECURSIVE;
    file->writer = writer_init(CALL_ANSWER_MAX);
    tools_open_answer(call, &file->writer, "file_list", true);
    writer_open(&file->writer, "entries", '[');
    start(file, sandbox, &question, &callbacks);
}
