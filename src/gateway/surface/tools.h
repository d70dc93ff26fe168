/*
 * tools: what an agent may ask of its sandbox by POST .../tools/execute, in one table.
 */
#pragma once

#include "gateway/engine/sandbox.h"
#include "gateway/surface/call.h"
#include "gateway/surface/writer.h"

struct tool {
    const char *name;
    const char *description;
    const char *schema; /* of its arguments: JSON schema */
    bool is_default;    /* allowed where nothing was said of tools */
    void (*run)(struct call *call, struct sandbox *sandbox, const json_t *arguments);
};

const struct tool *tools_find(const char *name);
void tools_write_defaults(struct writer *writer);

/* {success, tool, result, duration_ms, exec_id}: open it, write the result's members, close it. */
void tools_open_answer(struct call *call, struct writer *writer, const char *tool, bool success);
void tools_close_answer(struct call *call, struct writer *writer);

/* tool_files.c */
void tool_file_read(struct call *call, struct sandbox *sandbox, const json_t *arguments);
void tool_file_write(struct call *call, struct sandbox *sandbox, const json_t *arguments);
void tool_file_list(struct call *call, struct sandbox *sandbox, const json_t *arguments);
