/*
 * Theory of operation. Whatever holds for every message is tested with messages that sample.c makes from the table. An
 * encoder of our own, without any check, says what the bytes must be and forges the frames that must be refused.
 */
#include "sample.h"
#include "test.h"
#include "wire/wire.h"

#include <stdlib.h>

struct forge {
    uint8_t *at;
};

static void forge_bytes_raw(struct forge *f, const void *data, size_t length)
{
    if (length > 0)
        memcpy(f->at, data, length);
    f->at += length;
}

static void forge_number(struct forge *f, uint64_t value, size_t size)
{
    for (size_t i = 0; i < size; i++)
        *f->at++ = (uint8_t)(value >> (8 * i));
}

#define FORGE_NUMBER(kind)                                                                                             \
    static void forge_##kind(struct forge *f, WIRE_C_##kind value)                                                     \
    {                                                                                                                  \
        forge_number(f, value, sizeof value);                                                                          \
    }
FORGE_NUMBER(u8)
FORGE_NUMBER(u16)
FORGE_NUMBER(u32)
FORGE_NUMBER(u64)

static void forge_str(struct forge *f, struct wire_str value)
{
    forge_number(f, value.length, 2);
    forge_bytes_raw(f, value.text, value.length);
    forge_number(f, 0, 1);
}

static void forge_bytes(struct forge *f, struct wire_bytes value)
{
    forge_number(f, value.length, 4);
    forge_bytes_raw(f, value.data, value.length);
}

static void forge_strv(struct forge *f, struct wire_strv value)
{
    forge_number(f, value.count, 4);
    forge_number(f, value.length, 4);
    forge_bytes_raw(f, value.data, value.length);
}

static void forge_u64v(struct forge *f, struct wire_u64v value)
{
    forge_number(f, value.count, 4);
    for (uint32_t i = 0; i < value.count; i++)
        forge_number(f, wire_u64v_at(value, i), 8);
}

static void set_length(uint8_t *frame, size_t length)
{
    forge_number(&(struct forge){frame}, length, 4);
}

#define FORGE_FIELD(kind, name, maximum) forge_##kind(&f, m->name);
#define FORGE_CASE(NAME, name, number, senders, states, fds)                                                           \
    case WIRE_##NAME: {                                                                                                \
        const struct wire_##name *m = &message->name;                                                                  \
        WIRE_FIELDS_##name(FORGE_FIELD) break;                                                                         \
    }

/* The frame of a message, which `frame` must have room for, also when it is one that may not be. */
static size_t forge(const struct wire_message *message, uint8_t *frame)
{
    struct forge f = {frame + 4};

    forge_u8(&f, WIRE_VERSION);
    forge_u8(&f, (uint8_t)message->type);
    forge_u16(&f, 0);
    switch (message->type) {
        WIRE_MESSAGES(FORGE_CASE)
    case WIRE_NOTHING:
    default:
        fail();
    }
    set_length(frame, (size_t)(f.at - frame));
    return (size_t)(f.at - frame);
}

static uint8_t frame[WIRE_FRAME_MAX + 16];
static uint8_t again[WIRE_FRAME_MAX + 16];

/* Decode from memory of exactly this length, so that a read beyond it is seen. */
static int decode_exactly(const uint8_t *data, size_t length)
{
    struct wire_message message;
    uint8_t *copy = malloc(length > 0 ? length : 1);

    assert_non_null(copy);
    memcpy(copy, data, length);
    int r = wire_decode(copy, length, &message);
    free(copy);
    return r;
}

