#include "airlock/hello.h"

#include <string.h>

enum {
    RECORD_HEADER = 5,
    RECORD_CHANGE = 20,
    RECORD_ALERT = 21,
    RECORD_HANDSHAKE = 22,
    RECORD_DATA = 23,
    RECORD_MAX = 16384,
    RECORD_ENCRYPTED_MAX = RECORD_MAX + 256,
    MESSAGE_HEADER = 4,
    MESSAGE_CLIENT_HELLO = 1,
    MESSAGE_SERVER_HELLO = 2,
    ALERT = 2,
    VERSION = 2,
    RANDOM = 32,
    EXTENSION_NAME = 0,
    EXTENSION_ECH = 0xfe0d,
    NAME_IS_HOST = 0,
};

/* What is left to be read; a read beyond its end makes it `bad` and gives nothing. */
struct view {
    const uint8_t *at;
    size_t left;
    bool bad;
};

static uint32_t take_number(struct view *view, size_t bytes)
{
    uint32_t number = 0;

    if (view->left < bytes) {
        view->bad = true;
        return 0;
    }
    for (size_t i = 0; i < bytes; i++)
        number = number << 8 | view->at[i];
    view->at += bytes;
    view->left -= bytes;
    return number;
}

static struct view take_bytes(struct view *view, size_t length)
{
    struct view part = {.at = view->at, .left = length};

    if (view->bad || view->left < length) {
        view->bad = true;
        return (struct view){.at = view->at, .bad = true};
    }
    view->at += length;
    view->left -= length;
    return part;
}

static struct view take_vector(struct view *view, size_t length_bytes)
{
    size_t length = take_number(view, length_bytes);

    return take_bytes(view, length);
}

static enum hello_outcome more(struct hello *hello, size_t length, size_t missing)
{
    if (length >= HELLO_MAX) {
        hello->why = "it is cut into too many records";
        return HELLO_BAD;
    }
    hello->needed = length + missing < HELLO_MAX ? length + missing : HELLO_MAX;
    return HELLO_MORE;
}

static enum hello_outcome bad(struct hello *hello, const char *why)
{
    hello->why = why;
    return HELLO_BAD;
}

/* One name of a host and nothing else: RFC 6066, 3 allows no second one of a kind, and there is no other kind. */
static int read_name(struct view extension, struct hello *hello)
{
    struct view list = take_vector(&extension, 2);
    uint32_t kind = take_number(&list, 1);
    struct view name = take_vector(&list, 2);
    const char *why;

    if (extension.bad || extension.left > 0 || list.bad || list.left > 0 || kind != NAME_IS_HOST || name.bad)
        return -EINVAL;
    hello->has_name = true;
    return name_normalize((const char *)name.at, name.left, hello->name, &why);
}

static enum hello_outcome read_extensions(struct view extensions, struct hello *hello)
{
    while (extensions.left > 0) {
        uint32_t type = take_number(&extensions, 2);
        struct view extension = take_vector(&extensions, 2);
        if (extensions.bad)
            return bad(hello, "its extensions do not fit");
        if (type == EXTENSION_NAME && hello->has_name)
            return bad(hello, "it names its server twice");
        if (type == EXTENSION_NAME && read_name(extension, hello) < 0)
            return bad(hello, "the server's name in it is malformed");
        if (type == EXTENSION_ECH)
            hello->is_encrypted = true;
    }
    return HELLO_DONE;
}

static enum hello_outcome read_message(const uint8_t *data, size_t length, struct hello *hello)
{
    struct view view = {.at = data, .left = length};

    (void)take_number(&view, 2); /* version */
    (void)take_bytes(&view, RANDOM);
    (void)take_vector(&view, 1); /* session */
    (void)take_vector(&view, 2); /* ciphers */
    (void)take_vector(&view, 1); /* compressions */
    if (view.bad)
        return bad(hello, "it is cut short");
    if (view.left == 0)
        return HELLO_DONE; /* SSL 3.0 and TLS 1.0 may have none */
    struct view extensions = take_vector(&view, 2);
    if (view.bad || view.left > 0)
        return bad(hello, "its extensions do not fit");
    return read_extensions(extensions, hello);
}

/*
 * Put the records' contents together. How much of the message there is, and behind it, also what has not come of its
 * last record; -EINVAL for what is no record of a hello.
 */
