#include "airlock/http_peek.h"

#include "gateway/net/http.h"

#include <llhttp.h>
#include <string.h>
#include <strings.h>

/* What some server takes for the end of a word: isspace(), and str.split() of Python. */
static bool is_blank(uint8_t c)
{
    return c == ' ' || (c >= '\t' && c <= '\r') || (c >= 0x1c && c <= 0x1f) || c == 0x85 || c == 0xa0;
}

static bool is_control(uint8_t c)
{
    return (c < ' ' || c == 0x7f) && !is_blank(c);
}

static bool is_letter(uint8_t c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

static size_t count_blanks(const uint8_t *data, size_t length)
{
    size_t count = 0;

    while (count < length && is_blank(data[count]))
        count++;
    return count;
}

/* Has the line HTTP/ behind anything that could end a word? */
static bool has_version(const uint8_t *line, size_t length)
{
    for (size_t i = 0; i + 6 <= length; i++) {
        bool ends_word = line[i] <= ' ' || line[i] >= 0x7f;
        if (ends_word && strncasecmp((const char *)line + i + 1, "HTTP/", 5) == 0)
            return true;
    }
    return false;
}

static bool is_method(const uint8_t *word, size_t length)
{
    for (int i = HTTP_DELETE; i <= HTTP_SOURCE; i++) {
        const char *name = llhttp_method_name((llhttp_method_t)i);
        if (strlen(name) == length && memcmp(name, word, length) == 0)
            return true;
    }
    return false;
}

/* A method and a target, and the headers may follow. Python's server takes any target for GET, node's also RTSP. */
static bool is_bare(const uint8_t *line, size_t length, size_t word)
{
    size_t start = word + count_blanks(line + word, length - word);
    size_t end = start;

    while (end < length && !is_blank(line[end]))
        end++;
    if (start == end)
        return false;
    if (line[start] == '/' || memmem(line + start, end - start, "://", 3) != NULL)
        return true;
    return (line[start] == '*' && is_method(line, word)) || (word == 3 && memcmp(line, "GET", word) == 0);
}

/* No method starts with anything but a letter, and no target of such a one has controls: LDAP, git and the like. */
static bool is_binary(const uint8_t *line, size_t length)
{
    if (is_letter(line[0]))
        return false;
    for (size_t i = 0; i < length; i++) {
        if (is_control(line[i]))
            return true;
    }
    return false;
}

static enum http_peek peek_line(const uint8_t *line, size_t length, bool has_end)
{
    size_t word = 0;

    while (word < length && http_is_token_char(line[word]))
        word++;
    if (word < length && !is_blank(line[word]))
        return HTTP_PEEK_OTHER;
    if (is_binary(line, length))
        return HTTP_PEEK_OTHER;
    if (length > HTTP_PEEK_LINE_MOST)
        return HTTP_PEEK_ENDLESS;
    if (!has_end)
        return HTTP_PEEK_MORE;
    if (has_version(line, length))
        return HTTP_PEEK_REQUEST;
    return is_bare(line, length, word) ? HTTP_PEEK_BARE : HTTP_PEEK_OTHER;
}

enum http_peek http_peek(const uint8_t *data, size_t length, bool has_end, size_t *ret_ahead)
{
    /* Servers skip empty lines before a request, and some of them blanks. */
    size_t start = count_blanks(data, length);
    const uint8_t *line = data + start;
    size_t left = length - start;
    size_t ahead = 0;

    *ret_ahead = start;
    if (start > HTTP_PEEK_BLANKS_MOST)
        return HTTP_PEEK_ENDLESS;
    if (left == 0)
        return has_end ? HTTP_PEEK_OTHER : HTTP_PEEK_MORE;
    const uint8_t *end = memchr(line, '\n', left);
    size_t line_length = end != NULL ? (size_t)(end - line) : left;
    if (line_length > HTTP_PEEK_LINE_MOST + 1)
        line_length = HTTP_PEEK_LINE_MOST + 1;
    while (ahead < line_length && line[ahead] != '\r')
        ahead++;
    *ret_ahead = start + ahead;
    return peek_line(line, line_length, has_end || end != NULL);
}
