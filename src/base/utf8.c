#include "base/utf8.h"

#include <stdbool.h>

static bool is_tail(uint8_t byte)
{
    return (byte & 0xc0) == 0x80;
}

/* How long a sequence that starts with this byte is; 0 for a byte that can't start one. */
static size_t announced(uint8_t first)
{
    if (first < 0x80)
        return 1;
    if (first >= 0xc2 && first <= 0xdf)
        return 2;
    if (first >= 0xe0 && first <= 0xef)
        return 3;
    if (first >= 0xf0 && first <= 0xf4)
        return 4;
    return 0;
}

size_t utf8_sequence(const uint8_t *text, size_t length)
{
    if (length == 0)
        return 0;
    size_t n = announced(text[0]);
    if (n == 0 || n > length)
        return 0;
    for (size_t i = 1; i < n; i++) {
        if (!is_tail(text[i]))
            return 0;
    }
    /* Overlong forms, surrogates and the end of Unicode are told by the second byte. */
    if ((text[0] == 0xe0 && text[1] < 0xa0) || (text[0] == 0xed && text[1] > 0x9f) ||
        (text[0] == 0xf0 && text[1] < 0x90) || (text[0] == 0xf4 && text[1] > 0x8f))
        return 0;
    return n;
}

size_t utf8_cut(const uint8_t *text, size_t length)
{
    for (size_t back = 1; back <= 3 && back <= length; back++) {
        uint8_t byte = text[length - back];
        if (is_tail(byte))
            continue;
        return announced(byte) > back ? length - back : length;
    }
    return length;
}
