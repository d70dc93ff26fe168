/*
 * writer: JSON for an answer, written straight into a buffer with a cap. Pure.
 *
 * A failure is remembered and told once, by writer_end(). `key` is NULL inside a list.
 */
#pragma once

#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>

struct writer {
    struct buf buf;
    int result;
    bool has_item; /* the next one needs a comma */
};

static inline struct writer writer_init(size_t cap)
{
    return (struct writer){.buf = buf_init(cap)};
}

static inline void writer_release(struct writer *writer)
{
    buf_release(&writer->buf);
}

void writer_open(struct writer *writer, const char *key, char bracket);
void writer_close(struct writer *writer, char bracket);

/* NULL is null; what is not UTF-8 becomes U+FFFD. */
void writer_text(struct writer *writer, const char *key, const char *text);
void writer_bytes(struct writer *writer, const char *key, const void *data, size_t length);
void writer_base64(struct writer *writer, const char *key, const void *data, size_t length);
void writer_number(struct writer *writer, const char *key, int64_t number);
void writer_milli(struct writer *writer, const char *key, uint64_t thousandths);
void writer_switch(struct writer *writer, const char *key, bool value);
void writer_null(struct writer *writer, const char *key);

/* ISO 8601 in UTC, from milliseconds since 1970; 0 is null. */
void writer_time(struct writer *writer, const char *key, uint64_t ms);
void writer_json(struct writer *writer, const char *key, const char *json);

/* 0 or -errno of the first failure. */
_must_use_ int writer_end(const struct writer *writer);
