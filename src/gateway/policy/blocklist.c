#define PCRE2_CODE_UNIT_WIDTH 8

#include "gateway/policy/blocklist.h"

#include "base/cleanup.h"

#include <pcre2.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/*
 * An expression is people's, and perhaps made to take for ever. PCRE2's own limits count steps back, not the time that
 * a long text takes for each: `(?=a.*[0-9])` looks at all of the rest from each place, 40 s for 128 KiB. So those that
 * are not ours call out at each of their parts, and there the clock is looked at.
 */
enum {
    MATCH_LIMIT = 1000000,
    DEPTH_LIMIT = 20000,
    HEAP_LIMIT_KIB = 4096,
    PARENTHESES_MAX = 50,
    REASON_MAX = 120,
    BUDGET_NS = 20000000, /* of all expressions of others together */
    LOOK_EVERY = 16,
};

static const char defaults[] = {
#include "blocklist.inc"
};

struct pattern {
    char *text;
    pcre2_code *code;
};

struct blocklist {
    pcre2_compile_context *compile;
    pcre2_match_context *match;
    pcre2_match_data *data;
    struct pattern patterns[BLOCKLIST_PATTERNS_MAX];
    size_t count;
};

struct budget {
    uint64_t until_ns;
    uint32_t calls;
};

/* CPU time of this thread: that others want the CPU makes no command suspect. */
static uint64_t own_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

static int watch(pcre2_callout_block *block, void *data)
{
    struct budget *budget = data;

    (void)block;
    budget->calls++;
    return budget->calls % LOOK_EVERY == 0 && own_ns() > budget->until_ns ? PCRE2_ERROR_CALLOUT : 0;
}

int blocklist_new(struct blocklist **ret_list, struct error *err)
{
    struct blocklist *list = calloc(1, sizeof *list);

    if (list == NULL)
        return error_set(err, ERROR_SYSTEM, ENOMEM, "making a list of commands");
    list->compile = pcre2_compile_context_create(NULL);
    list->match = pcre2_match_context_create(NULL);
    list->data = pcre2_match_data_create(1, NULL);
    if (list->compile == NULL || list->match == NULL || list->data == NULL) {
        blocklist_free(list);
        return error_set(err, ERROR_SYSTEM, ENOMEM, "making a list of commands");
    }
    (void)pcre2_set_max_pattern_length(list->compile, BLOCKLIST_PATTERN_MAX);
    (void)pcre2_set_parens_nest_limit(list->compile, PARENTHESES_MAX);
    (void)pcre2_set_match_limit(list->match, MATCH_LIMIT);
    (void)pcre2_set_depth_limit(list->match, DEPTH_LIMIT);
    (void)pcre2_set_heap_limit(list->match, HEAP_LIMIT_KIB);
    *ret_list = list;
    return 0;
}

void blocklist_free(struct blocklist *list)
{
    if (list == NULL)
        return;
    for (size_t i = 0; i < list->count; i++) {
        pcre2_code_free(list->patterns[i].code);
        free(list->patterns[i].text);
    }
    pcre2_match_data_free(list->data);
    pcre2_match_context_free(list->match);
    pcre2_compile_context_free(list->compile);
    free(list);
}

size_t blocklist_count(const struct blocklist *list)
{
    return list != NULL ? list->count : 0;
}

static int add(struct blocklist *list, const char *pattern, size_t length, uint32_t watched, struct error *err)
{
    char reason[REASON_MAX] = "";
    int code = 0;
    PCRE2_SIZE offset = 0;

    if (list->count == BLOCKLIST_PATTERNS_MAX)
        return error_set(err, ERROR_LIMIT, ENOBUFS, "more than %d patterns", BLOCKLIST_PATTERNS_MAX);
    if (length == 0 || length > BLOCKLIST_PATTERN_MAX)
        return error_set(err, ERROR_INVALID, EINVAL, "a pattern must have 1 to %d characters", BLOCKLIST_PATTERN_MAX);
    _cleanup_free_ char *text = strndup(pattern, length);
    if (text == NULL)
        return error_set(err, ERROR_SYSTEM, ENOMEM, "adding a pattern");
    pcre2_code *compiled =
        pcre2_compile((PCRE2_SPTR)pattern, length,
                      PCRE2_UTF | PCRE2_MATCH_INVALID_UTF | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C | watched, &code,
                      &offset, list->compile);
    if (compiled == NULL) {
        (void)pcre2_get_error_message(code, (PCRE2_UCHAR *)reason, sizeof reason);
        (void)error_set(err, ERROR_INVALID, 0, "the pattern %.160s is wrong at character %zu: %s", text,
                        (size_t)offset + 1, reason);
        err->err = EINVAL;
        return -EINVAL;
    }
    /* Where there is no memory that may be executed, it is interpreted. */
    (void)pcre2_jit_compile(compiled, PCRE2_JIT_COMPLETE);
    list->patterns[list->count++] = (struct pattern){.text = TAKE_PTR(text), .code = compiled};
    return 0;
}

