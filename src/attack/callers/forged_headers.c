/*
 * forged-headers: what a caller says about itself must not become a line of the log or a header of the answer
 * (CWE-93, CWE-117).
 */
#include "attack/attack.h"
#include "attack/caller.h"

#include <stdio.h>
#include <string.h>

#define LINE "time=2026-01-01T00:00:00.000Z level=info program=hutchd event=ready"

/* In a value that is let in, or refused. */
static const struct {
    const char *what;
    const char *path;
    const char *headers;
} rows[] = {
    {"an id with escapes", "/api/v1/tools", "X-Request-ID: a%0d%0aForged: yes\r\n"},
    {"an id with a blank", "/api/v1/tools", "X-Request-ID: a Forged: yes\r\n"},
    {"an id without end", "/api/v1/tools",
     "X-Request-ID: Forged-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n"},
    {"an agent with quotes", "/api/v1/tools", "X-Agent: \" level=error event=\"Forged\r\n"},
    {"an agent with a terminal's escapes", "/api/v1/tools", "X-Agent: \x1b[2JForged\r\n"},
    {"an agent with C1 escapes", "/api/v1/tools",
     "X-Agent: \xc2\x9b"
     "2JForged\r\n"},
    {"an agent that is no UTF-8", "/api/v1/tools", "X-Agent: \xff\xfe Forged\r\n"},
    {"a line in the path", "/Forged%0a" LINE, ""},
    {"a header in the path", "/x%0d%0aForged:%20yes", ""},
    {"a header in the query", "/api/v1/sandboxes?agent=%0d%0aForged:%20yes", ""},
    {"a header in an id", "/api/v1/sandboxes/%0d%0aForged:%20yes", ""},
    {"a program with a line", "/healthz", "User-Agent: x\" Forged\r\n"},
};

/* A line's end that is not one, in a value: refused whole. */
static const struct {
    const char *what;
    const char *text;
    size_t length;
} bad[] = {
#define ROW(what, value)                                                                                               \
    {                                                                                                                  \
        what, "GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Agent: " value "\r\n\r\n", 0                              \
    }
    ROW("a bare LF", "a\n" LINE),   ROW("a bare CR", "a\r" LINE),
    ROW("a form feed", "a\f" LINE), ROW("a backspace", "a\b\b\b" LINE),
    ROW("a delete", "a\x7f" LINE),  {"a NUL", "GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Agent: a\0b\r\n\r\n", 56},
};

static void try_row(struct attempt *attempt, size_t i)
{
    struct reply reply;
    int status =
        caller_ask(&(struct ask){.path = rows[i].path, .key = caller_key(), .headers = rows[i].headers}, &reply);

    attempt_say(attempt, rows[i].what, status != 0 && strcasestr(reply.head, "Forged") == NULL,
                status == 0 ? "no answer" : "it is a header of the answer");
    reply_release(&reply);
}

static void calls(struct attempt *attempt)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        try_row(attempt, i);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        caller_try_bytes(attempt, bad[i].what, bad[i].text, bad[i].length > 0 ? bad[i].length : strlen(bad[i].text),
                         STATUSES(400));
}

const struct attack attack_forged_headers = {
    .name = "forged-headers",
    .tries = "lines for the log and headers for the answer",
    .group = ATTACK_CALLERS,
    .calls = calls,
};
