/*
 * Patterns and commands as callers send them: the first line is a pattern, the rest a command. Whatever the pattern, it
 * is refused with a reason or looking for it ends; the default patterns look at the command too.
 */
#include "fuzz.h"
#include "gateway/policy/blocklist.h"

#include <stdlib.h>
#include <string.h>

static void check(const struct blocklist *list, const char *command, size_t length)
{
    struct blocklist_verdict verdict = blocklist_check(list, command, length);

    MUST(verdict.blocked == (verdict.pattern != NULL));
    MUST(verdict.blocked || !verdict.gave_up);
}

static void check_bare(const char *command, size_t length)
{
    char *bare = malloc(length + 1);

    MUST(bare != NULL && blocklist_bare(command, length, bare) <= length);
    free(bare);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    const char *end = size > 0 ? memchr(text, '\n', size) : NULL;
    size_t line = end != NULL ? (size_t)(end - text) + 1 : size;
    struct blocklist *list = NULL;
    struct error err = {0};

    MUST(blocklist_new(&list, &err) == 0);
    if (blocklist_add_lines(list, text, line, &err) < 0)
        MUST(err.message[0] != '\0' && err.err != 0);
    check(list, text + line, size - line);
    check_bare(text + line, size - line);
    MUST(blocklist_add_defaults(list, &err) == 0);
    check(list, text + line, size - line);
    blocklist_free(list);
    return 0;
}
