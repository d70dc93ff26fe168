#include "gateway/engine/name.h"

#include <stdio.h>
#include <sys/random.h>

enum { CHARACTERS = 26, BITS = 5 };

int name_make(const char *prefix, char ret_name[ENGINE_ID_SIZE])
{
    static const char alphabet[] = "abcdefghijklmnopqrstuvwxyz234567";
    uint8_t random[CHARACTERS];
    char text[CHARACTERS + 1] = "";

    /* One byte per character wastes three bits of each, which cost nothing. */
    ssize_t n = getrandom(random, sizeof random, 0);
    if (n != (ssize_t)sizeof random)
        return n < 0 ? -errno : -EIO;
    for (size_t i = 0; i < CHARACTERS; i++)
        text[i] = alphabet[random[i] & ((1 << BITS) - 1)];
    (void)snprintf(ret_name, ENGINE_ID_SIZE, "%s_%s", prefix, text);
    return 0;
}
