/* Answers are made with the encoder and heard in pieces of every length. */
#include "test.h"
#include "wire/answer.h"

#include <stdio.h>

enum { ROOM = 65536 };

static uint8_t stream[ROOM];
static size_t length;

#define ENTRY(file_kind, path)                                                                                         \
    .type = WIRE_ENTRY, .entry = {.kind = file_kind, .mode = 0644, .name = {path, (uint32_t)strlen(path)}}
#define EVENT(what, path) .type = WIRE_EVENT, .event = {.kind = what, .name = {path, (uint32_t)strlen(path)}}
#define PROBLEM(number, text) .type = WIRE_PROBLEM, .problem = {.error = number, .path = {text, (uint32_t)strlen(text)}}
#define WRITTEN .type = WIRE_WRITTEN, .written = {7}

static void add(const struct wire_message *record)
{
    int n = wire_encode(record, stream + length, sizeof stream - length);

    assert_true(n > 0);
    length += (size_t)n;
}

static void add_content(const char *text)
{
    memcpy(stream + length, text, strlen(text));
    length += strlen(text);
}

struct heard {
    int result; /* the last of answer_next(), or that of answer_end() */
    size_t records;
    struct wire_message last;
    char content[256];
};

static struct wire_file make(enum wire_file_operation operation, uint32_t flags)
{
    return (struct wire_file){.operation = (uint8_t)operation, .flags = flags, .length = WIRE_FILE_ALL};
}

static struct heard hear(struct wire_file question, size_t piece)
{
    static struct answer answer;
    struct heard heard = {0};
    struct answer_part part;

    memset(&answer, 0xa5, sizeof answer);
    answer_init(&answer, &question);
    for (size_t at = 0; at < length && heard.result >= 0; at += piece) {
        struct wire_bytes data = {stream + at, (uint32_t)(length - at < piece ? length - at : piece)};
        while ((heard.result = answer_next(&answer, &data, &part)) > 0) {
            if (part.record.type == WIRE_NOTHING) {
                (void)strncat(heard.content, (const char *)part.content.data, part.content.length);
                continue;
            }
            heard.records++;
            heard.last = part.record;
        }
    }
    if (heard.result == 0)
        heard.result = answer_end(&answer, &(struct wire_exit){0});
    return heard;
}

TEST(test_pieces)
{
    length = 0;
    add(&(struct wire_message){ENTRY(WIRE_ENTRY_FILE, "")});
    add_content("hello, world");
    for (size_t piece = 1; piece <= length; piece++) {
        struct heard heard = hear(make(WIRE_FILE_READ, 0), piece);
        assert_int_equal(heard.result, 0);
        assert_int_equal(heard.records, 1);
        assert_string_equal(heard.content, "hello, world");
    }
    length = 0;
    for (int i = 0; i < 50; i++)
        add(&(struct wire_message){ENTRY(WIRE_ENTRY_FOLDER, "name")});
    for (size_t piece = 1; piece <= length; piece += 3) {
        struct heard heard = hear(make(WIRE_FILE_LIST, 0), piece);
        assert_int_equal(heard.result, 0);
        assert_int_equal(heard.records, 50);
    }
}

/* The longest record there is fits. */
TEST(test_longest)
{
    static char text[4097];
    struct wire_message record = {.type = WIRE_ENTRY, .entry = {.kind = WIRE_ENTRY_SYMLINK}};

    memset(text, 'n', sizeof text - 1);
    record.entry.name = record.entry.target = wire_str(text);
    length = 0;
    add(&record);
    assert_true(length <= ANSWER_RECORD_MAX);
    assert_int_equal(hear(make(WIRE_FILE_LIST, 0), 100).records, 1);
}

