/*
 * blocklist: regular expressions that a command must not match. Advice to honest agents; the boundary is the sandbox.
 *
 * Used by the gateway's engine, on the loop's thread. A list is made once and then only read; whoever changes it makes
 * another. Expressions come from people: each has a cap on its length, and matching has a cap on its time, its depth
 * and its memory, so that none can hold up the loop. A command that reaches such a cap is blocked, with that as the
 * reason.
 */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

enum { BLOCKLIST_PATTERNS_MAX = 512, BLOCKLIST_PATTERN_MAX = 1024, BLOCKLIST_COMMAND_MAX = 128 << 10 };

#define BLOCKLIST_DEFAULT "@default"

struct blocklist;

struct blocklist_verdict {
    bool blocked;
    const char *pattern; /* that matched; lives as long as the list */
    bool gave_up;        /* it did not match, but looking took too long */
};

_must_use_ int blocklist_new(struct blocklist **ret_list, struct error *err);
void blocklist_free(struct blocklist *list);

/* The patterns that come with Hutch, from policy/blocklist. */
_must_use_ int blocklist_add_defaults(struct blocklist *list, struct error *err);

/* One more, or, for BLOCKLIST_DEFAULT, those that come with Hutch. An expression that does not compile is -EINVAL, and
 * the error says where and why. */
_must_use_ int blocklist_add(struct blocklist *list, const char *pattern, struct error *err);

/* Patterns of a file, one per line, '#' at the start of a line for a comment. Errors name the line. */
_must_use_ int blocklist_add_lines(struct blocklist *list, const char *text, size_t length, struct error *err);

size_t blocklist_count(const struct blocklist *list);

/*
 * A command as the shell will read it; the words of an argument vector are joined with blanks for this. It is looked at
 * twice, as it is and bare. One that is longer than Linux passes to a shell is blocked. A list that is NULL blocks
 * nothing.
 */
struct blocklist_verdict blocklist_check(const struct blocklist *list, const char *command, size_t length);

/* The command without quotes and backslashes. `ret_bare` has room for `length` bytes. Pure. */
size_t blocklist_bare(const char *command, size_t length, char *ret_bare);
