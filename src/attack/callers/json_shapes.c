/*
 * json-shapes: bodies that parsers disagree about, run out of stack on, or turn into something else: refused, each
 * with a reason.
 */
#include "attack/attack.h"
#include "attack/caller.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LARGE = 4 << 20 };

static const struct {
    const char *what;
    const char *body;
} rows[] = {
    {"a key twice", "{\"user\":\"nobody\",\"user\":\"root\"}"},
    {"a key twice, escaped", "{\"user\":\"nobody\",\"\\u0075ser\":\"root\"}"},
    {"a key twice, below", "{\"env\":{\"A\":\"1\",\"A\":\"2\"}}"},
    {"1e999", "{\"resource_limits\":{\"cpu\":1e999}}"},
    {"a number without end", "{\"resource_limits\":{\"memory_mb\":99999999999999999999999999}}"},
    {"a number below zero", "{\"resource_limits\":{\"memory_mb\":-1}}"},
    {"NaN", "{\"resource_limits\":{\"cpu\":NaN}}"},
    {"a hexadecimal number", "{\"resource_limits\":{\"cpu\":0x1}}"},
    {"a lone high surrogate", "{\"user\":\"\\ud800\"}"},
    {"a lone low surrogate", "{\"user\":\"\\udc00\"}"},
    {"surrogates the wrong way round", "{\"user\":\"\\udc00\\ud800\"}"},
    {"a NUL, escaped", "{\"user\":\"nobody\\u0000root\"}"},
    {"no UTF-8", "{\"user\":\"\xff\xfe\"}"},
    {"a slash that is too long", "{\"template\":\"\xc0\xaf\"}"},
    {"a surrogate as UTF-8", "{\"user\":\"\xed\xa0\x80\"}"},
    {"a comment", "{/* */}"},
    {"a comma at the end", "{\"user\":\"nobody\",}"},
    {"quotes that are none", "{'user':'nobody'}"},
    {"something behind it", "{} {}"},
    {"a mark of byte order", "\xef\xbb\xbf{}"},
    {"no object", "[]"},
    {"no end", "{\"user\":"},
    {"a field that there is not", "{\"__proto__\":{\"user\":\"root\"}}"},
    {"another type", "{\"user\":{\"$ne\":\"nobody\"}}"},
    {"null", "{\"user\":null}"},
};

static void try_repeated(struct attempt *attempt, const char *what, const char *front, const char *word, size_t count)
{
    static char text[LARGE];
    size_t length = strlen(word);
    size_t n = strlen(front);

    memcpy(text, front, n);
    for (size_t i = 0; i < count && n + length < sizeof text; i++, n += length)
        memcpy(text + n, word, length);
    text[n] = '\0';
    caller_try(attempt, what,
               &(struct ask){.method = "POST", .path = "/api/v1/sandboxes", .key = caller_key(), .body = text},
               STATUSES(400, 413));
}

static void calls(struct attempt *attempt)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        caller_try(
            attempt, rows[i].what,
            &(struct ask){.method = "POST", .path = "/api/v1/sandboxes", .key = caller_key(), .body = rows[i].body},
            STATUSES(400, 422));
    try_repeated(attempt, "10,000 lists in each other", "{\"files\":", "[", 10000);
    try_repeated(attempt, "10,000 objects in each other", "", "{\"a\":", 10000);
    try_repeated(attempt, "a million values", "{\"tools\":[", "0,", 1000000);
    try_repeated(attempt, "100,000 keys of one hash", "{", "\"\":0,", 100000);
    try_repeated(attempt, "4 MiB of blanks", "{", " ", LARGE);
    try_repeated(attempt, "a string of 4 MiB", "{\"user\":\"", "\\", LARGE);
}

const struct attack attack_json_shapes = {
    .name = "json-shapes",
    .tries = "bodies that parsers disagree about",
    .group = ATTACK_CALLERS,
    .calls = calls,
};