TEST(test_grammar)
{
    const struct {
        const char *name;
        enum wire_file_operation operation;
        uint32_t flags;
        struct wire_message records[3];
        int expected;
    } rows[] = {
        {"read without entry", WIRE_FILE_READ, 0, {{0}}, -EBADMSG},
        {"read of a folder", WIRE_FILE_READ, 0, {{ENTRY(WIRE_ENTRY_FOLDER, "")}}, -EBADMSG},
        {"read with a name", WIRE_FILE_READ, 0, {{ENTRY(WIRE_ENTRY_FILE, "x")}}, -EBADMSG},
        {"stat", WIRE_FILE_STAT, 0, {{ENTRY(WIRE_ENTRY_DEVICE, "")}}, 0},
        {"stat without entry", WIRE_FILE_STAT, 0, {{0}}, -EBADMSG},
        {"stat twice", WIRE_FILE_STAT, 0, {{ENTRY(WIRE_ENTRY_FILE, "")}, {ENTRY(WIRE_ENTRY_FILE, "")}}, -EBADMSG},
        {"stat of something new", WIRE_FILE_STAT, 0, {{ENTRY(WIRE_ENTRY_KINDS, "")}}, -EBADMSG},
        {"write", WIRE_FILE_WRITE, 0, {{WRITTEN}}, 0},
        {"write without a count", WIRE_FILE_WRITE, 0, {{0}}, -EBADMSG},
        {"write with two", WIRE_FILE_APPEND, 0, {{WRITTEN}, {WRITTEN}}, -EBADMSG},
        {"write with an entry", WIRE_FILE_WRITE, 0, {{ENTRY(WIRE_ENTRY_FILE, "")}}, -EBADMSG},
        {"empty list", WIRE_FILE_LIST, 0, {{0}}, 0},
        {"list", WIRE_FILE_LIST, 0, {{ENTRY(WIRE_ENTRY_FIFO, "..a")}, {PROBLEM(13, "x")}, {ENTRY(0, "b")}}, 0},
        {"list below", WIRE_FILE_LIST, 0, {{ENTRY(WIRE_ENTRY_FILE, "a/b")}}, -EBADMSG},
        {"recursive list", WIRE_FILE_LIST, WIRE_FILE_RECURSIVE, {{ENTRY(WIRE_ENTRY_FILE, "a/b")}}, 0},
        {"list with a count", WIRE_FILE_LIST, 0, {{WRITTEN}}, -EBADMSG},
        {"problem without errno", WIRE_FILE_LIST, 0, {{PROBLEM(0, "x")}}, -EBADMSG},
        {"remove", WIRE_FILE_REMOVE, WIRE_FILE_RECURSIVE, {{PROBLEM(13, "a/b")}, {PROBLEM(1, "")}}, 0},
        {"remove with an entry", WIRE_FILE_REMOVE, WIRE_FILE_RECURSIVE, {{ENTRY(WIRE_ENTRY_FILE, "x")}}, -EBADMSG},
        {"problem outside", WIRE_FILE_REMOVE, WIRE_FILE_RECURSIVE, {{PROBLEM(13, "../b")}}, -EBADMSG},
        {"mkdir", WIRE_FILE_MKDIR, 0, {{0}}, 0},
        {"mkdir with an answer", WIRE_FILE_MKDIR, 0, {{WRITTEN}}, -EBADMSG},
        {"watch", WIRE_FILE_WATCH, 0, {{EVENT(WIRE_EVENT_WATCHING, "")}, {EVENT(WIRE_EVENT_CREATED, "x")}}, 0},
        {"watch too late", WIRE_FILE_WATCH, 0, {{EVENT(WIRE_EVENT_CREATED, "x")}}, -EBADMSG},
        {"watch twice",
         WIRE_FILE_WATCH,
         0,
         {{EVENT(WIRE_EVENT_WATCHING, "")}, {EVENT(WIRE_EVENT_WATCHING, "")}},
         -EBADMSG},
        {"watch beyond its end",
         WIRE_FILE_WATCH,
         0,
         {{EVENT(WIRE_EVENT_WATCHING, "")}, {EVENT(WIRE_EVENT_GONE, "")}, {EVENT(WIRE_EVENT_CREATED, "x")}},
         -EBADMSG},
        {"event of something new",
         WIRE_FILE_WATCH,
         0,
         {{EVENT(WIRE_EVENT_WATCHING, "")}, {EVENT(WIRE_EVENT_KINDS, "")}},
         -EBADMSG},
        {"a message", WIRE_FILE_LIST, 0, {{.type = WIRE_HELLO}}, -EBADMSG},
        {"no such question", WIRE_FILE_OPERATIONS, 0, {{WRITTEN}}, -EBADMSG},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        length = 0;
        for (size_t k = 0; k < COUNT(rows[i].records) && rows[i].records[k].type != WIRE_NOTHING; k++) {
            struct wire_message record = rows[i].records[k];
            if (record.type == WIRE_ENTRY)
                record.entry.target = wire_str("");
            add(&record);
        }
        assert_row(rows[i].name, hear(make(rows[i].operation, rows[i].flags), 13).result == rows[i].expected);
    }
}

