/*
 * What a sandbox sends on a connection to a.test: whole and in pieces it must come to the same, and what is let through
 * as HTTP names no other host.
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
    story->refused = guard.refused;
    story->kind = guard.kind;
    memcpy(story->shown, guard.shown, sizeof story->shown);
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
    MUST(whole.kind == pieces.kind);
    /* A hello is looked at only when enough has come, and one that is bad may never have. */
    MUST(whole.refused == pieces.refused || whole.kind == GUARD_TLS);
    MUST(whole.passed == pieces.passed);
    MUST(strcmp(whole.shown, pieces.shown) == 0);
    rules_free(rules);
    return 0;
}
