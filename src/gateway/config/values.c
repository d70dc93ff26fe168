#include "gateway/config/values.h"

#include "base/parse.h"

#include <arpa/inet.h>
#include <limits.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    NAME_MAX_LENGTH = 63,
    HOST_MAX_LENGTH = 253,
    TEXT_SHOWN = 60,
    SOCKET_PATH_MAX = 107,
    LOOPBACK_NET = 127,
    PATTERN_MESSAGE = 128,
};

static int expected(const struct config_key *key, const char *text, struct error *err)
{
    struct buf words = buf_init(ERROR_MESSAGE_MAX);
    int r = config_key_describe(key, &words);

    if (r < 0)
        return r;
    (void)error_set(err, ERROR_INVALID, 0, "expected %.*s, not '%.*s'", (int)words.length, (const char *)words.data,
                    TEXT_SHOWN, text);
    buf_release(&words);
    return -EINVAL;
}

static int out_of_memory(struct error *err)
{
    return error_set(err, ERROR_SYSTEM, ENOMEM, "reading the configuration");
}

bool config_value_is_name(const char *text)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    size_t length = strlen(text);

    return length > 0 && length <= NAME_MAX_LENGTH && strspn(text, allowed) == length && text[0] != '.' &&
           text[0] != '-';
}

/* No part is empty, `.` or `..`, and nothing in it would move a terminal. */
static bool is_clean_path(const char *path)
{
    for (const char *at = path;; at++) {
        size_t length = strcspn(at, "/");
        if (length == 0 || (length == 1 && at[0] == '.') || (length == 2 && at[0] == '.' && at[1] == '.'))
            return false;
        for (size_t i = 0; i < length; i++) {
            if ((unsigned char)at[i] < ' ' || at[i] == 0x7f)
                return false;
        }
        at += length;
        if (*at == '\0')
            return true;
    }
}

static bool is_absolute(const char *path)
{
    return path[0] == '/' && strlen(path) < PATH_MAX && is_clean_path(path + 1);
}

static bool is_one_of(const char *choices, const char *text, uint64_t *ret_index)
{
    size_t length = strlen(text);

    for (uint64_t index = 0;; index++) {
        size_t choice = strcspn(choices, "|");
        if (length > 0 && choice == length && memcmp(choices, text, length) == 0) {
            *ret_index = index;
            return true;
        }
        if (choices[choice] == '\0')
            return false;
        choices += choice + 1;
    }
}

static bool is_host(const char *text)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-";
    size_t length = strlen(text);

    return length > 0 && length <= HOST_MAX_LENGTH && strspn(text, allowed) == length && text[0] != '.' &&
           text[0] != '-' && strstr(text, "..") == NULL;
}

static bool is_port(const char *text)
{
    uint64_t port;

    return parse_u64(text, &port) == 0 && port <= UINT16_MAX && strlen(text) <= 5;
}

/* scheme://host[:port], nothing behind it. */
static bool is_origin(const char *text)
{
    char host[HOST_MAX_LENGTH + 8];
    const char *at = strncmp(text, "https://", 8) == 0 ? text + 8 : strncmp(text, "http://", 7) == 0 ? text + 7 : NULL;

    if (at == NULL || strlen(at) >= sizeof host)
        return false;
    (void)snprintf(host, sizeof host, "%s", at);
    char *colon = strrchr(host, ':');
    if (colon != NULL)
        *colon = '\0';
    return is_host(host) && (colon == NULL || is_port(colon + 1));
}

