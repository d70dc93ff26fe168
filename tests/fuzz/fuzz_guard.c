/*
 * What a sandbox sends on a connection to a.test: whole and in pieces it must come to the same, and what is let through
 * as HTTP names no other host. Nothing is free that a server could take for a request or for a record of TLS: the eyes
 * below are as lenient as the servers that we know.
 */
#include "airlock/guard.h"
#include "fuzz.h"

#include <string.h>

struct story {
    size_t passed;
    bool refused;
    enum guard_kind kind;
    char shown[NAME_SIZE];
};

/* As str.split() of Python. */
static bool ends_word(uint8_t c)
{
    return c == ' ' || (c >= 9 && c <= 13) || (c >= 28 && c <= 31) || c == 0x85 || c == 0xa0;
}

/* A letter first: the method of every server that takes more than Go does, which takes no control. */
static bool is_name(const uint8_t *word, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if ((word[i] | 32) < 'a' || (word[i] | 32) > 'z')
            return false;
    }
    return length > 0;
}

static bool is_request(const uint8_t *data, size_t size)
{
    const uint8_t *words[3] = {0};
    size_t lengths[3] = {0};
    size_t count = 0;
    size_t at = 0;

    while (at < size && ends_word(data[at]))
        at++;
    const uint8_t *end = memchr(data + at, '\n', size - at);
    if (end == NULL)
        return false;
    while (data + at < end && count < 3) {
        words[count] = data + at;
        while (data + at < end && !ends_word(data[at]))
            at++;
        lengths[count] = (size_t)(data + at - words[count]);
        count++;
        while (data + at < end && ends_word(data[at]))
            at++;
    }
    if (count < 2 || !is_name(words[0], lengths[0]))
        return false;
    return (count == 3 && lengths[2] >= 5 && memcmp(words[2], "HTTP/", 5) == 0) || words[1][0] == '/';
}

/* As Go reads the first record: an alert or a handshake, of a version below 16. */
static bool is_record(const uint8_t *data, size_t size)
{
    return size >= 2 && (data[0] == 21 || data[0] == 22) && data[1] < 16;
}

static void tell(const struct rules *rules, const uint8_t *data, size_t size, size_t piece, struct story *story)
{
    static uint8_t held[1 << 17];
    struct guard guard;
    size_t kept = 0;

    guard_init(&guard, rules, "a.test", 80);
    *story = (struct story){0};
    for (size_t at = 0; at < size && kept <= GUARD_HELD_MAX; at += piece) {
        size_t here = size - at < piece ? size - at : piece;
        memcpy(held + kept, data + at, here);
        kept += here;
        size_t cleared = guard_look(&guard, held, kept);
        MUST(cleared <= kept);
        MUST(kept - cleared <= GUARD_HELD_MAX);
        MUST(!guard.was_http || cleared == 0 || guard.shown[0] == '\0' || strcmp(guard.shown, "a.test") == 0 ||
             guard.refused);
        story->passed += cleared;
        kept -= cleared;
        memmove(held, held + cleared, kept);
    }
    MUST(guard.refused == (guard.why[0] != '\0'));
    /* The server says nothing here, so that nothing that names one is ever free. */
    MUST(guard.kind != GUARD_FREE || guard.refused || (!is_request(data, size) && !is_record(data, size)));
    MUST(guard.kind != GUARD_FREE || guard.refused || guard.shown[0] == '\0');
    MUST(guard.kind != GUARD_UNKNOWN || memchr(held, '\n', guard.ahead) == NULL || ends_word(data[0]));
    story->refused = guard.refused;
    story->kind = guard.kind;
    memcpy(story->shown, guard.shown, sizeof story->shown);
    guard_release(&guard);
}

/* The server wants TLS, the hello again, and no other protocol: even then only a.test is shown. */
static void tell_answered(const struct rules *rules, const uint8_t *data, size_t size)
{
    static const uint8_t retry[43] = {22,   3,    3,    0,    90,   2,    0,    0,    86,   3,    3,
                                      0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c,
                                      0x02, 0x1e, 0x65, 0xb8, 0x91, 0xc2, 0xa2, 0x11, 0x16, 0x7a, 0xbb,
                                      0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c};
    struct guard guard;

    guard_init(&guard, rules, "a.test", 80);
    do {
        enum guard_wait before = guard.waits;
        if (before == GUARD_ANSWER)
            guard_hear(&guard, retry, sizeof retry);
        else if (before == GUARD_OFFER)
            guard_hear(&guard, (const uint8_t *)"S", 1);
        else if (before == GUARD_UPGRADE)
            guard_hear(&guard, (const uint8_t *)"HTTP/1.1 200", 12);
        MUST(guard.waits == GUARD_NOTHING);
        size_t cleared = guard_look(&guard, data, size);
        MUST(cleared <= size);
        data += cleared;
        size -= cleared;
    } while (guard.waits != GUARD_NOTHING);
    MUST(guard.refused || guard.shown[0] == '\0' || strcmp(guard.shown, "a.test") == 0);
    (void)guard_look_last(&guard, data, size);
    MUST(guard.kind != GUARD_UNKNOWN || guard.refused || size == 0);
    guard_release(&guard);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rules *rules = NULL;
    struct error err;
    struct story whole;
    struct story pieces;

    if (size > 1 << 15)
        return 0;
    MUST(rules_new(RULES_ALLOWLIST, &rules, &err) == 0);
    tell(rules, data, size, size > 0 ? size : 1, &whole);
    tell(rules, data, size, 1 + size % 5, &pieces);
    tell_answered(rules, data, size);
    MUST(whole.kind == pieces.kind);
    /* A hello is looked at only when enough has come, and one that is bad may never have. */
    MUST(whole.refused == pieces.refused || whole.kind == GUARD_TLS);
    /* Of a body that turns out to be bad the good part may have gone. */
    MUST(whole.passed == pieces.passed || (whole.refused && whole.kind == GUARD_HTTP));
    MUST(strcmp(whole.shown, pieces.shown) == 0);
    rules_free(rules);
    return 0;
}
