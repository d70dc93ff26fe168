#include "gateway/net/http.h"

#include <string.h>
#include <strings.h>

static const char *const method_names[METHOD_COUNT] = {
    [METHOD_NONE] = "",         [METHOD_GET] = "GET",         [METHOD_HEAD] = "HEAD",
    [METHOD_POST] = "POST",     [METHOD_PUT] = "PUT",         [METHOD_PATCH] = "PATCH",
    [METHOD_DELETE] = "DELETE", [METHOD_OPTIONS] = "OPTIONS", [METHOD_TRACE] = "TRACE",
};

static const struct {
    unsigned status;
    const char *text;
} status_texts[] = {
    {100, "Continue"},
    {101, "Switching Protocols"},
    {200, "OK"},
    {201, "Created"},
    {202, "Accepted"},
    {204, "No Content"},
    {206, "Partial Content"},
    {301, "Moved Permanently"},
    {302, "Found"},
    {303, "See Other"},
    {304, "Not Modified"},
    {307, "Temporary Redirect"},
    {308, "Permanent Redirect"},
    {400, "Bad Request"},
    {401, "Unauthorized"},
    {403, "Forbidden"},
    {404, "Not Found"},
    {405, "Method Not Allowed"},
    {406, "Not Acceptable"},
    {408, "Request Timeout"},
    {409, "Conflict"},
    {410, "Gone"},
    {411, "Length Required"},
    {412, "Precondition Failed"},
    {413, "Content Too Large"},
    {414, "URI Too Long"},
    {415, "Unsupported Media Type"},
    {416, "Range Not Satisfiable"},
    {417, "Expectation Failed"},
    {421, "Misdirected Request"},
    {422, "Unprocessable Content"},
    {426, "Upgrade Required"},
    {429, "Too Many Requests"},
    {431, "Request Header Fields Too Large"},
    {500, "Internal Server Error"},
    {501, "Not Implemented"},
    {502, "Bad Gateway"},
    {503, "Service Unavailable"},
    {504, "Gateway Timeout"},
    {505, "HTTP Version Not Supported"},
    {507, "Insufficient Storage"},
};

const char *http_method_name(enum http_method method)
{
    return method < METHOD_COUNT ? method_names[method] : "";
}

enum http_method http_method_from(const char *name, size_t length)
{
    for (enum http_method method = METHOD_GET; method < METHOD_COUNT; method++) {
        if (strlen(method_names[method]) == length && memcmp(name, method_names[method], length) == 0)
            return method;
    }
    return METHOD_NONE;
}

const char *http_status_text(unsigned status)
{
    for (size_t i = 0; i < sizeof status_texts / sizeof *status_texts; i++) {
        if (status_texts[i].status == status)
            return status_texts[i].text;
    }
    return "Status";
}

static bool is_letter_or_digit(unsigned char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool http_is_token_char(unsigned char c)
{
    return is_letter_or_digit(c) || (c != '\0' && strchr("!#$%&'*+-.^_`|~", c) != NULL);
}

bool http_is_token(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if (!http_is_token_char((unsigned char)text[i]))
            return false;
    }
    return length > 0;
}

bool http_is_value(const char *text)
{
    for (; *text != '\0'; text++) {
        unsigned char c = (unsigned char)*text;
        if ((c < 0x20 && c != '\t') || c == 0x7f)
            return false;
    }
    return true;
}

const char *headers_find(const struct headers *headers, const char *name)
{
    for (size_t i = 0; i < headers->count; i++) {
        if (strcasecmp(headers->items[i].name, name) == 0)
            return headers->items[i].value;
    }
    return NULL;
}

size_t headers_count(const struct headers *headers, const char *name)
{
    size_t count = 0;

    for (size_t i = 0; i < headers->count; i++)
        count += strcasecmp(headers->items[i].name, name) == 0;
    return count;
}

static bool list_has_word(const char *list, const char *word)
{
    size_t length = strlen(word);

    for (const char *at = list; *at != '\0';) {
        at += strspn(at, " \t,");
        size_t item = strcspn(at, ",");
        size_t trimmed = item;
        while (trimmed > 0 && (at[trimmed - 1] == ' ' || at[trimmed - 1] == '\t'))
            trimmed--;
        if (trimmed == length && strncasecmp(at, word, length) == 0)
            return true;
        at += item;
    }
    return false;
}

bool headers_have_word(const struct headers *headers, const char *name, const char *word)
{
    for (size_t i = 0; i < headers->count; i++) {
        if (strcasecmp(headers->items[i].name, name) == 0 && list_has_word(headers->items[i].value, word))
            return true;
    }
    return false;
}

static bool is_port(const char *text, size_t length)
{
    unsigned number = 0;

    if (length == 0 || length > 5)
        return false;
    for (size_t i = 0; i < length; i++) {
        if (text[i] < '0' || text[i] > '9')
            return false;
        number = number * 10 + (unsigned)(text[i] - '0');
    }
    return number > 0 && number <= 65535;
}

/* What may stand between the brackets of an IPv6 address; whoever compares addresses parses it properly. */
static size_t bracketed_length(const char *text, size_t length)
{
    const char *end = memchr(text, ']', length);

    if (end == NULL || end - text < 3)
        return 0;
    for (const char *at = text + 1; at < end; at++) {
        if (strchr("0123456789abcdefABCDEF:.", *at) == NULL)
            return 0;
    }
    return (size_t)(end - text) + 1;
}

static size_t name_length(const char *text, size_t length)
{
    size_t i = 0;

    while (i < length &&
           (is_letter_or_digit((unsigned char)text[i]) || text[i] == '.' || text[i] == '-' || text[i] == '_'))
        i++;
    return i <= 253 ? i : 0;
}

bool http_is_host(const char *text, size_t length)
{
    if (length == 0 || memchr(text, '\0', length) != NULL)
        return false;
    size_t host = text[0] == '[' ? bracketed_length(text, length) : name_length(text, length);
    if (host == 0)
        return false;
    return host == length || (text[host] == ':' && is_port(text + host + 1, length - host - 1));
}

bool http_is_type(const char *value, const char *type)
{
    size_t length = strlen(type);

    if (value == NULL || strncasecmp(value, type, length) != 0)
        return false;
    value += length;
    value += strspn(value, " \t");
    return *value == '\0' || *value == ';';
}
