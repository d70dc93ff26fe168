/*
 * line: what a line of HTTP/1 may look like, byte by byte, before llhttp sees it.
 *
 * llhttp 8.1 takes a lone CR for the end of a header (CVE-2023-30589), a lone LF for that of any line, and a line that
 * starts with a blank for a header of its own (CVE-2024-27982). Others on the way read such bytes differently, and that
 * is request smuggling. Here a line ends in CR LF and nowhere else, and contains no control character but a tab.
 *
 * Pure; lines may come in any pieces.
 */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum line_kind {
    LINE_REQUEST, /* a token and two other words, a single blank between them, nothing above ASCII; or nothing at all */
    LINE_HEADER,  /* a token, a colon, a value; or nothing at all */
    LINE_CHUNK,   /* hexadecimal digits, perhaps an extension */
    LINE_CHUNK_END, /* nothing at all */
};

struct line {
    enum line_kind kind;
    size_t most;     /* bytes, without its end */
    size_t length;   /* so far, without its end */
    unsigned blanks; /* of a request line: it has two, each for itself */
    bool has_front;  /* behind the token or the digits */
    bool has_blank;  /* the last byte was one */
    bool has_cr;
};

static inline struct line line_init(enum line_kind kind, size_t most)
{
    return (struct line){.kind = kind, .most = most};
}

/*
 * Look at the bytes up to the line's end. `*ret_used` of them are good. 1: they end the line; 0: it goes on; -EBADMSG:
 * the byte after them can't be there.
 */
_must_use_ int line_check(struct line *line, const uint8_t *data, size_t length, size_t *ret_used);
