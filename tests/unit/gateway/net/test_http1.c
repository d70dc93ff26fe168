/*
 * The parser of HTTP/1 connections. Every input is tried whole, in pieces of every size up to 7, and byte by byte: what
 * comes of it may not depend on how it was cut.
 */
#include "gateway/net/http1.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>

enum { LINE = 8192, HEADERS = 32768, STORY = 65536 };

/* What happened, as text: "GET /x 1.1 host [a=b] body(abc) end bad(400)". */
struct story {
    char text[STORY];
    size_t length;
    size_t body;
};

__attribute__((format(printf, 2, 3))) static void tell(struct story *story, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    int n = vsnprintf(story->text + story->length, STORY - story->length, format, args);
    va_end(args);
    assert_true(n >= 0 && (size_t)n < STORY - story->length);
    story->length += (size_t)n;
}

static void tell_head(struct story *story, const struct http1 *http1)
{
    struct headers headers;

    http1_headers(http1, &headers);
    tell(story, "%s %s 1.%u %s%s%s%s ", http_method_name(http1->method), http1->target, http1->minor_version,
         http1->host, http1->wants_keep_alive ? "" : " close", http1->is_chunked ? " chunked" : "",
         http1->expects_continue ? " expect" : "");
    for (size_t i = 0; i < headers.count; i++) {
        if (headers.items[i].name[0] == 'X')
            tell(story, "[%s=%s] ", headers.items[i].name, headers.items[i].value);
    }
    if (http1->has_length)
        tell(story, "length %llu ", (unsigned long long)http1->content_length);
}

static void tell_event(struct story *story, struct http1 *http1, const struct http1_event *event)
{
    if (event->type == HTTP1_HEAD)
        tell_head(story, http1);
    if (event->type == HTTP1_BODY && story->body == 0)
        tell(story, "body:");
    if (event->type == HTTP1_BODY) {
        tell(story, "%.*s", (int)event->length, (const char *)event->data);
        story->body += event->length;
    }
    if (event->type == HTTP1_END)
        tell(story, "%send ", story->body > 0 ? " " : "");
    if (event->type == HTTP1_BAD)
        tell(story, "bad %u ", event->status);
}

static void read_all(struct http1 *http1, struct story *story, const uint8_t *data, size_t length)
{
    struct http1_event event;

    do {
        http1_next(http1, &data, &length, &event);
        tell_event(story, http1, &event);
        if (event.type == HTTP1_END) {
            http1_reset(http1);
            story->body = 0;
        }
    } while (event.type != HTTP1_MORE && event.type != HTTP1_BAD);
    assert_true(length == 0 || event.type == HTTP1_BAD);
}

static void parse_in_pieces(const char *input, size_t length, size_t piece, struct story *story)
{
    static struct http1 http1;
    struct http1_limits limits = {LINE, HEADERS};

    story->length = 0;
    story->body = 0;
    story->text[0] = '\0';
    http1_init(&http1, &limits);
    for (size_t at = 0; at < length && http1.state != HTTP1_IS_BAD; at += piece) {
        size_t n = length - at < piece ? length - at : piece;
        /* In memory of its own, so that nothing is kept of what was only lent. */
        uint8_t *copy = malloc(n);
        assert_non_null(copy);
        memcpy(copy, input + at, n);
        read_all(&http1, story, copy, n);
        free(copy);
    }
    http1_release(&http1);
}

static void expect_bytes(const char *input, size_t length, const char *expected)
{
    static struct story story;

    for (size_t piece = 1; piece <= length; piece = piece == 7 && length > 7 ? length : piece + 1) {
        parse_in_pieces(input, length, piece, &story);
        if (strcmp(story.text, expected) != 0)
            fail_msg("%s\nin pieces of %zu became \"%s\", not \"%s\"", input, piece, story.text, expected);
    }
}

static void expect(const char *input, const char *expected)
{
    expect_bytes(input, strlen(input), expected);
}

#define HOST "Host: h\r\n"

