/*
 * hello: reads the server's name out of a TLS ClientHello. Pure.
 *
 * It is given all that came so far, and again when enough more has come: the hello may be cut into records and pieces
 * of any size. Nothing of it is changed or kept.
 */
#pragma once

#include "airlock/name.h"

enum { HELLO_MAX = 65536, HELLO_MESSAGE_MAX = 49152 };

enum hello_outcome {
    HELLO_MORE, /* not all of it is here */
    HELLO_DONE,
    HELLO_BAD, /* it is none, or one that is too large, or that could be read in two ways */
};

struct hello {
    bool has_name;
    char name[NAME_SIZE]; /* normalized */
    bool is_encrypted;    /* another hello is hidden in it (ECH), which may ask for another name */
    const char *why;      /* HELLO_BAD */
    size_t needed;        /* HELLO_MORE: with less than so many bytes in all, the outcome is the same */
};

enum hello_outcome hello_read(const uint8_t *data, size_t length, struct hello *ret_hello);