static int gather(const uint8_t *data, size_t length, uint8_t *message, size_t *ret_length, size_t *ret_end)
{
    size_t used = 0;

    *ret_end = length;

    for (size_t at = 0; at < length;) {
        size_t head = length - at;
        /* As far as it is here, each byte is what it must be. */
        if (data[at] != RECORD_HANDSHAKE || (head > 1 && data[at + 1] != 3) || (head > 2 && data[at + 2] > 4))
            return -EINVAL;
        if (head < RECORD_HEADER)
            break;
        size_t record = (size_t)data[at + 3] << 8 | data[at + 4];
        if (record == 0 || record > RECORD_MAX)
            return -EINVAL;
        size_t here = head - RECORD_HEADER < record ? head - RECORD_HEADER : record;
        if (used + here > HELLO_MESSAGE_MAX)
            return -EMSGSIZE;
        memcpy(message + used, data + at + RECORD_HEADER, here);
        used += here;
        if (used >= MESSAGE_HEADER) {
            size_t wanted = (size_t)message[1] << 16 | (size_t)message[2] << 8 | message[3];
            if (used >= MESSAGE_HEADER + wanted) {
                *ret_end = at + RECORD_HEADER + here;
                used += record - here;
                break;
            }
        }
        at += RECORD_HEADER + here;
    }
    *ret_length = used;
    return 0;
}

enum hello_outcome hello_read(const uint8_t *data, size_t length, struct hello *ret_hello)
{
    uint8_t message[HELLO_MESSAGE_MAX];
    size_t used = 0;
    size_t end = 0;

    *ret_hello = (struct hello){.why = ""};
    int r = gather(data, length, message, &used, &end);
    if (r < 0)
        return bad(ret_hello, r == -EMSGSIZE ? "it is too large" : "it is not in handshake records");
    if (used > 0 && message[0] != MESSAGE_CLIENT_HELLO)
        return bad(ret_hello, "it is no ClientHello");
    if (used < MESSAGE_HEADER)
        return more(ret_hello, length, MESSAGE_HEADER - used);
    size_t wanted = (size_t)message[1] << 16 | (size_t)message[2] << 8 | message[3];
    if (wanted > HELLO_MESSAGE_MAX - MESSAGE_HEADER)
        return bad(ret_hello, "it is too large");
    if (used < MESSAGE_HEADER + wanted)
        return more(ret_hello, length, MESSAGE_HEADER + wanted - used);
    /* RFC 8446, 5.1: nothing follows it in its record. */
    if (used > MESSAGE_HEADER + wanted)
        return bad(ret_hello, "something follows it in its record");
    ret_hello->used = end;
    return read_message(message + MESSAGE_HEADER, wanted, ret_hello);
}

static size_t record_size(const uint8_t *record)
{
    return (size_t)record[3] << 8 | record[4];
}

/* RFC 8446, 4.1.3: SHA-256 of "HelloRetryRequest". */
static const uint8_t retry_random[RANDOM] = {0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c,
                                             0x02, 0x1e, 0x65, 0xb8, 0x91, 0xc2, 0xa2, 0x11, 0x16, 0x7a, 0xbb,
                                             0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c};

enum hello_answer hello_read_answer(const uint8_t *data, size_t length)
{
    enum { BEFORE_RANDOM = MESSAGE_HEADER + VERSION };
    size_t at = 0;

    /* A warning may come first: that the name is not known (RFC 6066, 3). */
    while (length - at >= RECORD_HEADER && data[at] == RECORD_ALERT && record_size(data + at) == ALERT &&
           length - at >= RECORD_HEADER + ALERT)
        at += RECORD_HEADER + ALERT;
    const uint8_t *record = data + at;
    size_t left = length - at;
    if (left > 0 && record[0] != RECORD_HANDSHAKE && record[0] != RECORD_ALERT)
        return HELLO_ANSWER_BAD;
    if (left > 1 && record[1] != 3)
        return HELLO_ANSWER_BAD;
    if (left < RECORD_HEADER)
        return length < HELLO_ANSWER_MAX ? HELLO_ANSWER_MORE : HELLO_ANSWER_BAD;
    if (record_size(record) < (record[0] == RECORD_ALERT ? ALERT : BEFORE_RANDOM + RANDOM))
        return HELLO_ANSWER_BAD;
    if (left < RECORD_HEADER + BEFORE_RANDOM + RANDOM)
        return length < HELLO_ANSWER_MAX ? HELLO_ANSWER_MORE : HELLO_ANSWER_BAD;
    if (record[0] != RECORD_HANDSHAKE || record[RECORD_HEADER] != MESSAGE_SERVER_HELLO)
        return HELLO_ANSWER_BAD;
    bool is_retry = memcmp(record + RECORD_HEADER + BEFORE_RANDOM, retry_random, RANDOM) == 0;
    return is_retry ? HELLO_ANSWER_RETRY : HELLO_ANSWER_DONE;
}

ssize_t hello_skip(const uint8_t *data, size_t length)
{
    size_t at = 0;

    while (at < length && data[at] != RECORD_HANDSHAKE) {
        if (data[at] != RECORD_CHANGE && data[at] != RECORD_ALERT && data[at] != RECORD_DATA)
            return -EINVAL;
        if (length - at < RECORD_HEADER)
            break;
        if (data[at + 1] != 3 || record_size(data + at) > RECORD_ENCRYPTED_MAX)
            return -EINVAL;
        if (length - at < RECORD_HEADER + record_size(data + at))
            break;
        at += RECORD_HEADER + record_size(data + at);
    }
    return (ssize_t)at;
}