TEST(plain_requests)
{
    expect("GET / HTTP/1.1\r\nHost: h\r\n\r\n", "GET / 1.1 h end ");
    expect("GET /a?b=c HTTP/1.1\r\nhOsT:h:80  \r\nX-A:1\r\nX-B: \t two \t\r\nX-C:\r\nX-D:  \r\nX-E:e\r\n\r\n",
           "GET /a?b=c 1.1 h:80 [X-A=1] [X-B=two] [X-C=] [X-D=] [X-E=e] end ");
    expect("POST /p HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nhello", "POST /p 1.1 h length 5 body:hello end ");
    expect("PUT /p HTTP/1.1\r\n" HOST "Content-Length: 0\r\n\r\n", "PUT /p 1.1 h length 0 end ");
    expect("OPTIONS * HTTP/1.1\r\n" HOST "\r\n", "OPTIONS * 1.1 h end ");
    expect("GET http://h/x HTTP/1.1\r\n" HOST "\r\n", "GET http://h/x 1.1 h end ");
}

TEST(keep_alive_and_versions)
{
    expect("GET / HTTP/1.0\r\n\r\n", "GET / 1.0  close end ");
    expect("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", "GET / 1.0  end ");
    expect("GET / HTTP/1.1\r\n" HOST "Connection: foo, CLOSE\r\n\r\n", "GET / 1.1 h close end ");
    expect("GET / HTTP/1.1\r\n" HOST "Connection: closed\r\n\r\n", "GET / 1.1 h end ");
    expect("GET / HTTP/2.0\r\n" HOST "\r\n", "bad 505 ");
    expect("GET / HTTP/1.2\r\n" HOST "\r\n", "bad 505 ");
    expect("GET / HTTP/0.9\r\n" HOST "\r\n", "bad 505 ");
    expect("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "bad 505 ");
    expect("GET /\r\n" HOST "\r\n", "bad 400 ");
    expect("GET / HTTP/1.1 \r\n" HOST "\r\n", "bad 400 ");
    expect("GET / http/1.1\r\n" HOST "\r\n", "bad 400 ");
    expect("GET  / HTTP/1.1\r\n" HOST "\r\n", "bad 400 ");
}

TEST(pipelining)
{
    expect("GET /1 HTTP/1.1\r\n" HOST "\r\nPOST /2 HTTP/1.1\r\n" HOST
           "Content-Length: 2\r\n\r\nabGET /3 HTTP/1.1\r\n" HOST "\r\n",
           "GET /1 1.1 h end POST /2 1.1 h length 2 body:ab end GET /3 1.1 h end ");
    /* An empty line between them, as old clients send it; not two. */
    expect("GET /1 HTTP/1.1\r\n" HOST "\r\n\r\nGET /2 HTTP/1.1\r\n" HOST "\r\n", "GET /1 1.1 h end GET /2 1.1 h end ");
    expect("\r\n\r\nGET / HTTP/1.1\r\n" HOST "\r\n", "bad 400 ");
    /* Nothing after what was refused. */
    expect("GET / HTTP/1.1\r\n\r\nGET /2 HTTP/1.1\r\n" HOST "\r\n", "bad 400 ");
}

TEST(the_next_request_waits)
{
    static struct http1 http1;
    struct http1_limits limits = {LINE, HEADERS};
    const char *input = "GET /1 HTTP/1.1\r\n" HOST "\r\nGET /2 HTTP/1.1\r\n" HOST "\r\n";
    const uint8_t *data = (const uint8_t *)input;
    size_t length = strlen(input);
    struct http1_event event;

    http1_init(&http1, &limits);
    assert_true(http1_is_idle(&http1));
    http1_next(&http1, &data, &length, &event);
    assert_int_equal(event.type, HTTP1_HEAD);
    assert_false(http1_is_idle(&http1));
    http1_next(&http1, &data, &length, &event);
    assert_int_equal(event.type, HTTP1_END);
    for (int i = 0; i < 3; i++) {
        http1_next(&http1, &data, &length, &event);
        assert_int_equal(event.type, HTTP1_MORE);
        assert_int_equal(length, strlen(input) / 2);
        assert_string_equal(http1.target, "/1");
    }
    http1_reset(&http1);
    assert_true(http1_is_idle(&http1));
    http1_next(&http1, &data, &length, &event);
    assert_int_equal(event.type, HTTP1_HEAD);
    assert_string_equal(http1.target, "/2");
    http1_release(&http1);
}

#define CHUNKED "POST /c HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n"

TEST(chunked_bodies)
{
    expect(CHUNKED "0\r\n\r\n", "POST /c 1.1 h chunked end ");
    expect(CHUNKED "3\r\nabc\r\n00a\r\n0123456789\r\n0\r\n\r\n", "POST /c 1.1 h chunked body:abc0123456789 end ");
    expect(CHUNKED "1;x=y\r\na\r\n0\r\nX-Trailer: 1\r\n\r\nGET / HTTP/1.1\r\n" HOST "\r\n",
           "POST /c 1.1 h chunked body:a end GET / 1.1 h end ");
    /* Trailers change nothing. */
    expect(CHUNKED "0\r\nContent-Length: 5\r\nHost: x\r\nConnection: close\r\n\r\nGET / HTTP/1.1\r\n" HOST "\r\n",
           "POST /c 1.1 h chunked end GET / 1.1 h end ");
    expect(CHUNKED "2\r\n\r\n\r\n0\r\n\r\n", "POST /c 1.1 h chunked body:\r\n end ");
}

TEST(bad_chunks)
{
    const char *bad[] = {
        "\r\n",
        "x\r\n",
        "3\nabc\r\n",
        "3\rabc\r\n",
        " 3\r\nabc\r\n",
        "3 \r\nabc\r\n",
        "+3\r\nabc\r\n",
        "-1\r\n",
        "0x3\r\n",
        "3;\x01\r\n",
        "ffffffffffffffff1\r\n",
        "\n3\r\n",
        "0\r\n\n",
        "0\r\nX: a\nY: b\r\n\r\n",
        "0\r\n X: folded\r\n\r\n",
        "0\r\nno colon\r\n\r\n",
        "0\r\n\rX: a\r\n\r\n",
    };
    char input[512];

    for (size_t i = 0; i < COUNT(bad); i++) {
        (void)snprintf(input, sizeof input, "%s%s", CHUNKED, bad[i]);
        expect(input, "POST /c 1.1 h chunked bad 400 ");
    }
    expect(CHUNKED "3\r\nabcd\r\n", "POST /c 1.1 h chunked body:abcbad 400 ");
    expect(CHUNKED "3\r\nabc\n0\r\n\r\n", "POST /c 1.1 h chunked body:abcbad 400 ");
    expect(CHUNKED "3\r\nabc\r0\r\n\r\n", "POST /c 1.1 h chunked body:abcbad 400 ");
}

TEST(lines_that_could_be_read_in_two_ways)
{
    const char *bad[] = {
        "GET / HTTP/1.1\n" HOST "\r\n",
        "GET / HTTP/1.1\r\nHost: h\n\r\n",
        "GET / HTTP/1.1\r\nHost: h\r\n\n",
        "GET / HTTP/1.1\r\nHost: h\rX: y\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: h\r\rX: y\r\n\r\n",
        "GET / HTTP/1.1\r\n Host: h\r\n\r\n",
        "GET / HTTP/1.1\r\n" HOST " X: blank first\r\n\r\n",
        "GET / HTTP/1.1\r\n" HOST "\tX: tab first\r\n\r\n",
        "GET / HTTP/1.1\r\n" HOST "X: a\r\n folded\r\n\r\n",
        "GET / HTTP/1.1\r\n" HOST "X : a\r\n\r\n",
        "GET / HTTP/1.1\r\n" HOST ": a\r\n\r\n",
        "GET / HTTP/1.1\r\n" HOST "no colon\r\n\r\n",
        "GET / HTTP/1.1\r\n" HOST "X: a\x01\r\n\r\n",
        "GET / HTTP/1.1\r\n" HOST "X: a\x7f\r\n\r\n",
        "GET / HTTP/1.1\r\n" HOST "X\x80: a\r\n\r\n",
        "GET /\x80 HTTP/1.1\r\n" HOST "\r\n",
        "GET /\t HTTP/1.1\r\n" HOST "\r\n",
        "GET\t/ HTTP/1.1\r\n" HOST "\r\n",
        " GET / HTTP/1.1\r\n" HOST "\r\n",
        "\x16\x03\x01\x02",
    };

    for (size_t i = 0; i < COUNT(bad); i++)
        expect(bad[i], "bad 400 ");
    expect_bytes("GET /\0 HTTP/1.1\r\n", 18, "bad 400 ");
    expect_bytes("GET / HTTP/1.1\r\nHost: h\0\r\n\r\n", 28, "bad 400 ");
    expect_bytes("GET / HTTP/1.1\r\nHo\0st: h\r\n\r\n", 28, "bad 400 ");
}

TEST(lengths_that_could_be_read_in_two_ways)
{
    const char *bad[] = {
        "Content-Length: 5\r\nContent-Length: 5\r\n",
        "Content-Length: 5\r\nContent-Length: 6\r\n",
        "Content-Length: 5, 5\r\n",
        "Content-Length: +5\r\n",
        "Content-Length: -5\r\n",
        "Content-Length: 0x5\r\n",
        "Content-Length: 5 5\r\n",
        "Content-Length:\r\n",
        "Content-Length: 99999999999999999999\r\n",
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding:\r\nContent-Length: 5\r\n",
    };
    char input[512];

    for (size_t i = 0; i < COUNT(bad); i++) {
        (void)snprintf(input, sizeof input, "POST / HTTP/1.1\r\n" HOST "%s\r\nhello", bad[i]);
        expect(input, "bad 400 ");
    }
    expect("POST / HTTP/1.0\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "bad 400 ");
    expect("POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: gzip, chunked\r\n\r\n", "bad 501 ");
    expect("POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: gzip\r\n\r\n", "bad 501 ");
    expect("POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked, gzip\r\n\r\n", "bad 400 ");
    expect("POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: identity\r\n\r\n", "bad 501 ");
    expect("POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: xchunked\r\n\r\n", "bad 501 ");
    expect("POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: CHUNKED\r\n\r\n0\r\n\r\n", "POST / 1.1 h chunked end ");
}

TEST(hosts)
{
    const char *bad[] = {"",
                         "Host:\r\n",
                         "Host: a\r\nHost: a\r\n",
                         "Host: a b\r\n",
                         "Host: a/b\r\n",
                         "Host: u@a\r\n",
                         "Host: a:\r\n",
                         "Host: a:0\r\n",
                         "Host: a:65536\r\n",
                         "Host: a:x\r\n",
                         "Host: [::1\r\n",
                         "Host: []\r\n",
                         "Host: [::1]x\r\n",
                         "Host: a,b\r\n",
                         "Host: a\xc3\xa9\r\n",
                         "Host: a%41\r\n"};
    char input[512];

    for (size_t i = 0; i < COUNT(bad); i++) {
        (void)snprintf(input, sizeof input, "GET / HTTP/1.1\r\n%s\r\n", bad[i]);
        expect(input, "bad 400 ");
    }
    expect("GET / HTTP/1.1\r\nHost: [::1]:8080\r\n\r\n", "GET / 1.1 [::1]:8080 end ");
    expect("GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", "GET / 1.1 127.0.0.1 end ");
    expect("GET / HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n", "bad 400 ");
}

TEST(methods_and_expectations)
{
    expect("CONNECT h:443 HTTP/1.1\r\n" HOST "\r\n", "bad 501 ");
    expect("PROPFIND / HTTP/1.1\r\n" HOST "\r\n", "bad 501 ");
    expect("BREW / HTTP/1.1\r\n" HOST "\r\n", "bad 501 ");
    expect("get / HTTP/1.1\r\n" HOST "\r\n", "bad 501 ");
    expect("TRACE / HTTP/1.1\r\n" HOST "\r\n", "TRACE / 1.1 h end ");
    expect("POST / HTTP/1.1\r\n" HOST "Expect: 100-Continue\r\nContent-Length: 1\r\n\r\nx",
           "POST / 1.1 h expect length 1 body:x end ");
    expect("GET / HTTP/1.1\r\n" HOST "Expect: 100-continue\r\n\r\n", "GET / 1.1 h end ");
    expect("POST / HTTP/1.1\r\n" HOST "Expect: tea\r\nContent-Length: 1\r\n\r\nx", "bad 417 ");
    expect("GET / HTTP/1.1\r\n" HOST "Connection: Upgrade\r\nUpgrade: websocket\r\n\r\nGET /2 HTTP/1.1\r\n" HOST "\r\n",
           "GET / 1.1 h end GET /2 1.1 h end ");
}

static char *repeat(const char *front, const char *middle, size_t count, const char *back)
{
    size_t length = strlen(front) + strlen(middle) * count + strlen(back);
    char *text = malloc(length + 1);

    assert_non_null(text);
    text[0] = '\0';
    char *at = stpcpy(text, front);
    for (size_t i = 0; i < count; i++)
        at = stpcpy(at, middle);
    (void)stpcpy(at, back);
    return text;
}

static bool starts_bad(const char *front, const char *middle, size_t count, const char *back, const char *bad)
{
    static struct story story;
    char *input = repeat(front, middle, count, back);
    bool same = true;

    for (size_t piece = 1; piece < 100000; piece = piece * 7 + 6) {
        parse_in_pieces(input, strlen(input), piece, &story);
        same = same && strcmp(story.text, bad) == 0;
    }
    free(input);
    return same;
}

TEST(limits)
{
    static struct story story;
    size_t longest = LINE - strlen("GET / HTTP/1.1");

    assert_false(starts_bad("GET /", "a", longest, " HTTP/1.1\r\n" HOST "\r\n", "bad 414 "));
    assert_true(starts_bad("GET /", "a", longest + 1, " HTTP/1.1\r\n" HOST "\r\n", "bad 414 "));
    assert_true(starts_bad("GET /", "a", 1 << 20, "", "bad 414 "));
    assert_true(starts_bad("", "A", 1 << 20, "", "bad 414 "));
    assert_true(starts_bad("GET / HTTP/1.1\r\n" HOST, "X: y\r\n", HTTP_HEADERS_MAX, "\r\n", "bad 431 "));
    assert_true(starts_bad("GET / HTTP/1.1\r\n" HOST "X: ", "y", HEADERS, "\r\n\r\n", "bad 431 "));
    assert_true(starts_bad("GET / HTTP/1.1\r\n" HOST "X: ", "y", 1 << 20, "", "bad 431 "));
    assert_true(starts_bad("GET / HTTP/1.1\r\n" HOST "", "y", 1 << 20, "", "bad 431 "));
    assert_true(starts_bad(CHUNKED "1;", "y", 1 << 20, "", "POST /c 1.1 h chunked bad 400 "));
    assert_true(starts_bad(CHUNKED "0\r\n", "X: y\r\n", HEADERS, "\r\n", "POST /c 1.1 h chunked bad 431 "));
    char *most = repeat("GET / HTTP/1.1\r\n" HOST, "Y: y\r\n", HTTP_HEADERS_MAX - 1, "\r\n");
    parse_in_pieces(most, strlen(most), 10, &story);
    assert_string_equal(story.text, "GET / 1.1 h end ");
    free(most);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_requests),
        cmocka_unit_test(keep_alive_and_versions),
        cmocka_unit_test(pipelining),
        cmocka_unit_test(the_next_request_waits),
        cmocka_unit_test(chunked_bodies),
        cmocka_unit_test(bad_chunks),
        cmocka_unit_test(lines_that_could_be_read_in_two_ways),
        cmocka_unit_test(lengths_that_could_be_read_in_two_ways),
        cmocka_unit_test(hosts),
        cmocka_unit_test(methods_and_expectations),
        cmocka_unit_test(limits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
