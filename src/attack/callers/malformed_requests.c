/*
 * malformed-requests: what is not quite HTTP/1.1, or something else altogether: refused with a reason, and not
 * guessed at (RFC 9112).
 */
#include "attack/attack.h"
#include "attack/caller.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HOST "Host: localhost\r\n"

enum { LARGE = 1 << 20 };

static const struct {
    const char *what;
    const char *text;
} rows[] = {
    {"lines that end with LF", "GET /healthz HTTP/1.1\nHost: localhost\n\n"},
    {"a folded line", "GET /healthz HTTP/1.1\r\n" HOST "X: a\r\n b\r\n\r\n"},
    {"a folded line at the start", "GET /healthz HTTP/1.1\r\n Host: localhost\r\n\r\n"},
    {"a blank before the colon", "GET /healthz HTTP/1.1\r\nHost : localhost\r\n\r\n"},
    {"a line without a colon", "GET /healthz HTTP/1.1\r\n" HOST "X\r\n\r\n"},
    {"a header without a name", "GET /healthz HTTP/1.1\r\n" HOST ": x\r\n\r\n"},
    {"a name with a bracket", "GET /healthz HTTP/1.1\r\n" HOST "X(): x\r\n\r\n"},
    {"no Host", "GET /healthz HTTP/1.1\r\n\r\n"},
    {"two Hosts", "GET /healthz HTTP/1.1\r\n" HOST "Host: evil.example\r\n\r\n"},
    {"a Host with a path", "GET /healthz HTTP/1.1\r\nHost: localhost/x\r\n\r\n"},
    {"a Host with a user", "GET /healthz HTTP/1.1\r\nHost: a@localhost\r\n\r\n"},
    {"another host in the target", "GET http://evil.example/healthz HTTP/1.1\r\n" HOST "\r\n"},
    {"two blanks", "GET  /healthz HTTP/1.1\r\n" HOST "\r\n"},
    {"a tab", "GET\t/healthz HTTP/1.1\r\n" HOST "\r\n"},
    {"a blank in the target", "GET /healthz x HTTP/1.1\r\n" HOST "\r\n"},
    {"no version", "GET /healthz\r\n\r\n"},
    {"HTTP/0.9", "GET /healthz HTTP/0.9\r\n" HOST "\r\n"},
    {"HTTP/1.2", "GET /healthz HTTP/1.2\r\n" HOST "\r\n"},
    {"HTTP/2.0", "GET /healthz HTTP/2.0\r\n" HOST "\r\n"},
    {"HTTP/2 from the start", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"},
    {"a version in small letters", "GET /healthz http/1.1\r\n" HOST "\r\n"},
    {"a method in small letters", "get /healthz HTTP/1.1\r\n" HOST "\r\n"},
    {"CONNECT", "CONNECT 127.0.0.1:22 HTTP/1.1\r\n" HOST "\r\n"},
    {"PURGE", "PURGE /healthz HTTP/1.1\r\n" HOST "\r\n"},
    {"*", "GET * HTTP/1.1\r\n" HOST "\r\n"},
    {"empty lines before it", "\r\n\r\n\r\nGET /healthz HTTP/1.1\r\n" HOST "\r\n"},
    {"an expectation", "GET /healthz HTTP/1.1\r\n" HOST "Expect: 200-maybe\r\n\r\n"},
    {"TLS", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n"},
    {"SSH", "SSH-2.0-OpenSSH_9.2\r\n\r\n"},
    {"SMTP", "EHLO localhost\r\nMAIL FROM:<a@b>\r\n\r\n"},
    {"Redis", "*1\r\n$4\r\nPING\r\n\r\n"},
};

/* Front, and then the same again and again. */
static void try_large(struct attempt *attempt, const char *what, const char *front, const char *word)
{
    static char text[LARGE];
    size_t n = strlen(front);

    memcpy(text, front, n + 1);
    for (size_t length = strlen(word); n + length < sizeof text; n += length)
        memcpy(text + n, word, length + 1);
    caller_try_bytes(attempt, what, text, n, STATUSES(400, 414, 431));
}

static void calls(struct attempt *attempt)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        caller_try_bytes(attempt, rows[i].what, rows[i].text, strlen(rows[i].text), STATUSES(400, 405, 417, 501, 505));
    try_large(attempt, "a target of 1 MiB", "GET /", "a");
    try_large(attempt, "a method of 1 MiB", "", "G");
    try_large(attempt, "a header of 1 MiB", "GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: ", "a");
    try_large(attempt, "1 MiB of headers", "GET /healthz HTTP/1.1\r\nHost: localhost\r\n", "X: a\r\n");
    try_large(attempt, "1 MiB of parameters", "GET /healthz?", "a&");
    try_large(attempt, "1 MiB of zeros", "", "\x01");
}

const struct attack attack_malformed_requests = {
    .name = "malformed-requests",
    .tries = "what is not quite HTTP",
    .group = ATTACK_CALLERS,
    .calls = calls,
};
