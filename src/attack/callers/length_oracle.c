/*
 * length-oracle: answers to wrong keys must not say how much of a key was right, or what kind of wrong it was: all
 * are alike, byte for byte in length.
 */
#include "attack/attack.h"
#include "attack/caller.h"

#include <stdio.h>
#include <string.h>

static size_t length_of(const char *headers)
{
    struct reply reply;
    int status = caller_ask(&(struct ask){.path = "/api/v1/keys", .headers = headers}, &reply);
    size_t length = status == 401 ? strlen(reply.head) + (size_t)reply.body_bytes : 0;

    reply_release(&reply);
    return length;
}

static void try_prefix(struct attempt *attempt, size_t right, size_t usual)
{
    char headers[256];
    char what[64];
    char guess[128];
    size_t length = strlen(caller_key());

    (void)snprintf(guess, sizeof guess, "%s", caller_key());
    for (size_t i = right; i < length; i++)
        guess[i] = 'z';
    (void)snprintf(headers, sizeof headers, "Authorization: Bearer %s\r\n", guess);
    (void)snprintf(what, sizeof what, "a key of which %zu bytes are right", right);
    size_t now = length_of(headers);
    attempt_say(attempt, what, now == usual && now > 0, "%zu bytes of answer instead of %zu", now, usual);
}

static void calls(struct attempt *attempt)
{
    size_t length = strlen(caller_key());
    size_t usual = length_of("Authorization: Bearer a\r\n");

    for (size_t right = 0; right < length; right += right < 4 ? 1 : 8)
        try_prefix(attempt, right, usual);
    try_prefix(attempt, length - 1, usual);
    size_t wrong = length_of("Authorization: Basic YWRtaW46YWRtaW4=\r\n");
    size_t nobody = length_of("Authorization: Basic bm9ib2R5OmFkbWlu\r\n");
    attempt_say(attempt, "a user that there is not", wrong == nobody && wrong > 0, "%zu bytes of answer, else %zu",
                nobody, wrong);
}

const struct attack attack_length_oracle = {
    .name = "length-oracle",
    .tries = "how answers to wrong keys differ",
    .group = ATTACK_CALLERS,
    .calls = calls,
};
