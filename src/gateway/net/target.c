#include "gateway/net/target.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* The byte of the escape at `text`, which starts with `%`, or -EINVAL. */
static int unescape(const char *text, const char *end)
{
    if (end - text < 3)
        return -EINVAL;
    int high = hex_digit(text[1]);
    int low = hex_digit(text[2]);
    return high < 0 || low < 0 ? -EINVAL : high * 16 + low;
}

/* What a URI may not contain unescaped and what our own readers would stumble over. */
static bool is_allowed(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c <= 0x20 || c >= 0x7f || c == '#' || c == '\\')
            return false;
    }
    return true;
}

/* No segment is `.` or `..`. */
static bool has_plain_segments(const char *path, size_t length)
{
    size_t start = 1;

    for (size_t i = 1; i <= length; i++) {
        if (i < length && path[i] != '/')
            continue;
        size_t segment = i - start;
        if ((segment == 1 && path[start] == '.') || (segment == 2 && path[start] == '.' && path[start + 1] == '.'))
            return false;
        start = i + 1;
    }
    return true;
}

static int decode_path(const char *raw, size_t length, struct arena *arena, struct target *target)
{
    const char *end = raw + length;
    char *path = arena_alloc(arena, length + 1);
    size_t n = 0;

    if (path == NULL)
        return -ENOMEM;
    while (raw < end) {
        int c = *raw == '%' ? unescape(raw, end) : (unsigned char)*raw;
        if (c < 0 || c == '\0' || (*raw == '%' && c == '/'))
            return -EINVAL;
        raw += *raw == '%' ? 3 : 1;
        path[n++] = (char)c;
    }
    path[n] = '\0';
    if (!has_plain_segments(path, n))
        return -EINVAL;
    target->path = path;
    target->path_length = n;
    return 0;
}

static int decode_word(const char *raw, size_t length, struct arena *arena, const char **ret_word)
{
    const char *end = raw + length;
    char *word = arena_alloc(arena, length + 1);
    size_t n = 0;

    if (word == NULL)
        return -ENOMEM;
    while (raw < end) {
        int c = *raw == '%' ? unescape(raw, end) : *raw == '+' ? ' ' : (unsigned char)*raw;
        if (c <= 0)
            return -EINVAL;
        raw += *raw == '%' ? 3 : 1;
        word[n++] = (char)c;
    }
    word[n] = '\0';
    *ret_word = word;
    return 0;
}

static int decode_parameter(const char *raw, size_t length, struct arena *arena, struct query_parameter *parameter)
{
    const char *equals = memchr(raw, '=', length);
    size_t name_length = equals != NULL ? (size_t)(equals - raw) : length;
    int r = decode_word(raw, name_length, arena, &parameter->name);

    if (r < 0)
        return r;
    parameter->value = "";
    return equals != NULL ? decode_word(equals + 1, length - name_length - 1, arena, &parameter->value) : 0;
}

static size_t count_parameters(const char *raw, size_t length)
{
    size_t count = 1;

    for (size_t i = 0; i < length; i++)
        count += raw[i] == '&';
    return count;
}

static int decode_query(const char *raw, size_t length, struct arena *arena, struct target *target)
{
    size_t count = count_parameters(raw, length);

    if (count > TARGET_PARAMETERS_MAX)
        return -E2BIG;
    target->query = arena_alloc(arena, count * sizeof *target->query);
    if (target->query == NULL)
        return -ENOMEM;
    for (const char *end = raw + length; raw <= end;) {
        const char *ampersand = memchr(raw, '&', (size_t)(end - raw));
        size_t item = ampersand != NULL ? (size_t)(ampersand - raw) : (size_t)(end - raw);
        int r = item > 0 ? decode_parameter(raw, item, arena, &target->query[target->query_count]) : 0;
        if (r < 0)
            return r;
        target->query_count += item > 0;
        raw += item + 1;
    }
    return 0;
}

/* "http://authority/path" becomes "/path"; 0 when it is not of that form or complete, else the bytes in front. */
static int strip_authority(const char *raw, size_t length, struct arena *arena, struct target *target,
                           size_t *ret_front)
{
    size_t scheme = length >= 7 && strncasecmp(raw, "http://", 7) == 0    ? 7
                    : length >= 8 && strncasecmp(raw, "https://", 8) == 0 ? 8
                                                                          : 0;
    if (scheme == 0)
        return -EINVAL;
    size_t end = scheme;
    while (end < length && raw[end] != '/' && raw[end] != '?')
        end++;
    if (end == scheme)
        return -EINVAL;
    target->authority = arena_copy(arena, raw + scheme, end - scheme);
    *ret_front = end;
    return target->authority == NULL ? -ENOMEM : 0;
}

int target_parse(const char *raw, size_t length, struct arena *arena, struct target *ret_target)
{
    struct target target = {0};
    size_t front = 0;
    int r = 0;

    if (length == 0 || !is_allowed(raw, length))
        return -EINVAL;
    if (length == 1 && raw[0] == '*') {
        *ret_target = (struct target){.path = "*", .path_length = 1};
        return 0;
    }
    if (raw[0] != '/')
        r = strip_authority(raw, length, arena, &target, &front);
    if (r < 0)
        return r;
    raw += front;
    length -= front;
    const char *question = length > 0 ? memchr(raw, '?', length) : NULL;
    size_t path_length = question != NULL ? (size_t)(question - raw) : length;
    /* An absolute form may leave the path out. */
    r = path_length > 0 ? decode_path(raw, path_length, arena, &target) : decode_path("/", 1, arena, &target);
    if (r == 0 && question != NULL)
        r = decode_query(question + 1, length - path_length - 1, arena, &target);
    if (r == 0)
        *ret_target = target;
    return r;
}

const char *target_query(const struct target *target, const char *name)
{
    for (size_t i = 0; i < target->query_count; i++) {
        if (strcmp(target->query[i].name, name) == 0)
            return target->query[i].value;
    }
    return NULL;
}
