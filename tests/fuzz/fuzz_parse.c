/* Text that people and programs write: numbers, UTF-8, and what becomes a JSON string. */
#include "base/buf.h"
#include "base/parse.h"
#include "base/utf8.h"
#include "fuzz.h"

#include <stdbool.h>
#include <string.h>

static void check_number(int (*parse)(const char *text, uint64_t *ret_number), const char *text, bool may_be_0)
{
    uint64_t number = 4711;
    int r = parse(text, &number);

    MUST(r == 0 || r == -EINVAL || r == -ERANGE);
    MUST(r == 0 || number == 4711);
    MUST(r < 0 || number > 0 || may_be_0);
    MUST(r < 0 || (text[0] >= '0' && text[0] <= '9'));
}

/* A whole number is the same to everybody and comes out as it went in. */
static void check_whole_number(const char *text)
{
    char again[24];
    uint64_t number;
    uint64_t bytes = 0;
    uint64_t milli = 0;

    if (parse_u64(text, &number) < 0)
        return;
    (void)snprintf(again, sizeof again, "%llu", (unsigned long long)number);
    MUST(strcmp(text + strspn(text, "0"), number == 0 ? "" : again) == 0);
    MUST(parse_size(text, &bytes) == 0 && bytes == number);
    MUST(parse_cpus_milli(text, &milli) < 0 || milli == number * 1000);
}

/* Unicode 15, table 3-7: the length of a well-formed sequence, or 0. */
static size_t well_formed(const uint8_t *text, size_t length)
{
    static const struct {
        uint8_t first, last;     /* of the first byte */
        uint8_t second, second2; /* of the second */
        size_t length;
    } table[] = {
        {0x00, 0x7f, 0, 0, 1},       {0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3},
        {0xe1, 0xec, 0x80, 0xbf, 3}, {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3},
        {0xf0, 0xf0, 0x90, 0xbf, 4}, {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4},
    };

    for (size_t i = 0; length > 0 && i < sizeof table / sizeof *table; i++) {
        if (text[0] < table[i].first || text[0] > table[i].last || length < table[i].length)
            continue;
        bool is_good = table[i].length == 1 || (text[1] >= table[i].second && text[1] <= table[i].second2);
        for (size_t k = 2; k < table[i].length; k++)
            is_good = is_good && text[k] >= 0x80 && text[k] <= 0xbf;
        return is_good ? table[i].length : 0;
    }
    return 0;
}

static bool is_utf8(const uint8_t *text, size_t length)
{
    for (size_t n; length > 0; text += n, length -= n) {
        n = well_formed(text, length);
        if (n == 0)
            return false;
    }
    return true;
}

static void check_utf8(const uint8_t *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        MUST(utf8_sequence(text + i, length - i) == well_formed(text + i, length - i));
    size_t cut = utf8_cut(text, length);
    MUST(cut <= length && length - cut <= 3);
    if (!is_utf8(text, length))
        return;
    MUST(cut == length);
    for (size_t i = length < 8 ? 0 : length - 8; i < length; i++)
        MUST(is_utf8(text, utf8_cut(text, i)));
}

/* How long the escape at `text` is. RFC 8259, section 7. */
static size_t escape_length(const uint8_t *text, size_t length)
{
    if (length >= 2 && memchr("\"\\/bfnrt", text[1], 8) != NULL)
        return 2;
    MUST(length >= 6 && text[1] == 'u' && strspn((const char *)text + 2, "0123456789abcdefABCDEF") >= 4);
    return 6;
}

static void check_json(const uint8_t *text, size_t length)
{
    struct buf json = buf_init(6 * length + 3);

    MUST(buf_append_json(&json, text, length) == 0);
    MUST(json.length >= 2 && json.data[0] == '"' && json.data[json.length - 1] == '"');
    MUST(is_utf8(json.data, json.length));
    for (size_t i = 1; i < json.length - 1;) {
        MUST(json.data[i] >= 0x20 && json.data[i] != '"' && json.data[i] != 0x7f);
        i += json.data[i] == '\\' ? escape_length(json.data + i, json.length - 1 - i) : 1;
    }
    struct buf small = buf_init(json.length - 1);
    MUST(buf_append_json(&small, text, length) == -ENOBUFS && small.length == 0);
    buf_release(&small);
    buf_release(&json);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);

    MUST(text != NULL);
    if (size > 0)
        memcpy(text, data, size);
    text[size] = '\0';
    check_number(parse_u64, text, true);
    check_number(parse_size, text, true);
    check_number(parse_duration_ms, text, false);
    check_number(parse_cpus_milli, text, false);
    check_whole_number(text);
    check_utf8(data, size);
    check_json(data, size);
    free(text);
    return 0;
}
