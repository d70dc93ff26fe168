/*
 * Theory of operation. A writer and a reader each hold a position and remember the first failure; the field
 * functions below do nothing once one has failed. The table turns into one encode and one decode function per
 * message and a switch over all of them, so a field can't be written in one order and read in another.
 */
#include "wire/wire.h"

#include <endian.h>
#include <string.h>

struct writer {
    uint8_t *at;
    size_t left;
    bool failed;
};

struct reader {
    const uint8_t *at;
    size_t left;
    bool failed;
};

static void put(struct writer *w, const void *data, size_t length)
{
    if (w->failed || length > w->left) {
        w->failed = true;
        return;
    }
    if (length > 0)
        memcpy(w->at, data, length);
    w->at += length;
    w->left -= length;
}

static const uint8_t *get(struct reader *r, size_t length)
{
    const uint8_t *at = r->at;

    if (r->failed || length > r->left) {
        r->failed = true;
        return NULL;
    }
    r->at += length;
    r->left -= length;
    return at;
}

#define WIRE_NUMBER(kind, type, to_le, from_le)                                                                        \
    static void put_##kind(struct writer *w, type value, size_t maximum)                                               \
    {                                                                                                                  \
        type le = to_le(value);                                                                                        \
        (void)maximum;                                                                                                 \
        put(w, &le, sizeof le);                                                                                        \
    }                                                                                                                  \
    static void get_##kind(struct reader *r, type *ret_value, size_t maximum)                                          \
    {                                                                                                                  \
        type le = 0;                                                                                                   \
        const uint8_t *at = get(r, sizeof le);                                                                         \
        (void)maximum;                                                                                                 \
        if (at != NULL)                                                                                                \
            memcpy(&le, at, sizeof le);                                                                                \
        *ret_value = from_le(le);                                                                                      \
    }
#define SAME(value) (value)
WIRE_NUMBER(u8, uint8_t, SAME, SAME)
WIRE_NUMBER(u16, uint16_t, htole16, le16toh)
WIRE_NUMBER(u32, uint32_t, htole32, le32toh)
WIRE_NUMBER(u64, uint64_t, htole64, le64toh)

static void put_str(struct writer *w, struct wire_str value, size_t maximum)
{
    const char *text = value.length > 0 ? value.text : "";

    if (value.length > maximum || memchr(text, '\0', value.length) != NULL)
        w->failed = true;
    put_u16(w, (uint16_t)value.length, 0);
    put(w, text, value.length);
    put_u8(w, 0, 0);
}

static void get_str(struct reader *r, struct wire_str *ret_value, size_t maximum)
{
    uint16_t length;

    get_u16(r, &length, 0);
    const uint8_t *at = get(r, (size_t)length + 1);
    if (at == NULL || length > maximum || memchr(at, '\0', (size_t)length + 1) != at + length) {
        r->failed = true;
        *ret_value = wire_str("");
        return;
    }
    *ret_value = (struct wire_str){.text = (const char *)at, .length = length};
}

static void put_bytes(struct writer *w, struct wire_bytes value, size_t maximum)
{
    if (value.length > maximum)
        w->failed = true;
    put_u32(w, value.length, 0);
    put(w, value.data, value.length);
}

static void get_bytes(struct reader *r, struct wire_bytes *ret_value, size_t maximum)
{
    uint32_t length;

    get_u32(r, &length, 0);
    const uint8_t *at = get(r, length);
    if (at == NULL || length > maximum) {
        r->failed = true;
        length = 0;
    }
    *ret_value = (struct wire_bytes){.data = at, .length = length};
}

/* `count` strings fill `length` bytes exactly. */
static bool strv_is_whole(const char *data, uint32_t length, uint32_t count)
{
    uint32_t seen = 0;

    for (uint32_t at = 0; at < length; seen++) {
        const char *end = memchr(data + at, '\0', length - at);
        if (end == NULL)
            return false;
        at = (uint32_t)(end - data) + 1;
    }
    return seen == count;
}

static void put_strv(struct writer *w, struct wire_strv value, size_t maximum)
{
    if (value.length > maximum || !strv_is_whole(value.data, value.length, value.count))
        w->failed = true;
    put_u32(w, value.count, 0);
    put_u32(w, value.length, 0);
    put(w, value.data, value.length);
}

static void get_strv(struct reader *r, struct wire_strv *ret_value, size_t maximum)
{
    struct wire_strv value = {0};

    get_u32(r, &value.count, 0);
    get_u32(r, &value.length, 0);
    value.data = (const char *)get(r, value.length);
    if (value.data == NULL || value.length > maximum || !strv_is_whole(value.data, value.length, value.count)) {
        r->failed = true;
        value = (struct wire_strv){0};
    }
    *ret_value = value;
}

static void put_u64v(struct writer *w, struct wire_u64v value, size_t maximum)
{
    if (value.count > maximum)
        w->failed = true;
    put_u32(w, value.count, 0);
    put(w, value.data, (size_t)value.count * 8);
}

static void get_u64v(struct reader *r, struct wire_u64v *ret_value, size_t maximum)
{
    uint32_t count;

    get_u32(r, &count, 0);
    if (count > maximum)
        r->failed = true;
    const uint8_t *at = get(r, (size_t)count * 8);
    *ret_value = (struct wire_u64v){.data = at, .count = at != NULL ? count : 0};
}