/* Numbers only, so that root need not look anything up; in one way of writing, so that two of them can be compared. */
static bool make_address(const char *text, char *ret_address, size_t size)
{
    char host[64];
    char numbers[INET6_ADDRSTRLEN];
    unsigned char bytes[sizeof(struct in6_addr)];
    const char *colon = strrchr(text, ':');
    size_t length = colon != NULL ? (size_t)(colon - text) : 0;
    uint64_t port;

    if (length == 0 || length >= sizeof host || !is_port(colon + 1) || parse_u64(colon + 1, &port) < 0)
        return false;
    memcpy(host, text, length);
    host[length] = '\0';
    if (strcmp(host, "localhost") == 0)
        (void)snprintf(host, sizeof host, "127.0.0.1");
    bool is_v6 = host[0] == '[' && length > 2 && host[length - 1] == ']';
    if (is_v6)
        host[length - 1] = '\0';
    int family = is_v6 ? AF_INET6 : AF_INET;
    if (inet_pton(family, host + (is_v6 ? 1 : 0), bytes) != 1 ||
        inet_ntop(family, bytes, numbers, sizeof numbers) == NULL)
        return false;
    (void)snprintf(ret_address, size, is_v6 ? "[%s]:%llu" : "%s:%llu", numbers, (unsigned long long)port);
    return true;
}

bool config_value_is_loopback(const char *address)
{
    struct in_addr v4;
    char host[64];

    if (strncmp(address, "[::1]:", 6) == 0)
        return true;
    (void)snprintf(host, sizeof host, "%.*s", (int)strcspn(address, ":"), address);
    return inet_pton(AF_INET, host, &v4) == 1 && ntohl(v4.s_addr) >> 24 == LOOPBACK_NET;
}

static int check_pattern(const char *text, struct error *err)
{
    int code;
    size_t offset;
    unsigned char message[PATTERN_MESSAGE];
    pcre2_code *compiled = pcre2_compile((PCRE2_SPTR)text, PCRE2_ZERO_TERMINATED, PCRE2_UTF, &code, &offset, NULL);

    if (compiled == NULL) {
        (void)pcre2_get_error_message(code, message, sizeof message);
        return error_set(err, ERROR_INVALID, 0, "'%.*s' is no regular expression: %s at character %zu", TEXT_SHOWN,
                         text, (const char *)message, offset + 1);
    }
    pcre2_code_free(compiled);
    return 0;
}

static int set_number(const struct config_key *key, uint64_t *field, const char *text, struct error *err)
{
    uint64_t number = 0;
    int r = key->type == CONFIG_CPUS ? parse_cpus_milli(text, &number) : parse_u64(text, &number);

    if (r < 0 || number < key->least || number > key->most)
        return expected(key, text, err);
    *field = number;
    return 0;
}

static bool is_text_of(const struct config_key *key, const char *text)
{
    switch ((int)key->type) { /* those with a text for a value */
    case CONFIG_NAME:
        return config_value_is_name(text);
    case CONFIG_PATH:
        return text[0] == '\0' || is_absolute(text);
    case CONFIG_FOLDER:
        return is_absolute(text);
    case CONFIG_TEMPLATE:
        return is_absolute(text) || strcmp(text, "host") == 0;
    case CONFIG_SOCKET:
        return (is_absolute(text) && strlen(text) <= SOCKET_PATH_MAX) || strcmp(text, "auto") == 0 ||
               strcmp(text, "off") == 0;
    case CONFIG_FILE_BELOW:
        return text[0] != '/' && strlen(text) < PATH_MAX && is_clean_path(text);
    default:
        return false;
    }
}

int config_value_set(struct config_memory *memory, const struct config_key *key, void *base, const char *text,
                     struct error *err)
{
    void *field = (char *)base + key->offset;
    uint64_t index = 0;

    switch ((int)key->type) { /* lists are set in other ways */
    case CONFIG_NUMBER:
    case CONFIG_CPUS:
        return set_number(key, field, text, err);
    case CONFIG_SWITCH:
        if (!is_one_of("false|true", text, &index))
            return expected(key, text, err);
        *(uint64_t *)field = index;
        return 0;
    case CONFIG_CHOICE:
        if (!is_one_of(key->choices, text, &index))
            return expected(key, text, err);
        *(uint64_t *)field = index;
        return 0;
    default:
        if (!is_text_of(key, text))
            return expected(key, text, err);
        *(char **)field = config_memory_text(memory, text, strlen(text));
        return *(char **)field == NULL ? out_of_memory(err) : 0;
    }
}

int config_value_start(struct config_memory *memory, const struct config_key *key, void *base, size_t count,
                       struct error *err)
{
    bool is_map = key->type == CONFIG_TEXTS;
    void *items = config_memory_take(memory, (count + 1) * (is_map ? sizeof(struct config_pair) : sizeof(char *)));

