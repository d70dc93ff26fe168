#include "airlock/guard.h"
#include "clienthello.h"
#include "test.h"

#include <stdio.h>
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

/* Give it the bytes in pieces. How many went on in all, if it is not HTTP also ahead; the guard stays as it ended. */
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
    return passed + (guard->kind == GUARD_UNKNOWN ? guard->ahead : 0);
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
    {"a word without an end", "GET", false, false, 0},
    {"a line without an end", "GET /", false, false, 0},
    {"a line whose end has begun", "GET / HTTP/1.1\r", false, false, 1},
    {"empty lines", "\r\n", false, false, 0},
    {"a method of 65 characters",
     "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA / HTTP/1.1\r\nHost: b.test\r\n\r\n", true, true,
     -1},
    {"blanks that only Python knows", "\xa0GET\x1f/\x85HTTP/1.1\r\nHost: b.test\r\n\r\n", true, true, -1},
    {"no version", "GET /\r\nHost: b.test\r\n\r\n", true, true, -1},
    {"no version, a URL", "POST http://b.test/\r\nHost: b.test\r\n\r\n", true, true, -1},
    {"no version, any target", "GET x\r\nHost: b.test\r\n\r\n", true, true, -1},
    {"no version, a star", "OPTIONS *\r\nHost: b.test\r\n\r\n", true, true, -1},
    {"another version", "OPTIONS / RTSP/1.0\r\nHost: b.test\r\n\r\n", true, true, -1},
    {"another one's star", "KEYS *\r\n", false, false, 0},
    {"NATS", "CONNECT {\"verbose\":false}\r\n", false, false, 0},
    {"ZooKeeper", "ruok", false, false, 0},
    {"words without an end", "hello world", false, false, 0},
    {"LDAP", "\x30\x0c\x02\x01\x01\x60\x07\x02\x01\x03\x04", false, false, 0},
    {"redis", "*1\r\n$4\r\nPING\r\n", false, false, 0},
    {"binary", "\x03\x02\x01", false, false, 0},
    {"TLS or not", "\x16", false, false, 1},
    {"not TLS", "\x16\x10", false, false, 0},
    {"an alert first", "\x15\x03\x01", true, false, -1},
    {"a change first", "\x14\x03\x03", true, false, -1},
    {"data first", "\x17\x03\x03", true, false, -1},
    {"an alert of a version that Go takes", "\x15\x01\x01", true, false, -1},
    {"a hello of a version that Go takes", "\x16\x01\x01\x01\x01", true, false, -1},
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

static const char switching[] = "HTTP/1.1 101";

TEST(an_upgrade_waits_for_the_server)
{
    static const char bytes[] =
        "GET / HTTP/1.1\r\nHost: a.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n\x81\x02hi";
    struct rules *rules = make_rules(RULES_ALLOWLIST);
    struct guard guard;

    guard_init(&guard, rules, "a.test", 80);
    size_t passed = feed(&guard, (const uint8_t *)bytes, sizeof bytes - 1, 1000);
    assert_int_equal(passed, sizeof bytes - 1 - 4);
    assert_int_equal(guard.waits, GUARD_UPGRADE);
    assert_int_equal(guard_look(&guard, (const uint8_t *)bytes + passed, 4), 0);
    guard_hear(&guard, (const uint8_t *)switching, 11);
    assert_int_equal(guard_look(&guard, (const uint8_t *)bytes + passed, 4), 0);
    guard_hear(&guard, (const uint8_t *)switching, 12);
    assert_int_equal(guard_look(&guard, (const uint8_t *)bytes + passed, 4), 4);
    guard_release(&guard);
    guard_init(&guard, rules, "a.test", 80);
    passed = feed(&guard, (const uint8_t *)bytes, sizeof bytes - 1, 1000);
    guard_hear(&guard, (const uint8_t *)"HTTP/1.1 200", 12);
    assert_int_equal(guard_look(&guard, (const uint8_t *)bytes + passed, 4), 0);
    assert_true(guard.refused);
    guard_release(&guard);
    rules_free(rules);
}

