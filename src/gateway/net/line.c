#include "gateway/net/line.h"

#include "gateway/net/http.h"

static bool is_hex(uint8_t c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static bool is_good_request(struct line *line, uint8_t c)
{
    bool was_blank = line->has_blank;

    line->has_blank = c == ' ';
    if (c == ' ') {
        line->has_front = true;
        return line->length > 0 && !was_blank && ++line->blanks <= 2;
    }
    return c > ' ' && c < 0x80 && (line->has_front || http_is_token_char(c));
}

/* A byte of the line, its end excepted: CR and LF are not good either. */
static bool is_good(struct line *line, uint8_t c)
{
    if ((c < 0x20 && c != '\t') || c == 0x7f)
        return false;
    switch (line->kind) {
    case LINE_REQUEST:
        return is_good_request(line, c);
    case LINE_HEADER:
        if (line->has_front)
            return true;
        if (c == ':' && line->length > 0)
            line->has_front = true;
        return line->has_front || http_is_token_char(c);
    case LINE_CHUNK:
        if (c == ';' && line->length > 0)
            line->has_front = true;
        return line->has_front || is_hex(c);
    case LINE_CHUNK_END:
        return false;
    }
    return false;
}

/* CR is here: may the line end like this? */
static bool may_end(const struct line *line)
{
    switch (line->kind) {
    case LINE_REQUEST:
        return line->length == 0 || (line->blanks == 2 && !line->has_blank);
    case LINE_HEADER:
        return line->length == 0 || line->has_front;
    case LINE_CHUNK:
        return line->length > 0;
    case LINE_CHUNK_END:
        return true;
    }
    return false;
}

int line_check(struct line *line, const uint8_t *data, size_t length, size_t *ret_used)
{
    for (size_t i = 0; i < length; i++) {
        uint8_t c = data[i];
        *ret_used = i;
        if (line->has_cr) {
            if (c != '\n')
                return -EBADMSG;
            *ret_used = i + 1;
            return 1;
        }
        if (c == '\r' && may_end(line)) {
            line->has_cr = true;
            continue;
        }
        if (!is_good(line, c))
            return -EBADMSG;
        if (line->length == line->most)
            return -EMSGSIZE;
        line->length++;
    }
    *ret_used = length;
    return 0;
}