    if (count < key->least || count > key->most)
        return error_set(err, ERROR_INVALID, 0, "expected at most %llu entries, not %zu", (unsigned long long)key->most,
                         count);
    if (items == NULL)
        return out_of_memory(err);
    if (is_map)
        *(struct config_map *)(void *)((char *)base + key->offset) = (struct config_map){.given = true, .items = items};
    else
        *(struct config_list *)(void *)((char *)base + key->offset) =
            (struct config_list){.given = true, .items = items};
    return 0;
}

static bool has_entry(const struct config_list *list, const char *text)
{
    for (size_t i = 0; i < list->count; i++) {
        if (strcmp(list->items[i], text) == 0)
            return true;
    }
    return false;
}

int config_value_add(struct config_memory *memory, const struct config_key *key, void *base, const char *text,
                     struct error *err)
{
    struct config_list *list = (struct config_list *)(void *)((char *)base + key->offset);
    char address[80];
    uint64_t index;
    bool good = true;
    int r = 0;

    if (key->type == CONFIG_ADDRESSES) {
        good = make_address(text, address, sizeof address);
        text = good ? address : text;
    } else if (key->type == CONFIG_HOSTS) {
        good = is_host(text);
    } else if (key->type == CONFIG_ORIGINS) {
        good = is_origin(text);
    } else if (key->type == CONFIG_CHOICES) {
        good = is_one_of(key->choices, text, &index);
    } else {
        r = check_pattern(text, err);
    }
    if (!good)
        return expected(key, text, err);
    if (r == 0 && has_entry(list, text))
        return error_set(err, ERROR_INVALID, 0, "'%.*s' is there twice", TEXT_SHOWN, text);
    if (r < 0)
        return r;
    char *copy = config_memory_text(memory, text, strlen(text));
    if (copy == NULL)
        return out_of_memory(err);
    list->items[list->count++] = copy;
    return 0;
}

static bool is_variable(const char *name)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";

    return name[0] != '\0' && (name[0] < '0' || name[0] > '9') && strspn(name, allowed) == strlen(name);
}

/* Files are named by their path inside, where a command of the sandbox would find them. */
static bool is_pair_name(const struct config_key *key, const char *name)
{
    if (strstr(key->path, ".files") != NULL)
        return strlen(name) < PATH_MAX && is_clean_path(name + (name[0] == '/' ? 1 : 0));
    return strstr(key->path, ".env") != NULL ? is_variable(name) : config_value_is_name(name);
}

int config_value_add_pair(struct config_memory *memory, const struct config_key *key, void *base, const char *name,
                          const char *text, struct error *err)
{
    struct config_map *map = (struct config_map *)(void *)((char *)base + key->offset);

    if (!is_pair_name(key, name))
        return error_set(err, ERROR_INVALID, 0, "'%.*s' can't be a name here", TEXT_SHOWN, name);
    struct config_pair *pair = &map->items[map->count];
    pair->name = config_memory_text(memory, name, strlen(name));
    pair->value = config_memory_text(memory, text, strlen(text));
    if (pair->name == NULL || pair->value == NULL)
        return out_of_memory(err);
    map->count++;
    return 0;
}

int config_value_set_list(struct config_memory *memory, const struct config_key *key, void *base, const char *text,
                          struct error *err)
{
    const char *ends = key->type == CONFIG_PATTERNS ? "\n" : ",\n";
    char *copy = strdup(text);
    size_t count = 0;
    char *save = NULL;

    if (copy == NULL)
        return out_of_memory(err);
    for (const char *at = text; *at != '\0'; at += strspn(at, ends)) {
        count++;
        at += strcspn(at, ends);
    }
    int r = config_value_start(memory, key, base, count, err);
    for (char *entry = strtok_r(copy, ends, &save); r == 0 && entry != NULL; entry = strtok_r(NULL, ends, &save)) {
        /* Behind a comma a blank is usual. */
        r = config_value_add(memory, key, base, key->type == CONFIG_PATTERNS ? entry : entry + strspn(entry, " "), err);
    }
    free(copy);
    return r;
}
