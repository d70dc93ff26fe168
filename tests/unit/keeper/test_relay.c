#include "keeper/relay.h"

#include "test.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct fixture {
    struct relay relay;
    int write_fd;
    int ends[2]; /* where it goes */
};

static void set_up(struct fixture *fixture)
{
    struct error err = {0};

    fixture->relay = RELAY_EMPTY;
    assert_int_equal(pipe2(fixture->ends, O_CLOEXEC | O_NONBLOCK), 0);
    assert_int_equal(relay_open(&fixture->relay, "gateway", fixture->ends[1], &fixture->write_fd, &err), 0);
}

static void tear_down(struct fixture *fixture)
{
    relay_finish(&fixture->relay);
    (void)close(fixture->ends[0]);
    (void)close(fixture->ends[1]);
}

static void say(const struct fixture *fixture, const void *text, size_t length)
{
    assert_int_equal(write(fixture->write_fd, text, length), length);
}

static void expect(const struct fixture *fixture, const char *text)
{
    char got[8192];
    ssize_t n = read(fixture->ends[0], got, sizeof got - 1);

    got[n > 0 ? n : 0] = '\0';
    assert_string_equal(got, text);
}

TEST(test_lines)
{
    struct fixture fixture;

    set_up(&fixture);
    say(&fixture, "one\ntwo\n\nth", 11);
    relay_some(&fixture.relay);
    expect(&fixture, "gateway: one\ngateway: two\ngateway: \n");
    say(&fixture, "ree", 3);
    relay_some(&fixture.relay);
    expect(&fixture, "");
    (void)close(fixture.write_fd);
    relay_some(&fixture.relay);
    expect(&fixture, "gateway: three\n");
    assert_int_equal(fixture.relay.fd, -1);
    relay_some(&fixture.relay);
    tear_down(&fixture);
}

TEST(test_escaped)
{
    static const char said[] = "a\tb\x1b[2J\r\x7f\xc2\x9b"
                               "1\xc3\xa4\xff\0z\n";
    struct fixture fixture;

    set_up(&fixture);
    say(&fixture, said, sizeof said - 1);
    relay_some(&fixture.relay);
    expect(&fixture, "gateway: a\tb\\x1b[2J\\x0d\\x7f\\xc2\\x9b1\xc3\xa4\\xff\\x00z\n");
    /* A character in two pieces is one; without its end it is none. */
    say(&fixture, "\xe2\x82", 2);
    relay_some(&fixture.relay);
    say(&fixture, "\xac\n\xe2\x82", 4);
    relay_some(&fixture.relay);
    expect(&fixture, "gateway: \xe2\x82\xac\n");
    (void)close(fixture.write_fd);
    relay_finish(&fixture.relay);
    expect(&fixture, "gateway: \\xe2\\x82\n");
    tear_down(&fixture);
}

/* What looks like a line of the keeper's own is not one, in either format. */
TEST(test_marked)
{
    static const char said[] = "{\"program\":\"hutchd\"}\r\n\\\t\"}\n";
    struct fixture fixture;

    set_up(&fixture);
    say(&fixture, "time=0 program=hutchd event=ready\n", 34);
    relay_some(&fixture.relay);
    expect(&fixture, "gateway: time=0 program=hutchd event=ready\n");
    fixture.relay.format = LOG_FORMAT_JSON;
    say(&fixture, said, sizeof said - 1);
    relay_some(&fixture.relay);
    expect(&fixture, "{\"source\":\"gateway\",\"line\":\"{\\\"program\\\":\\\"hutchd\\\"}\\\\x0d\"}\n"
                     "{\"source\":\"gateway\",\"line\":\"\\\\\\t\\\"}\"}\n");
    (void)close(fixture.write_fd);
    tear_down(&fixture);
}

TEST(test_cut)
{
    struct fixture fixture;
    char text[6000];
    char got[8192];

    set_up(&fixture);
    memset(text, 'x', sizeof text);
    say(&fixture, text, sizeof text);
    (void)close(fixture.write_fd);
    relay_finish(&fixture.relay);
    ssize_t n = read(fixture.ends[0], got, sizeof got);
    char *end = memchr(got, '\n', (size_t)n);
    assert_non_null(end);
    assert_in_range(end - got, RELAY_LINE_MAX - 4, RELAY_LINE_MAX - 1);
    assert_memory_equal(got, "gateway: x", 10);
    assert_memory_equal(end, "\ngateway: x", 11);
    assert_int_equal(n, sizeof text + 2 * 10);
    tear_down(&fixture);
}

/* Of a flood comes a part, and how much was left out; and it does not come anew with the next service. */
TEST(test_flood)
{
    enum { LINES = 65536, PER_WRITE = 512, LENGTH = 100, MOST_BYTES = 4 << 20 };
    static char lines[PER_WRITE * LENGTH];
    static char got[1 << 20];
    struct fixture fixture;
    struct error err = {0};
    size_t total = 0;
    ssize_t n;

    set_up(&fixture);
    memset(lines, 'y', sizeof lines);
    for (size_t i = 0; i < PER_WRITE; i++)
        lines[(i + 1) * LENGTH - 1] = '\n';
    for (size_t i = 0; i < LINES / PER_WRITE; i++) {
        say(&fixture, lines, sizeof lines);
        for (size_t piece = 0; piece < sizeof lines / 1024; piece++) {
            relay_some(&fixture.relay);
            while ((n = read(fixture.ends[0], got, sizeof got)) > 0)
                total += (size_t)n;
        }
    }
    (void)close(fixture.write_fd);
    relay_finish(&fixture.relay);
    assert_in_range(total, 1 << 20, MOST_BYTES);
    n = read(fixture.ends[0], got, sizeof got - 1);
    got[n > 0 ? n : 0] = '\0';
    assert_non_null(strstr(got, " lines left out: it says too much\n"));
    assert_int_equal(relay_open(&fixture.relay, "gateway", fixture.ends[1], &fixture.write_fd, &err), 0);
    assert_true(fixture.relay.room < 1 << 20);
    (void)close(fixture.write_fd);
    tear_down(&fixture);
}

/* Nobody reads what is handed on: nothing is taken, and nothing waits. */
TEST(test_stuck)
{
    struct fixture fixture;
    char text[4096] = {0};

    set_up(&fixture);
    while (write(fixture.ends[1], text, sizeof text) > 0)
        continue;
    say(&fixture, "late\n", 5);
    assert_int_equal(relay_wait(&fixture.relay).fd, fixture.relay.fd);
    relay_some(&fixture.relay);
    assert_int_equal(relay_wait(&fixture.relay).fd, fixture.ends[1]);
    while (read(fixture.ends[0], text, sizeof text) > 0)
        continue;
    relay_some(&fixture.relay);
    expect(&fixture, "gateway: late\n");
    assert_int_equal(relay_wait(&fixture.relay).fd, fixture.relay.fd);
    (void)close(fixture.write_fd);
    tear_down(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_lines),  cmocka_unit_test(test_escaped),
                                       cmocka_unit_test(test_marked), cmocka_unit_test(test_cut),
                                       cmocka_unit_test(test_flood),  cmocka_unit_test(test_stuck)};

    return cmocka_run_group_tests_name("keeper/relay", tests, NULL, NULL);
}
