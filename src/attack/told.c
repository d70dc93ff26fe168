#include "attack/told.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OUT_MAX = 1 << 21 };

/* What follows the first "key": . Strings in the object come escaped, so the key can't be found inside one. */
static const char *find(const char *json, size_t length, const char *key)
{
    char quoted[64];
    int n = snprintf(quoted, sizeof quoted, "\"%s\":", key);
    const char *at = memmem(json, length, quoted, (size_t)n);

    return at != NULL ? at + n : NULL;
}

/* The string at `text` up to its closing quote. Escapes beyond those of a line's end are not an attempt's. */
static int take_string(const char *text, const char *end, struct buf *out)
{
    if (text == NULL || text == end || *text++ != '"')
        return -EBADMSG;
    for (; text < end && *text != '"'; text++) {
        char letter = *text;
        if (letter == '\\' && text + 1 < end) {
            letter = *++text;
            letter = (char)(letter == 'n' ? '\n' : letter == 't' ? '\t' : letter);
        }
        int r = buf_append(out, &letter, 1);
        if (r < 0)
            return r;
    }
    return text < end ? 0 : -EBADMSG;
}

int told_parse(const char *json, size_t length, struct told *ret_told)
{
    struct told *told = ret_told;
    const char *end = json + length;
    const char *limit = find(json, length, "limit");
    const char *peak = find(json, length, "memory_peak_bytes");

    *told = (struct told){.out = buf_init(OUT_MAX)};
    if (limit != NULL && limit < end && *limit == '"') {
        size_t size = strcspn(limit + 1, "\"");
        if (size >= sizeof told->limit)
            return -EBADMSG;
        memcpy(told->limit, limit + 1, size);
        told->has_limit = true;
    }
    if (peak != NULL)
        told->memory_peak_bytes = strtoull(peak, NULL, 10);
    return take_string(find(json, length, "stdout"), end, &told->out);
}

void told_release(struct told *told)
{
    buf_release(&told->out);
}
