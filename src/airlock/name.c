#include "airlock/name.h"

#include <string.h>

static int refuse(const char **ret_why, const char *why)
{
    *ret_why = why;
    return -EINVAL;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static char lower(char c)
{
    static const char small[] = "abcdefghijklmnopqrstuvwxyz";

    if (c >= 'A' && c <= 'Z')
        return small[c - 'A'];
    return c;
}

/* The last label is a number to some reader: 127.1, 0x7f000001, 017700000001. */
static bool ends_in_number(const char *name)
{
    const char *dot = strrchr(name, '.');
    const char *label = dot != NULL ? dot + 1 : name;

    if (label[0] == '0' && label[1] == 'x')
        return strspn(label + 2, "0123456789abcdef") == strlen(label + 2);
    return strspn(label, "0123456789") == strlen(label);
}

static int check_char(char c, const char **ret_why)
{
    if ((c >= 'a' && c <= 'z') || is_digit(c) || c == '-' || c == '_')
        return 0;
    if ((unsigned char)c >= 0x80)
        return refuse(ret_why, "it has letters beyond ASCII; write it in its ASCII form, which starts with xn--");
    if (c == '*')
        return refuse(ret_why, "a star may only stand in front, as in *.example.com");
    if (c == ' ' || c == '\t')
        return refuse(ret_why, "it has a blank in it");
    return refuse(ret_why, "it has a character that no name of a host has");
}

int name_normalize(const char *text, size_t length, char ret_name[NAME_SIZE], const char **ret_why)
{
    size_t label = 0;

    if (length > 0 && text[length - 1] == '.')
        length--;
    if (length == 0)
        return refuse(ret_why, "it is empty");
    if (length > NAME_MAX_BYTES)
        return refuse(ret_why, "it is longer than 253 characters");
    for (size_t i = 0; i < length; i++) {
        char c = lower(text[i]);
        int r = c == '.' ? 0 : check_char(c, ret_why);
        if (r < 0)
            return r;
        if (c == '.' && label == 0)
            return refuse(ret_why, "there is nothing between two dots");
        label = c == '.' ? 0 : label + 1;
        if (label > NAME_LABEL_MAX)
            return refuse(ret_why, "a part of it is longer than 63 characters");
        ret_name[i] = c;
    }
    ret_name[length] = '\0';
    if (label == 0)
        return refuse(ret_why, "there is nothing between two dots");
    return ends_in_number(ret_name) ? refuse(ret_why, "it ends in a number, as an address does") : 0;
}

static int parse_port(const char *text, size_t length, uint16_t *ret_port)
{
    unsigned port = 0;

    if (length == 0 || length > 5)
        return -EINVAL;
    for (size_t i = 0; i < length; i++) {
        if (!is_digit(text[i]))
            return -EINVAL;
        port = port * 10 + (unsigned)(text[i] - '0');
    }
    if (port == 0 || port > UINT16_MAX)
        return -EINVAL;
    *ret_port = (uint16_t)port;
    return 0;
}

int name_split(const char *text, size_t length, size_t *ret_start, size_t *ret_length, uint16_t *ret_port)
{
    bool has_bracket = length > 0 && text[0] == '[';
    const char *end = length > 0 ? memchr(text, has_bracket ? ']' : ':', length) : NULL;
    size_t host = end != NULL ? (size_t)(end - text) : length;
    size_t rest = has_bracket ? host + 1 : host;
    uint16_t port = 0;

    if (has_bracket && end == NULL)
        return -EINVAL;
    if (rest < length && (text[rest] != ':' || parse_port(text + rest + 1, length - rest - 1, &port) < 0))
        return -EINVAL;
    *ret_start = has_bracket ? 1 : 0;
    *ret_length = host - *ret_start;
    *ret_port = port;
    return 0;
}

bool name_is_below(const char *name, const char *suffix)
{
    size_t length = strlen(name);
    size_t tail = strlen(suffix);

    return length > tail + 1 && name[length - tail - 1] == '.' && memcmp(name + length - tail, suffix, tail) == 0;
}
