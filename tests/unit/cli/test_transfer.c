/* Files on their way, in a folder of our own: we are init, and send what it may and what it may not. */
#include "base/cleanup.h"
#include "base/fd.h"
#include "cli/transfer.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

enum { CHANNEL = 7, LIMIT = 1000, BIG = 300000 };

static const struct run_options options = {.disk_bytes = LIMIT, .uid = 1234, .folder = "/workspace"};
static struct transfer transfer;
static struct error err;

static void open_one(bool is_put, const char *host)
{
    static struct option_copy copy = {.guest = "inside"};

    (void)snprintf(copy.host, sizeof copy.host, "/mnt/%s", host);
    assert_int_equal(transfer_open(&transfer, &options, &copy, is_put, CHANNEL, &err), 0);
    assert_int_equal(transfer.question.channel, CHANNEL);
    assert_int_equal(transfer.question.uid, 1234);
    assert_string_equal(transfer.question.path.text, "inside");
}

static size_t names(void)
{
    DIR *folder = opendir("/mnt");
    size_t count = 0;

    assert_non_null(folder);
    while (readdir(folder) != NULL)
        count++;
    (void)closedir(folder);
    return count - 2;
}

static int set_up(void **state)
{
    (void)state;
    err = (struct error){0};
    test_hide("/mnt");
    return 0;
}

static struct wire_bytes entry(uint64_t size, uint32_t mode)
{
    static uint8_t frame[256];
    struct wire_message record = {.type = WIRE_ENTRY,
                                  .entry = {.mode = mode, .size = size, .name = {"", 0}, .target = {"", 0}}};

    return (struct wire_bytes){frame, (uint32_t)wire_encode(&record, frame, sizeof frame)};
}

static int say(uint64_t offset, struct wire_bytes data)
{
    return transfer_hear(&transfer,
                         &(struct wire_message){.type = WIRE_STDOUT, .stdout_data = {CHANNEL, offset, data}});
}

static int end(uint8_t kind, uint32_t value, const char *tail)
{
    struct wire_message message = {.type = WIRE_EXIT, .exit = {.channel = CHANNEL, .kind = kind, .value = value}};

    message.exit.stdout_offset = transfer.heard;
    message.exit.stdout_tail = (struct wire_bytes){(const uint8_t *)tail, (uint32_t)strlen(tail)};
    return transfer_hear(&transfer, &message);
}

/* Nothing has its name before all of it is there; then it is no more than a file with permissions. */
TEST(test_get)
{
    struct stat st;

    open_one(false, "file");
    assert_int_equal(transfer.question.length, LIMIT);
    struct wire_bytes data = entry(5, 06777);
    assert_int_equal(say(0, data), 0);
    assert_int_equal(stat("/mnt/file", &st), -1);
    assert_int_equal(end(WIRE_EXIT_CODE, 0, "hello"), 0);
    assert_true(transfer.ended);
    assert_int_equal(transfer_finish(&transfer, &err), 0);
    transfer_release(&transfer);
    assert_int_equal(stat("/mnt/file", &st), 0);
    assert_int_equal(st.st_size, 5);
    assert_int_equal(st.st_mode & 07000, 0);
    assert_int_equal(names(), 1);
}

static int finish_with(uint64_t size, uint32_t value, uint8_t kind, const char *content)
{
    test_write(AT_FDCWD, "/mnt/old", "old");
    open_one(false, "old");
    assert_int_equal(say(0, entry(size, 0644)), 0);
    assert_int_equal(end(kind, value, content), 0);
    int r = transfer_finish(&transfer, &err);
    transfer_release(&transfer);
    return r;
}

/* What fails leaves what was there, and nothing else. */
TEST(test_get_fails)
{
    static const struct {
        uint64_t size;
        uint32_t value;
        uint8_t kind;
        const char *content;
        const char *message;
    } rows[] = {
        {4, 0, WIRE_EXIT_CODE, "abc", "was cut"},
        {LIMIT + 1, 0, WIRE_EXIT_CODE, "abc", "more than --disk"},
        {3, EIO, WIRE_EXIT_CODE, "abc", "Input/output error"},
        {3, 9, WIRE_EXIT_SIGNAL, "abc", "signal 9"},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        char text[16];
        assert_row(rows[i].message, finish_with(rows[i].size, rows[i].value, rows[i].kind, rows[i].content) < 0);
        assert_row(rows[i].message, strstr(err.message, rows[i].message) != NULL);
        assert_row(rows[i].message, strstr(err.message, "--get") != NULL);
        assert_int_equal(fd_read_file(AT_FDCWD, "/mnt/old", text, sizeof text), 3);
        assert_int_equal(names(), 1);
    }
}

