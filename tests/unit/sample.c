/*
 * Theory of operation. The table turns into one fill function per message, which hands each field to the function of
 * its kind. What fields point at is cut from the end of arrays that are as long as the longest field, so that a
 * string of any length ends where its array does.
 */
#include "sample.h"

#include <endian.h>
#include <string.h>

enum { LONGEST = 65536, SMALL = 5 };

struct fill {
    enum sample_size size;
    int over;
    int index;
};

static char text[LONGEST + 1];
static char strings[LONGEST];
static uint8_t bytes[LONGEST];

static void prepare(void)
{
    memset(text, 't', LONGEST);
    for (size_t i = 0; i < LONGEST; i++) {
        strings[i] = i % 2 == 0 ? 's' : '\0';
        bytes[i] = (uint8_t)(i * 7);
    }
}

static uint64_t number_of(struct fill *fill)
{
    uint64_t number = UINT64_C(0x0102030405060708) * (uint64_t)(fill->index + 1);

    fill->index++;
    return fill->size == SAMPLE_LEAST ? 0 : fill->size == SAMPLE_SMALL ? number : UINT64_MAX;
}

static uint32_t length_of(struct fill *fill, uint32_t maximum)
{
    if (fill->index++ == fill->over)
        return maximum + 1;
    return fill->size == SAMPLE_LEAST ? 0 : fill->size == SAMPLE_SMALL ? SMALL : maximum;
}

#define FILL_NUMBER(kind)                                                                                              \
    static void fill_##kind(struct fill *fill, WIRE_C_##kind *ret_value, uint32_t maximum)                             \
    {                                                                                                                  \
        (void)maximum;                                                                                                 \
        *ret_value = (WIRE_C_##kind)number_of(fill);                                                                   \
    }
FILL_NUMBER(u8)
FILL_NUMBER(u16)
FILL_NUMBER(u32)
FILL_NUMBER(u64)

static void fill_str(struct fill *fill, struct wire_str *ret_value, uint32_t maximum)
{
    uint32_t length = length_of(fill, maximum);

    *ret_value = (struct wire_str){text + LONGEST - length, length};
}

static void fill_bytes(struct fill *fill, struct wire_bytes *ret_value, uint32_t maximum)
{
    uint32_t length = length_of(fill, maximum);

    *ret_value = (struct wire_bytes){bytes + LONGEST - length, length};
}

/* Of an odd length the first string is empty. */
static void fill_strv(struct fill *fill, struct wire_strv *ret_value, uint32_t maximum)
{
    uint32_t length = length_of(fill, maximum);

    *ret_value = (struct wire_strv){strings + LONGEST - length, length, (length + 1) / 2};
}

static void fill_u64v(struct fill *fill, struct wire_u64v *ret_value, uint32_t maximum)
{
    uint32_t count = length_of(fill, maximum);

    *ret_value = (struct wire_u64v){bytes + LONGEST - (size_t)count * 8, count};
}

#define FILL_FIELD(kind, name, maximum) fill_##kind(fill, &m->name, maximum);
#define FILL_MESSAGE(NAME, name, number, senders, states, fds)                                                         \
    static void fill_##name(struct fill *fill, struct wire_message *message)                                           \
    {                                                                                                                  \
        struct wire_##name *m = &message->name;                                                                        \
        message->type = WIRE_##NAME;                                                                                   \
        WIRE_FIELDS_##name(FILL_FIELD)                                                                                 \
    }
WIRE_MESSAGES(FILL_MESSAGE)

#define FILL_FUNCTION(NAME, name, number, senders, states, fds) fill_##name,
static void (*const fills[])(struct fill *fill, struct wire_message *message) = {WIRE_MESSAGES(FILL_FUNCTION)};

#define SAMPLE_ROW(NAME, name, number, senders, states, fds) {#NAME, number, senders, states, fds},
const struct sample_row sample_rows[] = {WIRE_MESSAGES(SAMPLE_ROW)};
const size_t sample_count = sizeof sample_rows / sizeof *sample_rows;

int sample_fill(size_t row, enum sample_size size, int over, struct wire_message *ret_message)
{
    struct fill fill = {.size = size, .over = over};

    if (text[0] == '\0')
        prepare();
    memset(ret_message, 0, sizeof *ret_message);
    fills[row](&fill, ret_message);
    return fill.index;
}

#define KIND_FIELD(kind, name, maximum) (maximum) != 0,
#define KIND_MESSAGE(NAME, name, number, senders, states, fds)                                                         \
    static const bool limited_##name[] = {WIRE_FIELDS_##name(KIND_FIELD)};
WIRE_MESSAGES(KIND_MESSAGE)

#define KIND_ROW(NAME, name, number, senders, states, fds) limited_##name,

bool sample_has_maximum(size_t row, int index)
{
    static const bool *const rows[] = {WIRE_MESSAGES(KIND_ROW)};

    return rows[row][index];
}