TEST(test_round_trip)
{
    for (size_t row = 0; row < sample_count; row++) {
        for (enum sample_size size = SAMPLE_LEAST; size < SAMPLE_SIZES; size++) {
            const char *name = sample_rows[row].name;
            struct wire_message message;
            struct wire_message decoded;
            (void)sample_fill(row, size, SAMPLE_NONE, &message);
            int length = wire_encode(&message, frame, sizeof frame);
            assert_row(name, length > WIRE_HEADER_SIZE);
            assert_row(name, wire_frame_length(frame, (size_t)length) == length);
            assert_row(name, forge(&message, again) == (size_t)length && memcmp(frame, again, (size_t)length) == 0);
            assert_row(name, wire_decode(frame, (size_t)length, &decoded) == 0);
            assert_row(name, decoded.type == (enum wire_type)sample_rows[row].number);
            assert_row(name, forge(&decoded, again) == (size_t)length && memcmp(frame, again, (size_t)length) == 0);
            assert_row(name, wire_encode(&decoded, again, (size_t)length) == length);
            assert_row(name, memcmp(frame, again, (size_t)length) == 0);
            assert_row(name, decode_exactly(frame, (size_t)length) == 0);
        }
    }
}

/* Every byte less, whether or not the header admits it, and every byte more. */
TEST(test_wrong_length)
{
    for (size_t row = 0; row < sample_count; row++) {
        for (enum sample_size size = SAMPLE_LEAST; size < SAMPLE_SIZES; size++) {
            const char *name = sample_rows[row].name;
            struct wire_message message;
            (void)sample_fill(row, size, SAMPLE_NONE, &message);
            size_t length = forge(&message, frame);
            size_t step = length < 2048 ? 1 : length / 512; /* the largest frames would take minutes */
            for (size_t cut = 0; cut < length;
                 cut += cut + step < length || cut == length - 1 ? step : length - 1 - cut) {
                set_length(frame, length);
                assert_row(name, decode_exactly(frame, cut) == -EBADMSG);
                set_length(frame, cut);
                assert_row(name, decode_exactly(frame, cut) == -EBADMSG);
                assert_row(name, decode_exactly(frame, length) == -EBADMSG);
            }
            frame[length] = 0;
            assert_row(name, decode_exactly(frame, length + 1) == -EBADMSG);
            set_length(frame, length + 1);
            assert_row(name, decode_exactly(frame, length + 1) == -EBADMSG);
        }
    }
}

TEST(test_over_maximum)
{
    for (size_t row = 0; row < sample_count; row++) {
        struct wire_message message;
        int fields = sample_fill(row, SAMPLE_LEAST, SAMPLE_NONE, &message);
        for (int field = 0; field < fields; field++) {
            if (!sample_has_maximum(row, field))
                continue;
            (void)sample_fill(row, SAMPLE_LEAST, field, &message);
            assert_row(sample_rows[row].name, wire_encode(&message, frame, sizeof frame) == -EMSGSIZE);
            size_t length = forge(&message, frame);
            assert_true(length <= WIRE_FRAME_MAX);
            assert_row(sample_rows[row].name, decode_exactly(frame, length) == -EBADMSG);
        }
    }
}

/* Room for all but one byte is no room, and nothing is written beyond it. */
TEST(test_no_room)
{
    for (size_t row = 0; row < sample_count; row++) {
        struct wire_message message;
        (void)sample_fill(row, SAMPLE_SMALL, SAMPLE_NONE, &message);
        size_t length = forge(&message, again);
        for (size_t room = 0; room < length; room++) {
            memset(frame, 0xaa, length);
            assert_row(sample_rows[row].name, wire_encode(&message, frame, room) == -EMSGSIZE);
            for (size_t i = room; i < length; i++)
                assert_row(sample_rows[row].name, frame[i] == 0xaa);
        }
    }
}

TEST(test_header)
{
    static const struct {
        size_t offset;
        uint8_t value;
        bool is_header; /* wire_frame_length() sees it too */
    } rows[] = {
        {4, 0, true},    {4, WIRE_VERSION + 1, true},
        {4, 255, true},  {5, WIRE_NOTHING, false},
        {5, 255, false}, {6, 1, true},
        {6, 255, true},  {7, 1, true},
        {7, 255, true},
    };
    struct wire_message message = {.type = WIRE_RELEASE, .release = {.channel = 1}};

    for (size_t i = 0; i < COUNT(rows); i++) {
        size_t length = forge(&message, frame);
        assert_int_equal(decode_exactly(frame, length), 0);
        frame[rows[i].offset] = rows[i].value;
        assert_int_equal(decode_exactly(frame, length), -EBADMSG);
        assert_int_equal(wire_frame_length(frame, length), rows[i].is_header ? -EBADMSG : (int)length);
        assert_int_equal(wire_is_other_version(frame, length), rows[i].offset == 4 && rows[i].value != 0);
        assert_false(wire_is_other_version(frame, WIRE_HEADER_SIZE - 1));
    }
}

