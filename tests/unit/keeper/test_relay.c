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

    assert_int_equal(pipe2(fixture->ends, O_CLOEXEC | O_NONBLOCK), 0);
    assert_int_equal(relay_open(&fixture->relay, fixture->ends[1], &fixture->write_fd, &err), 0);
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
    expect(&fixture, "one\ntwo\n\n");
    say(&fixture, "ree", 3);
    relay_some(&fixture.relay);
    expect(&fixture, "");
    (void)close(fixture.write_fd);
    relay_some(&fixture.relay);
    expect(&fixture, "three\n");
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
    expect(&fixture, "a\tb\\x1b[2J\\x0d\\x7f\\xc2\\x9b1\xc3\xa4\\xff\\x00z\n");
    /* A character in two pieces is one; without its end it is none. */
    say(&fixture, "\xe2\x82", 2);
    relay_some(&fixture.relay);
    say(&fixture, "\xac\n\xe2\x82", 4);
    relay_some(&fixture.relay);
    expect(&fixture, "\xe2\x82\xac\n");
    (void)close(fixture.write_fd);
    relay_finish(&fixture.relay);
    expect(&fixture, "\\xe2\\x82\n");
    tear_down(&fixture);
}

TEST(test_cut)
{
    struct fixture fixture;
    char text[6000];
    char want[sizeof text + 3];

    set_up(&fixture);
    memset(text, 'x', sizeof text);
    memset(want, 'x', sizeof want);
    want[RELAY_LINE_MAX - 1] = '\n';
    want[sizeof text + 1] = '\n';
    want[sizeof text + 2] = '\0';
    say(&fixture, text, sizeof text);
    (void)close(fixture.write_fd);
    relay_finish(&fixture.relay);
    expect(&fixture, want);
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
    expect(&fixture, "late\n");
    assert_int_equal(relay_wait(&fixture.relay).fd, fixture.relay.fd);
    (void)close(fixture.write_fd);
    tear_down(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_lines), cmocka_unit_test(test_escaped),
                                       cmocka_unit_test(test_cut), cmocka_unit_test(test_stuck)};

    return cmocka_run_group_tests_name("keeper/relay", tests, NULL, NULL);
}