TEST(test_names)
{
    static const struct {
        const char *path;
        bool is_below;
    } rows[] = {
        {"a", true},       {"a/b/c", true}, {"...", true},   {".a/..b", true}, {"", false},     {"/", false},
        {"/a", false},     {"a/", false},   {"a//b", false}, {".", false},     {"..", false},   {"a/..", false},
        {"a/../b", false}, {"./a", false},  {"../a", false}, {"a/./b", false}, {"a b\n", true},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        assert_row(rows[i].path, answer_is_below(wire_str(rows[i].path)) == rows[i].is_below);
        if (strlen(rows[i].path) == 0)
            continue;
        length = 0;
        add(&(struct wire_message){ENTRY(WIRE_ENTRY_FILE, rows[i].path), .entry.target = wire_str("")});
        int result = hear(make(WIRE_FILE_LIST, WIRE_FILE_RECURSIVE), 1000).result;
        assert_row(rows[i].path, result == (rows[i].is_below ? 0 : -EBADMSG));
    }
}

/* No more content than was asked for; a record that is too long or cut. */
TEST(test_lengths)
{
    struct wire_file question = make(WIRE_FILE_READ, 0);

    length = 0;
    add(&(struct wire_message){ENTRY(WIRE_ENTRY_FILE, ""), .entry.target = wire_str("")});
    add_content("12345");
    question.length = 5;
    assert_int_equal(hear(question, 3).result, 0);
    question.length = 4;
    assert_int_equal(hear(question, 3).result, -EBADMSG);
    length = 0;
    add(&(struct wire_message){WRITTEN});
    length--;
    assert_int_equal(hear(make(WIRE_FILE_WRITE, 0), 3).result, -EBADMSG);
    length = 0;
    add_content("\xff\xff\x00\x00\x01\x60\x01\x01");
    assert_int_equal(hear(make(WIRE_FILE_LIST, 0), 100).result, -EBADMSG);
    uint8_t huge[] = {0xff, 0xff, 0, 0, WIRE_VERSION, WIRE_ENTRY, 0, 0};
    memcpy(stream, huge, sizeof huge);
    length = sizeof huge;
    assert_int_equal(hear(make(WIRE_FILE_LIST, 0), 100).result, -EBADMSG);
}

/* An answer that failed may be cut anywhere; its result must still be one. */
TEST(test_failed)
{
    static struct answer answer;
    struct wire_file question = make(WIRE_FILE_STAT, 0);

    answer_init(&answer, &question);
    assert_int_equal(answer_end(&answer, &(struct wire_exit){.value = ENOENT}), 0);
    assert_int_equal(answer_end(&answer, &(struct wire_exit){.kind = WIRE_EXIT_SIGNAL, .value = 9}), 0);
    assert_int_equal(answer_end(&answer, &(struct wire_exit){.kind = WIRE_EXIT_NOT_STARTED, .value = 22}), 0);
    assert_int_equal(answer_end(&answer, &(struct wire_exit){.value = 5000}), -EBADMSG);
    assert_int_equal(answer_end(&answer, &(struct wire_exit){.kind = 3, .value = 1}), -EBADMSG);
    assert_int_equal(answer_end(&answer, &(struct wire_exit){.kind = WIRE_EXIT_SIGNAL}), -EBADMSG);
    assert_int_equal(answer_end(&answer, &(struct wire_exit){.kind = WIRE_EXIT_NOT_STARTED}), -EBADMSG);
    assert_int_equal(answer_end(&answer, &(struct wire_exit){0}), -EBADMSG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pieces), cmocka_unit_test(test_longest), cmocka_unit_test(test_grammar),
        cmocka_unit_test(test_names),  cmocka_unit_test(test_lengths), cmocka_unit_test(test_failed),
    };
    return cmocka_run_group_tests_name("wire/answer", tests, NULL, NULL);
}