TEST(test_hostile)
{
    static uint8_t much[WIRE_WINDOW];
    struct wire_bytes data = entry(5, 0644);

    for (int i = 0; i < 6; i++) {
        open_one(false, "file");
        switch (i) {
        case 0: /* a gap */
            assert_int_equal(say(1, data), -EBADMSG);
            break;
        case 1: /* content that was not announced by an entry */
            assert_int_equal(say(0, (struct wire_bytes){much, 100}), -EBADMSG);
            break;
        case 2: /* more than was asked for */
            assert_int_equal(say(0, data), 0);
            assert_int_equal(say(data.length, (struct wire_bytes){much, LIMIT + 1}), -EBADMSG);
            break;
        case 3: /* more than the window */
            assert_int_equal(say(0, data), 0);
            assert_int_equal(say(data.length, (struct wire_bytes){much, sizeof much}), -EBADMSG);
            break;
        case 4: /* success, and nothing came */
            assert_int_equal(end(WIRE_EXIT_CODE, 0, ""), -EBADMSG);
            break;
        default: /* what is no message of a file's */
            assert_int_equal(transfer_hear(&transfer, &(struct wire_message){.type = WIRE_STDERR}), -EBADMSG);
            assert_int_equal(
                transfer_hear(&transfer, &(struct wire_message){.type = WIRE_TAKEN, .taken = {CHANNEL, 1, 0}}),
                -EBADMSG);
        }
        transfer_release(&transfer);
        assert_int_equal(names(), 0);
    }
    open_one(false, "file");
    assert_int_equal(end(WIRE_EXIT_CODE, ENOENT, ""), 0);
    assert_int_equal(end(WIRE_EXIT_CODE, ENOENT, ""), -EBADMSG); /* once more after its end */
    transfer_release(&transfer);
}

/* Never more than the window ahead of what was taken; all of it in order; the end is told. */
TEST(test_put)
{
    struct wire_message message;
    uint64_t sent = 0;
    bool is_end = false;
    int fd = open("/mnt/big", O_WRONLY | O_CREAT | O_CLOEXEC, 0640);

    assert_return_code(ftruncate(fd, BIG), errno);
    (void)close(fd);
    open_one(true, "big");
    assert_int_equal(transfer.question.length, BIG);
    assert_int_equal(transfer.question.mode, 0640);
    while (!is_end) {
        uint64_t before = sent;
        while (transfer_next(&transfer, &message)) {
            assert_int_equal(message.type, WIRE_STDIN);
            assert_int_equal(message.stdin_data.offset, sent);
            sent += message.stdin_data.data.length;
            is_end = message.stdin_data.end != 0;
        }
        assert_true(sent > before && sent - before <= WIRE_WINDOW);
        struct wire_message taken = {.type = WIRE_TAKEN, .taken = {CHANNEL, sent, 0}};
        assert_int_equal(transfer_hear(&transfer, &taken), 0);
    }
    assert_int_equal(sent, BIG);
    transfer_release(&transfer);
}

/* A file that shrinks while it is sent ends early; a sandbox that wants no more gets none. */
TEST(test_put_ends_early)
{
    struct wire_message message;

    test_write(AT_FDCWD, "/mnt/short", "12345");
    open_one(true, "short");
    assert_return_code(truncate("/mnt/short", 2), errno);
    assert_true(transfer_next(&transfer, &message));
    assert_int_equal(message.stdin_data.data.length, 2);
    assert_true(transfer_next(&transfer, &message));
    assert_int_equal(message.stdin_data.end, 1);
    assert_false(transfer_next(&transfer, &message));
    transfer_release(&transfer);
    open_one(true, "short");
    message = (struct wire_message){.type = WIRE_TAKEN, .taken = {CHANNEL, 0, 1}};
    assert_int_equal(transfer_hear(&transfer, &message), 0);
    assert_false(transfer_next(&transfer, &message));
    transfer_release(&transfer);
    assert_int_equal(names(), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_get, set_up),
        cmocka_unit_test_setup(test_get_fails, set_up),
        cmocka_unit_test_setup(test_hostile, set_up),
        cmocka_unit_test_setup(test_put, set_up),
        cmocka_unit_test_setup(test_put_ends_early, set_up),
    };
    return cmocka_run_group_tests_name("cli/transfer", tests, NULL, NULL);
}
