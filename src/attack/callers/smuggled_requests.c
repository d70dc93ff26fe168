/*
 * smuggled-requests: two readers of one connection that do not agree where a request ends: what the first takes for
 * a body is a request to the second (CVE-2022-35256, CVE-2023-25690, CVE-2022-32213, CVE-2022-32214,
 * CVE-2022-32215).
 */
#include "attack/attack.h"
#include "attack/caller.h"

#include <string.h>

#define POST "POST /api/v1/sandboxes HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
#define SMUGGLED "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
#define CHUNKED "Transfer-Encoding: chunked\r\n"

static const struct {
    const char *what;
    const char *text;
} rows[] = {
    {"CL.TE", POST "Content-Length: 6\r\n" CHUNKED "\r\n0\r\n\r\n" SMUGGLED},
    {"TE.CL", POST CHUNKED "Content-Length: 4\r\n\r\n2a\r\n" SMUGGLED "\r\n0\r\n\r\n"},
    {"TE.TE, another name", POST CHUNKED "Transfer-encoding: x\r\n\r\n0\r\n\r\n" SMUGGLED},
    {"TE.TE, the same twice", POST CHUNKED CHUNKED "\r\n0\r\n\r\n" SMUGGLED},
    {"TE: xchunked", POST "Transfer-Encoding: xchunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n" SMUGGLED},
    {"TE: chunked, identity", POST "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n" SMUGGLED},
    {"TE: identity, chunked", POST "Transfer-Encoding: identity, chunked\r\n\r\n0\r\n\r\n" SMUGGLED},
    {"TE: identity", POST "Transfer-Encoding: identity\r\nContent-Length: 2\r\n\r\n{}" SMUGGLED},
    {"TE: chunked;x", POST "Transfer-Encoding: chunked;x\r\n\r\n0\r\n\r\n" SMUGGLED},
    {"TE in quotes", POST "Transfer-Encoding: \"chunked\"\r\n\r\n0\r\n\r\n" SMUGGLED},
    {"TE with a vertical tab", POST "Transfer-Encoding: \vchunked\r\n\r\n0\r\n\r\n" SMUGGLED},
    {"TE, a blank before the colon", POST "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n" SMUGGLED},
    {"TE after a bare LF", POST "X: y\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" SMUGGLED},
    {"TE after a bare CR", POST "X: y\rTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" SMUGGLED},
    {"TE on a folded line", POST "X: y\r\n Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n" SMUGGLED},
    {"TE, its value folded", POST "Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n" SMUGGLED},
    {"TE in HTTP/1.0", "POST /api/v1/sandboxes HTTP/1.0\r\nHost: localhost\r\n" CHUNKED "\r\n0\r\n\r\n" SMUGGLED},
    {"two lengths", POST "Content-Length: 2\r\nContent-Length: 42\r\n\r\n{}" SMUGGLED},
    {"the same length twice", POST "Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}" SMUGGLED},
    {"a list of lengths", POST "Content-Length: 2, 2\r\n\r\n{}" SMUGGLED},
    {"a length with a sign", POST "Content-Length: +2\r\n\r\n{}" SMUGGLED},
    {"a length below zero", POST "Content-Length: -1\r\n\r\n{}" SMUGGLED},
    {"a length in hexadecimal", POST "Content-Length: 0x2\r\n\r\n{}" SMUGGLED},
    {"a length with an underscore", POST "Content-Length: 1_0\r\n\r\n{}" SMUGGLED},
    {"an empty length", POST "Content-Length:\r\n\r\n{}" SMUGGLED},
    {"a length on a line that begins with a blank", POST " Content-Length: 2\r\n\r\n{}" SMUGGLED},
    {"a length with a NUL behind its name", POST "Content-Length\v: 2\r\n\r\n{}" SMUGGLED},
    {"a chunk's size with a sign", POST CHUNKED "\r\n+0\r\n\r\n" SMUGGLED},
    {"a chunk's size as 0x", POST CHUNKED "\r\n0x0\r\n\r\n" SMUGGLED},
    {"a chunk's size beyond 64 bits", POST CHUNKED "\r\n10000000000000000\r\n{}" SMUGGLED},
    {"a chunk that ends with LF", POST CHUNKED "\r\n2\n{}\n0\n\n" SMUGGLED},
    {"a chunk without its end", POST CHUNKED "\r\n2\r\n{}0\r\n\r\n" SMUGGLED},
    {"a bare LF in a chunk's extension (CVE-2025-22871)", POST CHUNKED "\r\n0;\n\r\n\r\n" SMUGGLED},
    {"a bare CR at a chunk's end", POST CHUNKED "\r\n0\r\r\n" SMUGGLED},
};

static void calls(struct attempt *attempt)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        caller_try_bytes(attempt, rows[i].what, rows[i].text, strlen(rows[i].text), STATUSES(400, 401, 501));
}

const struct attack attack_smuggled_requests = {
    .name = "smuggled-requests",
    .tries = "a request inside of another's body",
    .group = ATTACK_CALLERS,
    .calls = calls,
};
