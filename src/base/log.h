/*
 * log: structured lines on standard error, one write each: `time=... level=info event=listening address=...` or JSON.
 *
 * Used by programs, never by libraries. Nobody hands it a secret: callers choose every field by name.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum log_level { LOG_LEVEL_DEBUG, LOG_LEVEL_INFO, LOG_LEVEL_WARN, LOG_LEVEL_ERROR, LOG_LEVELS };
enum log_format { LOG_FORMAT_TEXT, LOG_FORMAT_JSON, LOG_FORMATS };

struct log {
    int fd;
    enum log_level level; /* what is below is left out */
    enum log_format format;
    const char *program;
};

struct log_field {
    const char *name;
    const char *text; /* NULL: a number */
    uint64_t number;
};

#define LOG_TEXT(key, value) ((struct log_field){.name = (key), .text = (value)})
#define LOG_NUMBER(key, value) ((struct log_field){.name = (key), .number = (uint64_t)(value)})

void log_write(const struct log *log, enum log_level level, const char *event, const struct log_field *fields,
               size_t count);

/* log_event(&log, LOG_LEVEL_INFO, "listening", LOG_TEXT("address", address)) */
#define log_event(log, level, event, ...)                                                                              \
    log_write((log), (level), (event), (const struct log_field[]){__VA_ARGS__},                                        \
              sizeof((const struct log_field[]){__VA_ARGS__}) / sizeof(struct log_field))

const char *log_level_name(enum log_level level);