static int add_lines(struct blocklist *list, const char *text, size_t length, uint32_t watched, struct error *err)
{
    size_t line = 1;

    for (size_t at = 0; at < length; line++) {
        const char *end = memchr(text + at, '\n', length - at);
        size_t span = end != NULL ? (size_t)(end - text) - at : length - at;
        size_t whole = span > 0 && text[at + span - 1] == '\r' ? span - 1 : span;
        int r = whole > 0 && text[at] != '#' ? add(list, text + at, whole, watched, err) : 0;
        if (r < 0) {
            error_wrap(err, "line %zu", line);
            return r;
        }
        at += span + 1;
    }
    return 0;
}

int blocklist_add_lines(struct blocklist *list, const char *text, size_t length, struct error *err)
{
    return add_lines(list, text, length, PCRE2_AUTO_CALLOUT, err);
}

int blocklist_add_defaults(struct blocklist *list, struct error *err)
{
    return add_lines(list, defaults, sizeof defaults, 0, err);
}

int blocklist_add(struct blocklist *list, const char *pattern, struct error *err)
{
    if (strcmp(pattern, BLOCKLIST_DEFAULT) == 0)
        return blocklist_add_defaults(list, err);
    return add(list, pattern, strlen(pattern), PCRE2_AUTO_CALLOUT, err);
}

/* $IFS and ${IFS} are how blanks are written by those who hide them. */
static size_t blank_length(const char *text, size_t length)
{
    static const char *const forms[] = {"${IFS}", "$IFS"};

    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        size_t form = strlen(forms[i]);
        if (length >= form && memcmp(text, forms[i], form) == 0)
            return form;
    }
    return 0;
}

size_t blocklist_bare(const char *command, size_t length, char *ret_bare)
{
    size_t bare = 0;

    for (size_t i = 0; i < length; i++) {
        size_t blank = blank_length(command + i, length - i);
        if (blank > 0) {
            ret_bare[bare++] = ' ';
            i += blank - 1;
        } else if (command[i] == '\\' && i + 1 < length) {
            i++;
            if (command[i] != '\n')
                ret_bare[bare++] = command[i];
        } else if (command[i] != '\'' && command[i] != '"' && command[i] != '\\') {
            ret_bare[bare++] = command[i];
        }
    }
    return bare;
}

static struct blocklist_verdict look(const struct blocklist *list, const char *text, size_t length)
{
    for (size_t i = 0; i < list->count; i++) {
        int r = pcre2_match(list->patterns[i].code, (PCRE2_SPTR)text, length, 0, 0, list->data, list->match);
        if (r != PCRE2_ERROR_NOMATCH)
            return (struct blocklist_verdict){
                .blocked = true, .pattern = list->patterns[i].text, .gave_up = r < PCRE2_ERROR_NOMATCH};
    }
    return (struct blocklist_verdict){0};
}

static struct blocklist_verdict look_twice(const struct blocklist *list, const char *command, size_t length, char *bare)
{
    struct budget budget = {.until_ns = own_ns() + BUDGET_NS};

    (void)pcre2_set_callout(list->match, watch, &budget);
    struct blocklist_verdict verdict = look(list, command, length);
    size_t bare_length = blocklist_bare(command, length, bare);
    if (verdict.blocked || (bare_length == length && memcmp(bare, command, length) == 0))
        return verdict;
    return look(list, bare, bare_length);
}

struct blocklist_verdict blocklist_check(const struct blocklist *list, const char *command, size_t length)
{
    if (list == NULL || list->count == 0)
        return (struct blocklist_verdict){0};
    char *bare = length <= BLOCKLIST_COMMAND_MAX ? malloc(length + 1) : NULL;
    if (bare == NULL)
        return (struct blocklist_verdict){.blocked = true, .pattern = list->patterns[0].text, .gave_up = true};
    struct blocklist_verdict verdict = look_twice(list, command, length, bare);
    free(bare);
    return verdict;
}