/* HTTP/2 and TLS name a server of their own. */
TEST(only_websocket_frees)
{
    static const char *const wishes[] = {"h2c", "TLS/1.0", "h2c, websocket", "websocket\r\nUpgrade: h2c"};
    struct rules *rules = make_rules(RULES_ALLOWLIST);

    for (size_t i = 0; i < COUNT(wishes); i++) {
        struct guard guard;
        char bytes[300];
        int length =
            snprintf(bytes, sizeof bytes,
                     "GET / HTTP/1.1\r\nHost: a.test\r\nConnection: Upgrade\r\nUpgrade: %s\r\n\r\n", wishes[i]);
        guard_init(&guard, rules, "a.test", 80);
        assert_int_equal(feed(&guard, (const uint8_t *)bytes, (size_t)length, 1000), (size_t)length);
        assert_int_equal(guard.waits, GUARD_NOTHING);
        guard_hear(&guard, (const uint8_t *)switching, 12);
        assert_int_equal(guard_look(&guard, (const uint8_t *)"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 24), 0);
        assert_row(wishes[i], guard.refused);
        guard_release(&guard);
    }
    rules_free(rules);
}

/* 43 bytes: a record, a message, a version and a random. */
static size_t build_answer(bool is_retry, uint8_t *data)
{
    static const uint8_t head[] = {22, 3, 3, 0, 90, 2, 0, 0, 86, 3, 3};
    static const uint8_t retry[] = {0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c,
                                    0x02, 0x1e, 0x65, 0xb8, 0x91, 0xc2, 0xa2, 0x11, 0x16, 0x7a, 0xbb,
                                    0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c};

    memcpy(data, head, sizeof head);
    memset(data + sizeof head, 0, 32);
    if (is_retry)
        memcpy(data + sizeof head, retry, 32);
    return sizeof head + 32;
}

/* A guard that has let a hello for a.test through; what followed it is held. */
static struct guard greeted(const struct rules *rules)
{
    static uint8_t data[4096];
    struct guard guard;
    size_t length = clienthello_build(&(struct clienthello){.name = "a.test"}, data);

    memcpy(data + length, "\x17\3\3\0\1x", 6);
    guard_init(&guard, rules, "a.test", 443);
    assert_int_equal(feed(&guard, data, length + 6, 5000), length);
    assert_int_equal(guard.waits, GUARD_ANSWER);
    assert_int_equal(guard_look(&guard, data + length, 6), 0);
    return guard;
}

TEST(after_the_servers_hello_all_is_free)
{
    struct rules *rules = make_rules(RULES_ALLOWLIST);
    struct guard guard = greeted(rules);
    uint8_t answer[64] = {21, 3, 3, 0, 2, 1, 112};
    size_t length = build_answer(false, answer + 7) + 7;

    for (size_t cut = 0; cut < length; cut++) {
        guard_hear(&guard, answer, cut);
        assert_int_equal(guard.waits, GUARD_ANSWER);
    }
    guard_hear(&guard, answer, length);
    assert_int_equal(guard_look(&guard, (const uint8_t *)"\x17\3\3\0\1x", 6), 6);
    assert_int_equal(guard.kind, GUARD_FREE);
    guard = greeted(rules);
    guard_hear(&guard, (const uint8_t *)"HTTP/1.1 400 Bad Request", 24);
    assert_int_equal(guard_look(&guard, (const uint8_t *)"", 0), 0);
    assert_false(guard.refused);
    assert_int_equal(guard_look(&guard, (const uint8_t *)"\x16", 1), 0);
    assert_true(guard.refused);
    rules_free(rules);
}

/* RFC 8446, 4.1.2: the second hello says the same but for a few things, and the name is none of them. */
TEST(the_second_hello_is_looked_at_too)
{
    static const uint8_t between[] = {20, 3, 3, 0, 1, 1, 23, 3, 3, 0, 3, 22, 3, 1};
    static const char *const names[] = {"a.test", "b.test"};
    struct rules *rules = make_rules(RULES_ALLOWLIST);
    uint8_t answer[64];
    static uint8_t data[4096];

    for (size_t i = 0; i < COUNT(names) * 2; i++) {
        struct guard guard = greeted(rules);
        size_t skipped = i < COUNT(names) ? sizeof between : 0;
        guard_hear(&guard, answer, build_answer(true, answer));
        assert_int_equal(guard.waits, GUARD_NOTHING);
        memcpy(data, between, skipped);
        size_t length = skipped + clienthello_build(&(struct clienthello){.name = names[i % 2]}, data + skipped);
        memcpy(data + length, "\x17\3\3\0\1x", 6);
        size_t passed = feed(&guard, data, length + 6, 1 + 7 * i);
        assert_int_equal(guard.refused, i % 2 == 1);
        assert_true(guard.refused ? passed <= skipped : passed == length + 6);
    }
    rules_free(rules);
}

TEST(postgres_is_followed_into_tls)
{
    static const uint8_t offers[][8] = {{0, 0, 0, 8, 4, 0xd2, 0x16, 0x2f}, {0, 0, 0, 8, 4, 0xd2, 0x16, 0x30}};
    struct rules *rules = make_rules(RULES_ALLOWLIST);
    static uint8_t data[4096];

    for (size_t i = 0; i < COUNT(offers); i++) {
        struct guard guard;
        memcpy(data, offers[i], 8);
        size_t length = 8 + clienthello_build(&(struct clienthello){.name = "b.test"}, data + 8);
        guard_init(&guard, rules, "a.test", 5432);
        assert_int_equal(feed(&guard, data, length, 1 + 1000 * i), 8);
        assert_int_equal(guard.waits, GUARD_OFFER);
        guard_hear(&guard, (const uint8_t *)"S", 1);
        assert_int_equal(guard_look(&guard, data + 8, length - 8), 0);
        assert_true(guard.refused);
        guard_init(&guard, rules, "a.test", 5432);
        assert_int_equal(feed(&guard, data, 8, 8), 8);
        guard_hear(&guard, (const uint8_t *)"N", 1);
        assert_int_equal(feed(&guard, (const uint8_t *)"\0\0\0\x30\0\3\0\0user", 12, 12), 12);
        assert_int_equal(guard.kind, GUARD_FREE);
    }
    rules_free(rules);
}

/* A length in four digits, a command, and NULs; no end of a line. */
TEST(git_is_let_through)
{
    static const char bytes[] = "0026git-upload-pack /r\0host=b.test\0";
    struct guard guard;

    guard_init(&guard, NULL, "a.test", 9418);
    assert_int_equal(feed(&guard, (const uint8_t *)bytes, sizeof bytes - 1, 7), sizeof bytes - 1);
    assert_int_equal(guard.kind, GUARD_FREE);
}

TEST(at_the_end_the_rest_goes_on)
{
    static const char *const goes[] = {"hello", "hello world\r", "\r\n", "\x16", "EHLO x"};
    static const char *const stays[] = {"GET / HTTP/1.1\r\r", "GET /\r", "GET http://b.test/ HTTP/1.1",
                                        "GET / HTTP/1.1\r\nHost:"};
    struct guard guard;

    for (size_t i = 0; i < COUNT(goes); i++) {
        guard_init(&guard, NULL, "a.test", 80);
        assert_row(goes[i], guard_look_last(&guard, (const uint8_t *)goes[i], strlen(goes[i])) == strlen(goes[i]));
        assert_false(guard.refused);
    }
    for (size_t i = 0; i < COUNT(stays); i++) {
        guard_init(&guard, NULL, "a.test", 80);
        assert_row(stays[i], guard_look_last(&guard, (const uint8_t *)stays[i], strlen(stays[i])) == 0);
        assert_row(stays[i], guard.refused);
        guard_release(&guard);
    }
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
        cmocka_unit_test(plain_text_is_let_through_or_not),    cmocka_unit_test(hellos_are_let_through_or_not),
        cmocka_unit_test(an_upgrade_waits_for_the_server),     cmocka_unit_test(only_websocket_frees),
        cmocka_unit_test(after_the_servers_hello_all_is_free), cmocka_unit_test(the_second_hello_is_looked_at_too),
        cmocka_unit_test(postgres_is_followed_into_tls),       cmocka_unit_test(git_is_let_through),
        cmocka_unit_test(at_the_end_the_rest_goes_on),         cmocka_unit_test(without_rules_it_only_finds_the_kind),
        cmocka_unit_test(endless_lines_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
