#include "base/id.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

enum { RANDOM_MAX = 256 }; /* getrandom gives so many bytes at once or fails */

static const char alphabet[] = "abcdefghijklmnopqrstuvwxyz234567";
static const char *const prefixes[ID_KINDS] = {
    [ID_SANDBOX] = "sb_", [ID_EXEC] = "ex_", [ID_SNAPSHOT] = "snap_", [ID_TEMPLATE] = "tmpl_", [ID_KEY] = "key_",
};

int id_random_text(char *text, size_t length)
{
    uint8_t bytes[RANDOM_MAX];

    if (length > sizeof bytes)
        return -EINVAL;
    if (length > 0 && getrandom(bytes, length, 0) != (ssize_t)length)
        return errno > 0 ? -errno : -EIO;
    for (size_t i = 0; i < length; i++)
        text[i] = alphabet[bytes[i] & 31U];
    text[length] = '\0';
    return 0;
}

int id_make(enum id_kind kind, struct id *ret_id)
{
    char random[ID_RANDOM_LENGTH + 1];
    int r = id_random_text(random, ID_RANDOM_LENGTH);

    if (r == 0)
        (void)snprintf(ret_id->text, sizeof ret_id->text, "%s%s", prefixes[kind], random);
    return r;
}

bool id_is(enum id_kind kind, const char *text)
{
    size_t prefix = strlen(prefixes[kind]);

    if (text == NULL || strncmp(text, prefixes[kind], prefix) != 0)
        return false;
    return strspn(text + prefix, alphabet) == ID_RANDOM_LENGTH && text[prefix + ID_RANDOM_LENGTH] == '\0';
}
