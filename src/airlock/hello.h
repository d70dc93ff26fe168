/*
 * hello: reads the server's name out of a TLS ClientHello, and whether a ServerHello asks for another one. Pure.
 *
 * It is given all that came so far, and again when enough more has come: the hello may be cut into records and pieces
 * of any size. Nothing of it is changed or kept.
 */
#pragma once

#include "airlock/name.h"

#include <sys/types.h>

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
    size_t used;          /* HELLO_DONE: the bytes of its records */
};

enum hello_outcome hello_read(const uint8_t *data, size_t length, struct hello *ret_hello);

enum hello_answer {
    HELLO_ANSWER_MORE,
    HELLO_ANSWER_DONE,
    HELLO_ANSWER_RETRY, /* a HelloRetryRequest: the client says its hello again, and may change it */
    HELLO_ANSWER_BAD,   /* nothing that a server says to a hello */
};

/* The first bytes of what the server says; HELLO_ANSWER_MAX of them are always enough. */
enum { HELLO_ANSWER_MAX = 64 };
enum hello_answer hello_read_answer(const uint8_t *data, size_t length);

/*
 * How many bytes of whole records that no hello is in stand in front of a second hello: early data, and what is sent
 * for the sake of middleboxes (RFC 8446, 4.2.10 and D.4). -EINVAL: there is something else.
 */
_must_use_ ssize_t hello_skip(const uint8_t *data, size_t length);