TEST(test_frame_length)
{
    static const struct {
        uint32_t announced;
        int result;
    } rows[] = {
        {0, -EBADMSG},
        {WIRE_HEADER_SIZE - 1, -EBADMSG},
        {WIRE_HEADER_SIZE, WIRE_HEADER_SIZE},
        {WIRE_FRAME_MAX, WIRE_FRAME_MAX},
        {WIRE_FRAME_MAX + 1, -EBADMSG},
        {INT32_MAX, -EBADMSG},
        {UINT32_MAX, -EBADMSG},
    };
    uint8_t header[WIRE_HEADER_SIZE] = {[4] = WIRE_VERSION};

    for (size_t i = 0; i < COUNT(rows); i++) {
        set_length(header, rows[i].announced);
        assert_int_equal(wire_frame_length(header, sizeof header), rows[i].result);
        for (size_t have = 0; have < sizeof header; have++)
            assert_int_equal(wire_frame_length(header, have), 0);
    }
}

/* One string or vector in a frame that is right but for it. */
TEST(test_fields)
{
    struct wire_message refused = {.type = WIRE_REFUSED, .refused.detail = {"abc", 3}};
    struct wire_message config = {.type = WIRE_CONFIG, .config.shares = {"a\0b\0\0", 5, 3}};
    static const struct {
        const char *name;
        bool in_config;
        size_t from_end;
        uint8_t value;
        int result;
    } rows[] = {
        {"a string", false, 2, 'x', 0},
        {"a NUL inside a string", false, 3, '\0', -EBADMSG},
        {"a NUL as its last letter", false, 2, '\0', -EBADMSG},
        {"no NUL at its end", false, 1, 'x', -EBADMSG},
        {"a string that says it is shorter", false, 6, 2, -EBADMSG},
        {"a string that says it is longer", false, 6, 4, -EBADMSG},
        {"a string that says it is much longer", false, 5, 255, -EBADMSG},
        {"a vector", true, 3, 'x', 0},
        {"a vector with more strings than it says", true, 5, '\0', -EBADMSG},
        {"a vector with fewer strings than it says", true, 2, 'x', -EBADMSG},
        {"a vector without a NUL at its end", true, 1, 'x', -EBADMSG},
        {"a vector that says it has more strings", true, 13, 4, -EBADMSG},
        {"a vector that says it has fewer strings", true, 13, 2, -EBADMSG},
        {"a vector that says it has very many strings", true, 10, 255, -EBADMSG},
        {"a vector that says it is longer", true, 9, 6, -EBADMSG},
        {"a vector that says it is much longer", true, 6, 255, -EBADMSG},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        size_t length = forge(rows[i].in_config ? &config : &refused, frame);
        frame[length - rows[i].from_end] = rows[i].value;
        assert_row(rows[i].name, decode_exactly(frame, length) == rows[i].result);
    }
}

TEST(test_encode_refuses)
{
    const struct wire_message messages[] = {
        {.type = WIRE_NOTHING},
        {.type = (enum wire_type)255},
        {.type = WIRE_REFUSED, .refused.detail = {"a\0c", 3}},
        {.type = WIRE_CONFIG, .config.shares = {"a\0b", 3, 2}},
        {.type = WIRE_CONFIG, .config.shares = {"a\0b\0", 4, 1}},
        {.type = WIRE_CONFIG, .config.shares = {"a\0b\0", 4, 3}},
        {.type = WIRE_CONFIG, .config.shares = {NULL, 0, 1}},
    };

    for (size_t i = 0; i < COUNT(messages); i++)
        assert_int_equal(wire_encode(&messages[i], frame, sizeof frame), -EMSGSIZE);
}

