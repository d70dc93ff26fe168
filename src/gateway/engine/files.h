/*
 * files: operations on a sandbox's files as asynchronous streams, done by a process inside (init/files.h says what each
 * does). Used by the surfaces; the engine never touches a path itself.
 *
 * What comes back is checked as wire/answer.h says before anybody sees it. At most FILES_AT_ONCE operations are under
 * way in one sandbox.
 */
#pragma once

#include "gateway/engine/engine.h"
#include "wire/answer.h"

enum { FILES_AT_ONCE = 16 };

struct sandbox;
struct file_job;

/* Strings may be NULL: "" or, for folder, /workspace. */
struct file_question {
    enum wire_file_operation operation;
    uint32_t flags; /* WIRE_FILE_* */
    uint32_t uid;   /* and gid */
    uint32_t mode;
    uint64_t offset;
    uint64_t length; /* WIRE_FILE_ALL: all there is, or what is not known yet */
    const char *folder;
    const char *path;
    const char *new_path;
};

/* Any of them may call file_cancel(), after which none comes. All but `ended` may be NULL. */
struct file_callbacks {
    /* ENTRY, WRITTEN, EVENT or PROBLEM; its views live until the return */
    void (*record)(void *data, struct file_job *job, const struct wire_message *record);
    void (*content)(void *data, struct file_job *job, const uint8_t *content, size_t length);
    /* there is room for file_write() again */
    void (*room)(void *data, struct file_job *job);
    /*
     * The last. `err` is NULL when all went well; ERROR_NOT_FOUND, ERROR_DENIED, ERROR_LIMIT (no space), ERROR_INVALID
     * or ERROR_SYSTEM with the errno from inside otherwise. The job is gone after it.
     */
    void (*ended)(void *data, struct file_job *job, const struct error *err);
};

_must_use_ int file_start(struct sandbox *sandbox, const struct file_question *question,
                          const struct file_callbacks *callbacks, void *data, struct file_job **ret_job,
                          struct error *err);

/* Content of WRITE and APPEND: how much of it was taken. `end` counts only when all was. */
size_t file_write(struct file_job *job, const void *data, size_t length, bool end);

/* While paused at most WIRE_WINDOW bytes more come; then the worker waits. */
void file_pause(struct file_job *job, bool is_paused);

/* Nobody wants the answer any more. The operation is ended inside, wherever it is. */
void file_cancel(struct file_job *job);
