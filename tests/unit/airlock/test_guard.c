#include "airlock/guard.h"
#include "clienthello.h"
#include "test.h"

#include <stdlib.h>

static struct rules *make_rules(enum rules_mode mode)
{
    struct rules *rules = NULL;
    struct error err;

    assert_int_equal(rules_new(mode, &rules, &err), 0);
    assert_int_equal(rules_add(rules, RULES_ALLOW, RULES_OF_SANDBOX, "a.test", &err), 0);
    assert_int_equal(rules_add(rules, RULES_DENY, RULES_OF_SANDBOX, "bad.test", &err), 0);
    return rules;
}

/* Give it the bytes in pieces. How many went on in all; the guard stays as it ended. */
static size_t feed(struct guard *guard, const uint8_t *data, size_t length, size_t piece)
{
    uint8_t *held = malloc(length + 1);
    size_t kept = 0;
    size_t passed = 0;

    assert_non_null(held);
    for (size_t at = 0; at < length; at += piece) {
        size_t here = length - at < piece ? length - at : piece;
        memcpy(held + kept, data + at, here);
        kept += here;
        size_t cleared = guard_look(guard, held, kept);
        assert_true(cleared <= kept);
        passed += cleared;
        kept -= cleared;
        memmove(held, held + cleared, kept);
    }
    free(held);
    return passed;
}