/* Exactly what the table says, whoever sends it, whenever, with however many descriptors. */
TEST(test_permits)
{
    for (size_t row = 0; row < sample_count; row++) {
        const struct sample_row *expected = &sample_rows[row];
        for (unsigned sender = WIRE_BY_CLIENT; sender <= WIRE_BY_WORKER; sender *= 2) {
            for (unsigned state_bit = WIRE_IN_STARTING; state_bit <= WIRE_IN_RUNNING; state_bit *= 2) {
                for (size_t fds = 0; fds < expected->fds + 3; fds++) {
                    bool may = (expected->senders & sender) != 0 && (expected->states & state_bit) != 0 &&
                               fds <= expected->fds;
                    assert_row(expected->name, wire_permits((enum wire_type)expected->number, (enum wire_sender)sender,
                                                            (enum wire_state)state_bit, fds) == may);
                }
            }
        }
    }
    for (unsigned type = 0; type < 512; type++) {
        bool is_known = false;
        for (size_t row = 0; row < sample_count; row++)
            is_known = is_known || sample_rows[row].number == type;
        if (!is_known)
            assert_false(wire_permits((enum wire_type)type, (enum wire_sender)255, (enum wire_state)255, 0));
    }
}

/* Numbers are unique and fit their byte; a sandbox can hand descriptors to nobody. */
TEST(test_table)
{
    for (size_t i = 0; i < sample_count; i++) {
        const struct sample_row *row = &sample_rows[i];
        assert_row(row->name, row->number > 0 && row->number < 256);
        assert_row(row->name, row->senders != 0 && row->states != 0);
        assert_row(row->name, (row->senders & WIRE_BY_GUEST) == 0 || (row->senders == WIRE_BY_GUEST && row->fds == 0));
        assert_string_equal(wire_name((enum wire_type)row->number), row->name);
        for (size_t k = 0; k < i; k++) {
            assert_row(row->name, row->number != sample_rows[k].number);
            assert_string_not_equal(row->name, sample_rows[k].name);
        }
    }
    assert_string_equal(wire_name(WIRE_NOTHING), "unknown");
    assert_string_equal(wire_name((enum wire_type)255), "unknown");
}

TEST(test_views)
{
    static const uint8_t numbers[] = {0xff, 1, 2, 3, 4, 5, 6, 7, 8, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18};
    static const char *const expected[] = {"", "ab", "", "c"};
    struct wire_strv strings = {"\0ab\0\0c\0", 7, 4};
    struct wire_u64v vector = {numbers + 1, 2};
    const char *at = NULL;

    assert_int_equal(wire_u64v_at(vector, 0), UINT64_C(0x0807060504030201));
    assert_int_equal(wire_u64v_at(vector, 1), UINT64_C(0x1817161514131211));
    for (size_t i = 0; i < COUNT(expected); i++) {
        at = wire_strv_next(strings, at);
        assert_non_null(at);
        assert_string_equal(at, expected[i]);
    }
    assert_null(wire_strv_next(strings, at));
    assert_null(wire_strv_next((struct wire_strv){0}, NULL));
}

TEST(test_str)
{
    static char text[70001];

    assert_int_equal(wire_str("").length, 0);
    assert_int_equal(wire_str("abc").length, 3);
    memset(text, 'x', sizeof text - 1);
    struct wire_message message = {.type = WIRE_FILE, .file = {.path = wire_str(text)}};
    assert_int_equal(wire_encode(&message, frame, sizeof frame), -EMSGSIZE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip), cmocka_unit_test(test_wrong_length),   cmocka_unit_test(test_over_maximum),
        cmocka_unit_test(test_no_room),    cmocka_unit_test(test_header),         cmocka_unit_test(test_frame_length),
        cmocka_unit_test(test_fields),     cmocka_unit_test(test_encode_refuses), cmocka_unit_test(test_permits),
        cmocka_unit_test(test_table),      cmocka_unit_test(test_views),          cmocka_unit_test(test_str),
    };
    return cmocka_run_group_tests_name("wire/wire", tests, NULL, NULL);
}