#define WIRE_PUT_FIELD(kind, name, maximum) put_##kind(w, m->name, maximum);
#define WIRE_GET_FIELD(kind, name, maximum) get_##kind(r, &m->name, maximum);
#define WIRE_FUNCTIONS(NAME, name, number, senders, states, fds)                                                       \
    static void put_##name(struct writer *w, const struct wire_##name *m)                                              \
    {                                                                                                                  \
        WIRE_FIELDS_##name(WIRE_PUT_FIELD)                                                                             \
    }                                                                                                                  \
    static void get_##name(struct reader *r, struct wire_##name *m)                                                    \
    {                                                                                                                  \
        WIRE_FIELDS_##name(WIRE_GET_FIELD)                                                                             \
    }
WIRE_MESSAGES(WIRE_FUNCTIONS)

int wire_encode(const struct wire_message *message, void *frame, size_t size)
{
    uint8_t *start = frame;
    struct writer w = {.at = start, .left = size < WIRE_FRAME_MAX ? size : WIRE_FRAME_MAX};

    put_u32(&w, 0, 0);
    put_u8(&w, WIRE_VERSION, 0);
    put_u8(&w, (uint8_t)message->type, 0);
    put_u16(&w, 0, 0);
    switch (message->type) {
#define WIRE_ENCODE_CASE(NAME, name, number, senders, states, fds)                                                     \
    case WIRE_##NAME:                                                                                                  \
        put_##name(&w, &message->name);                                                                                \
        break;
        WIRE_MESSAGES(WIRE_ENCODE_CASE)
    case WIRE_NOTHING:
    default:
        w.failed = true;
    }
    if (w.failed)
        return -EMSGSIZE;
    uint32_t length = htole32((uint32_t)(w.at - start));
    memcpy(start, &length, sizeof length);
    return (int)(w.at - start);
}

int wire_frame_length(const void *data, size_t length)
{
    const uint8_t *at = data;
    uint32_t announced;

    if (length < WIRE_HEADER_SIZE)
        return 0;
    memcpy(&announced, at, sizeof announced);
    announced = le32toh(announced);
    if (announced < WIRE_HEADER_SIZE || announced > WIRE_FRAME_MAX || at[4] != WIRE_VERSION || at[6] != 0 || at[7] != 0)
        return -EBADMSG;
    return (int)announced;
}

int wire_decode(const void *frame, size_t length, struct wire_message *ret_message)
{
    const uint8_t *start = frame;
    struct wire_message message = {0};

    if (length < WIRE_HEADER_SIZE || wire_frame_length(frame, length) != (int)length)
        return -EBADMSG;
    struct reader r = {.at = start + WIRE_HEADER_SIZE, .left = length - WIRE_HEADER_SIZE};
    message.type = (enum wire_type)start[5];
    switch (message.type) {
#define WIRE_DECODE_CASE(NAME, name, number, senders, states, fds)                                                     \
    case WIRE_##NAME:                                                                                                  \
        get_##name(&r, &message.name);                                                                                 \
        break;
        WIRE_MESSAGES(WIRE_DECODE_CASE)
    case WIRE_NOTHING:
    default:
        return -EBADMSG;
    }
    if (r.failed || r.left != 0)
        return -EBADMSG;
    *ret_message = message;
    return 0;
}

bool wire_is_other_version(const void *frame, size_t length)
{
    const uint8_t *at = frame;

    return length >= WIRE_HEADER_SIZE && at[4] != WIRE_VERSION && at[4] != 0 && at[5] != WIRE_NOTHING;
}

bool wire_permits(enum wire_type type, enum wire_sender sender, enum wire_state state, size_t fd_count)
{
    switch (type) {
#define WIRE_PERMIT_CASE(NAME, name, number, senders, states, fds)                                                     \
    case WIRE_##NAME:                                                                                                  \
        return ((unsigned)(senders) & (unsigned)sender) != 0 && ((unsigned)(states) & (unsigned)state) != 0 &&         \
               fd_count <= (fds);
        WIRE_MESSAGES(WIRE_PERMIT_CASE)
    case WIRE_NOTHING:
    default:
        return false;
    }
}

const char *wire_name(enum wire_type type)
{
    switch (type) {
#define WIRE_NAME_CASE(NAME, name, number, senders, states, fds)                                                       \
    case WIRE_##NAME:                                                                                                  \
        return #NAME;
        WIRE_MESSAGES(WIRE_NAME_CASE)
    case WIRE_NOTHING:
    default:
        return "unknown";
    }
}

struct wire_str wire_str(const char *text)
{
    size_t length = strlen(text);

    return (struct wire_str){.text = text, .length = length > UINT16_MAX ? UINT16_MAX : (uint32_t)length};
}

uint64_t wire_u64v_at(struct wire_u64v vector, uint32_t index)
{
    uint64_t le;

    memcpy(&le, vector.data + (size_t)index * 8, sizeof le);
    return le64toh(le);
}

const char *wire_strv_next(struct wire_strv vector, const char *current)
{
    const char *next = current == NULL ? vector.data : current + strlen(current) + 1;

    return vector.length > 0 && next < vector.data + vector.length ? next : NULL;
}
