/*
 * clienthello: hellos for tests, as clients send them.
 */
#pragma once

#include <stdint.h>
#include <string.h>

struct clienthello {
    const char *name; /* NULL: none */
    bool ech;
    size_t padding; /* bytes of a key share or the like */
    size_t record;  /* bytes per record; 0: all in one */
};

static inline uint8_t *clienthello_put(uint8_t *at, size_t value, int bytes)
{
    for (int i = bytes - 1; i >= 0; i--)
        *at++ = (uint8_t)(value >> (8 * i));
    return at;
}

static inline size_t clienthello_build(const struct clienthello *hello, uint8_t *data)
{
    static uint8_t message[65536];
    size_t name = hello->name != NULL ? strlen(hello->name) : 0;
    uint8_t *at = message + 4;

    at = clienthello_put(at, 0x0303, 2);
    memset(at, 7, 32);
    at = clienthello_put(at + 32, 32, 1);
    memset(at, 8, 32);
    at = clienthello_put(at + 32, 4, 2);
    at = clienthello_put(at, 0x13011302, 4);
    at = clienthello_put(at, 0x0100, 2);
    uint8_t *extensions = at;
    at += 2;
    if (hello->padding > 0) {
        at = clienthello_put(at, 51, 2);
        at = clienthello_put(at, hello->padding, 2);
        memset(at, 9, hello->padding);
        at += hello->padding;
    }
    if (hello->name != NULL) {
        at = clienthello_put(at, 0, 2);
        at = clienthello_put(at, name + 5, 2);
        at = clienthello_put(at, name + 3, 2);
        at = clienthello_put(at, 0, 1);
        at = clienthello_put(at, name, 2);
        memcpy(at, hello->name, name);
        at += name;
    }
    if (hello->ech) {
        at = clienthello_put(at, 0xfe0d, 2);
        at = clienthello_put(at, 1, 2);
        *at++ = 0;
    }
    (void)clienthello_put(extensions, (size_t)(at - extensions) - 2, 2);
    size_t length = (size_t)(at - message);
    (void)clienthello_put(message, 1, 1);
    (void)clienthello_put(message + 1, length - 4, 3);
    uint8_t *out = data;
    size_t record = hello->record > 0 ? hello->record : 16384;
    for (size_t done = 0; done < length; done += record) {
        size_t piece = length - done < record ? length - done : record;
        out = clienthello_put(out, 0x160301, 3);
        out = clienthello_put(out, piece, 2);
        memcpy(out, message + done, piece);
        out += piece;
    }
    return (size_t)(out - data);
}