static const struct {
    const char *what;
    const char *bytes;
    bool refused;
    bool is_http;
    long held; /* bytes that must not have gone on; -1: not checked */
} texts[] = {
    {"a request", "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n", false, true, 0},
    {"with port and case", "GET / HTTP/1.1\r\nHost: A.Test:8080\r\n\r\n", false, true, 0},
    {"a half request", "GET / HTTP/1.1\r\nHost: a.test\r\n", false, true, 30},
    {"another host", "GET / HTTP/1.1\r\nHost: b.test\r\n\r\n", true, true, 32},
    {"an address as host", "GET / HTTP/1.1\r\nHost: 10.0.0.1\r\n\r\n", true, true, -1},
    {"another host in the second request",
     "GET / HTTP/1.1\r\nHost: a.test\r\n\r\nGET / HTTP/1.1\r\nHost: b.test\r\n\r\n", true, true, 32},
    {"another host behind a body",
     "POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 2\r\n\r\nhiGET / HTTP/1.1\r\nHost: b.test\r\n\r\n", true, true,
     32},
    {"another host behind chunks",
     "POST / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\nGET / "
     "HTTP/1.1\r\nHost: b.test\r\n\r\n",
     true, true, 32},
    {"a body",
     "POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 36\r\n\r\nGET / HTTP/1.1\r\nHost: b.test\r\n\r\nabcd", false,
     true, 0},
    {"another target", "GET http://b.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n", true, true, -1},
    {"the same target", "GET http://a.test/x HTTP/1.1\r\nHost: a.test\r\n\r\n", false, true, 0},
    {"a target with a user", "GET http://a.test@b.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n", true, true, -1},
    {"CONNECT", "CONNECT b.test:443 HTTP/1.1\r\nHost: a.test\r\n\r\n", true, true, -1},
    {"two hosts", "GET / HTTP/1.1\r\nHost: a.test\r\nHost: b.test\r\n\r\n", true, true, -1},
    {"a folded host", "GET / HTTP/1.1\r\nHost: a.test\r\n b.test\r\n\r\n", true, true, -1},
    {"bare line feeds", "GET / HTTP/1.1\nHost: a.test\n\n", true, true, -1},
    {"two lengths", "POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", true, true,
     -1},
    {"length and chunks", "POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
     true, true, -1},
    {"leading line end", "\r\nGET / HTTP/1.1\r\nHost: b.test\r\n\r\n", true, true, -1},
    {"leading blanks", " \t GET / HTTP/1.1\r\nHost: b.test\r\n\r\n", true, true, -1},
    {"blanks and another protocol", "  EHLO client\r\n", false, false, 0},
    {"a method nobody knows", "FOO / HTTP/1.1\r\nHost: b.test\r\n\r\n", true, true, -1},
    {"a lower-case version", "GET / http/1.1\r\nHost: b.test\r\n\r\n", true, true, -1},
    {"tabs", "GET\t/\tHTTP/1.1\r\nHost: b.test\r\n\r\n", true, true, -1},
    {"a control character", "GET /\x01 HTTP/1.1\r\nHost: b.test\r\n\r\n", true, true, -1},
    {"HTTP/2 in the clear", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", true, true, -1},
    {"no host, old version", "GET / HTTP/1.0\r\n\r\n", false, true, 0},
    {"no host", "GET / HTTP/1.1\r\n\r\n", true, true, -1},
    {"PROPFIND", "PROPFIND / HTTP/1.1\r\nHost: a.test\r\n\r\n", false, true, 0},
    {"ssh", "SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n", false, false, 0},
    {"smtp", "EHLO client\r\n", false, false, 0},
    {"a short word", "PING\r\n", false, false, 0},
    {"a word without an end", "GET", false, false, 3},
    {"a line without an end", "GET /", false, false, 5},
    {"redis", "*1\r\n$4\r\nPING\r\n", false, false, 0},
    {"binary", "\x03\x02\x01", false, false, 0},
    {"TLS or not", "\x16", false, false, 1},
    {"not TLS", "\x16\x01", false, false, 0},
};

TEST(plain_text_is_let_through_or_not)
{
    struct rules *rules = make_rules(RULES_ALLOWLIST);

    for (size_t i = 0; i < COUNT(texts); i++) {
        for (size_t piece = 1; piece < 200; piece += 13) {
            struct guard guard;
            size_t length = strlen(texts[i].bytes);
            guard_init(&guard, rules, "a.test", 8080);
            size_t passed = feed(&guard, (const uint8_t *)texts[i].bytes, length, piece);
            assert_row(texts[i].what, guard.refused == texts[i].refused);
            assert_row(texts[i].what, guard.was_http == texts[i].is_http);
            assert_row(texts[i].what, (guard.why[0] != '\0') == texts[i].refused);
            assert_row(texts[i].what, texts[i].held < 0 || length - passed == (size_t)texts[i].held);
            guard_release(&guard);
        }
    }
    rules_free(rules);
}

static bool refuses_hello(const struct rules *rules, const struct clienthello *hello, size_t piece)
{
    static uint8_t data[65536];
    struct guard guard;
    size_t length = clienthello_build(hello, data);

    guard_init(&guard, rules, "a.test", 443);
    size_t passed = feed(&guard, data, length, piece);
    assert_true(guard.was_tls);
    assert_int_equal(passed, guard.refused ? 0 : length);
    assert_int_equal(guard.refused, guard.why[0] != '\0');
    guard_release(&guard);
    return guard.refused;
}

TEST(hellos_are_let_through_or_not)
{
    struct rules *rules = make_rules(RULES_ALLOWLIST);
    struct rules *full = make_rules(RULES_FULL);

    for (size_t piece = 1; piece < 2000; piece *= 3) {
        assert_false(refuses_hello(rules, &(struct clienthello){.name = "a.test", .padding = 1200}, piece));
        assert_false(refuses_hello(rules, &(struct clienthello){.name = NULL}, piece));
        assert_true(refuses_hello(rules, &(struct clienthello){.name = "b.test"}, piece));
        assert_true(refuses_hello(rules, &(struct clienthello){.name = "a.test", .ech = true}, piece));
        assert_false(refuses_hello(full, &(struct clienthello){.name = "b.test"}, piece));
        assert_false(refuses_hello(full, &(struct clienthello){.name = "a.test", .ech = true}, piece));
        assert_true(refuses_hello(full, &(struct clienthello){.name = "bad.test"}, piece));
    }
    rules_free(rules);
    rules_free(full);
}

TEST(an_upgrade_waits_for_the_server)
{
    static const char bytes[] =
        "GET / HTTP/1.1\r\nHost: a.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n\x81\x02hi";
    struct rules *rules = make_rules(RULES_ALLOWLIST);
    struct guard guard;

    guard_init(&guard, rules, "a.test", 80);
    size_t passed = feed(&guard, (const uint8_t *)bytes, sizeof bytes - 1, 1000);
    assert_int_equal(passed, sizeof bytes - 1 - 4);
    assert_true(guard.wants_upgrade);
    assert_int_equal(guard_look(&guard, (const uint8_t *)bytes + passed, 4), 0);
    guard_set_upgraded(&guard, true);
    assert_int_equal(guard_look(&guard, (const uint8_t *)bytes + passed, 4), 4);
    guard_release(&guard);
    guard_init(&guard, rules, "a.test", 80);
    passed = feed(&guard, (const uint8_t *)bytes, sizeof bytes - 1, 1000);
    guard_set_upgraded(&guard, false);
    assert_int_equal(guard_look(&guard, (const uint8_t *)bytes + passed, 4), 0);
    assert_true(guard.refused);
    guard_release(&guard);
    rules_free(rules);
}

TEST(without_rules_it_only_finds_the_kind)
{
    struct guard guard;

    guard_init(&guard, NULL, "a.test", 80);
    (void)feed(&guard, (const uint8_t *)"GET / HTTP/1.1\r\nHost: b.test\r\n\r\n", 32, 5);
    assert_true(guard.was_http && !guard.refused);
    assert_string_equal(guard.shown, "b.test");
    guard_release(&guard);
}

TEST(endless_lines_are_refused)
{
    static uint8_t data[40000];
    struct guard guard;

    memset(data, 'a', sizeof data);
    memcpy(data, "GET ", 4);
    guard_init(&guard, NULL, "a.test", 80);
    assert_int_equal(guard_look(&guard, data, sizeof data), 0);
    assert_true(guard.refused);
    guard_release(&guard);
    memset(data, '\n', sizeof data);
    guard_init(&guard, NULL, "a.test", 80);
    assert_int_equal(guard_look(&guard, data, sizeof data), 0);
    assert_true(guard.refused);
    guard_release(&guard);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_text_is_let_through_or_not), cmocka_unit_test(hellos_are_let_through_or_not),
        cmocka_unit_test(an_upgrade_waits_for_the_server),  cmocka_unit_test(without_rules_it_only_finds_the_kind),
        cmocka_unit_test(endless_lines_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
