/* The server with real sockets and well-behaved clients. */
#include "plain.h"

TEST(a_whole_answer)
{
    struct serve *serve = start_default();

    serve_ask(serve, "GET /hello HTTP/1.1\r\n" CLOSE "X-Request-ID: abc-DEF-1\r\n\r\n", text);
    assert_starts(text, "HTTP/1.1 200 OK\r\n");
    assert_has(text, "\r\nDate: ");
    assert_has(text, " GMT\r\n");
    assert_has(text, "\r\nContent-Type: text/plain\r\n");
    assert_has(text, "\r\nContent-Length: 5\r\n");
    assert_has(text, "\r\nConnection: close\r\n");
    assert_has(text, "\r\nX-Request-ID: abc-DEF-1\r\n");
    assert_has(text, "\r\nX-Content-Type-Options: nosniff\r\n");
    assert_has(text, "\r\nX-Frame-Options: DENY\r\n");
    assert_has(text, "\r\nContent-Security-Policy: default-src 'none'; frame-ancestors 'none'\r\n");
    assert_has(text, "\r\nCache-Control: no-store\r\n");
    assert_ends(text, "\r\n\r\nhello");
    serve_ask(serve, "HEAD /hello HTTP/1.1\r\n" CLOSE "X-Request-ID: bad id\r\n\r\n", text);
    assert_has(text, "\r\nContent-Length: 5\r\n");
    assert_null(strstr(text, "bad id"));
    assert_has(text, "\r\nX-Request-ID: ");
    assert_ends(text, "\r\n\r\n");
    end(serve);
}

TEST(what_a_handler_sees)
{
    struct serve *serve = start_default();

    serve_ask(serve, "GET /who/a%20b//%25/c?q=1+2%263 HTTP/1.1\r\nHost: EXAMPLE:80\r\nConnection: close\r\n\r\n", text);
    assert_ends(text, "\r\n\r\nGET|example:80|a b//%/c|1 2&3|127.0.0.1|-1|-1|plain");
    assert_has(text, "\r\ncache-control: max-age=1\r\n");
    assert_null(strstr(text, "no-store"));
    assert_null(strstr(text, "X-Frame-Options"));
    serve_ask(serve, "GET http://H/who/x HTTP/1.1\r\n" CLOSE "\r\n", text);
    assert_ends(text, "GET|h|x|-|127.0.0.1|-1|-1|plain");
    serve_ask(serve, "GET http://other/who/x HTTP/1.1\r\n" CLOSE "\r\n", text);
    assert_starts(text, "HTTP/1.1 400 ");
    end(serve);
}

TEST(a_unix_socket_says_who_it_is)
{
    struct serve *serve = start_default();
    struct sockaddr_un address;
    char expected[64];
    socklen_t length = serve_unix_address(serve, &address);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_return_code(connect(fd, (struct sockaddr *)&address, length), errno);
    serve_be_patient(fd);
    serve_send(fd, "GET /who/x HTTP/1.1\r\n" CLOSE "\r\n");
    serve_read_all(fd, text);
    (void)snprintf(expected, sizeof expected, "||%d|%d|plain", (int)getuid(), (int)getpid());
    assert_has(text, "GET|h|x|-|");
    assert_ends(text, expected + 1);
    (void)close(fd);
    end(serve);
}

TEST(what_is_refused)
{
    static const struct {
        const char *request;
        const char *status;
        const char *also;
    } rows[] = {
        {"GET /nothing HTTP/1.1\r\n" CLOSE "\r\n", "404", "\"code\":\"not_found\""},
        {"GET /hello/ HTTP/1.1\r\n" CLOSE "\r\n", "404", ""},
        {"DELETE /hello HTTP/1.1\r\n" CLOSE "\r\n", "405", "\r\nAllow: GET, HEAD, POST, OPTIONS\r\n"},
        {"OPTIONS /hello HTTP/1.1\r\n" CLOSE "\r\n", "204", "\r\nAllow: GET, HEAD, POST, OPTIONS\r\n"},
        {"OPTIONS * HTTP/1.1\r\n" CLOSE "\r\n", "204", "\r\nAllow: "},
        {"GET * HTTP/1.1\r\n" CLOSE "\r\n", "400", ""},
        {"GET /who/../x HTTP/1.1\r\n" CLOSE "\r\n", "400", ""},
        {"GET /who/%2e%2E/x HTTP/1.1\r\n" CLOSE "\r\n", "400", ""},
        {"GET /who/a%2fb HTTP/1.1\r\n" CLOSE "\r\n", "400", ""},
        {"GET /who/a%00 HTTP/1.1\r\n" CLOSE "\r\n", "400", ""},
        {"POST /echo HTTP/1.1\r\n" CLOSE "Content-Length: 2\r\n\r\n{}", "415", "unsupported_media_type"},
        {"POST /echo HTTP/1.1\r\n" CLOSE "Content-Type: application/jsonx\r\nContent-Length: 2\r\n\r\n{}", "415", ""},
        {"POST /echo HTTP/1.1\r\n" CLOSE
         "Content-Encoding: gzip\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}",
         "415", ""},
        {"POST /echo HTTP/1.1\r\n" CLOSE "Content-Type: application/json\r\nContent-Length: 1048577\r\n\r\n", "413",
         ""},
        {"PUT /stream HTTP/1.1\r\n" CLOSE "Content-Length: 99999999999\r\n\r\n", "413", ""},
        {"POST /hello HTTP/1.1\r\n" CLOSE "X-Deny: 1\r\nContent-Length: 2\r\n\r\n{}", "401", "auth_required"},
        {"TRACE /hello HTTP/1.1\r\n" CLOSE "\r\n", "405", "\r\nAllow: GET, HEAD, POST, OPTIONS\r\n"},
        {"BREW / HTTP/1.1\r\n" CLOSE "\r\n", "501", "\r\nX-Frame-Options: DENY\r\n"},
        {"GET / HTTP/3.0\r\n" CLOSE "\r\n", "505", "\r\nX-Content-Type-Options: nosniff\r\n"},
        {"GET / HTTP/1.1\r\n\r\n", "400", "\r\nConnection: close\r\n"},
        {"GET / HTTP/1.1\r\n" CLOSE " folded: x\r\n\r\n", "400", "\r\nCache-Control: no-store\r\n"},
    };
    struct serve *serve = start_default();
    char front[32];

    for (size_t i = 0; i < COUNT(rows); i++) {
        serve_ask(serve, rows[i].request, text);
        (void)snprintf(front, sizeof front, "HTTP/1.1 %s ", rows[i].status);
        assert_row(rows[i].request, serve_starts(text, front));
        assert_row(rows[i].request, strstr(text, rows[i].also) != NULL);
        assert_row(rows[i].request, strstr(text, "X-Request-ID: ") != NULL);
        assert_row(rows[i].request, strstr(text, "RESET") == NULL);
    }
    assert_int_equal(serve->handled, 0);
    end(serve);
}

TEST(one_connection_many_requests)
{
    struct serve *serve = start_default();
    int fd = serve_dial(serve);

    for (int i = 0; i < 100; i++) {
        serve_send(fd, "GET /hello HTTP/1.1\r\n" HOST "\r\n");
        serve_read_answer(fd, text);
        assert_starts(text, "HTTP/1.1 200 OK\r\n");
        assert_null(strstr(text, "Connection: close"));
        /* Refusals do not cost the connection, nor do small bodies that nobody wanted. */
        serve_send(fd, "POST /nothing HTTP/1.1\r\n" HOST "Content-Length: 4\r\n\r\nbody");
        assert_starts(serve_read_answer(fd, text), "HTTP/1.1 404 ");
        serve_send(fd, "POST /hello HTTP/1.1\r\n" HOST "Content-Length: 4\r\n\r\nbody");
        assert_starts(serve_read_answer(fd, text), "HTTP/1.1 200 ");
    }
    for (int i = 0; i < 3; i++) {
        serve_send(fd, "HEAD /big?n=1000000 HTTP/1.1\r\n" HOST "\r\n");
        assert_has(serve_read_answer(fd, text), "\r\nTransfer-Encoding: chunked\r\n");
        serve_send(fd, "GET /hello HTTP/1.1\r\n" HOST "X-Wait: 1\r\n\r\n");
        assert_starts(serve_read_answer(fd, text), "HTTP/1.1 200 ");
    }
    (void)close(fd);
    serve_eventually(serve_counts(serve).connections == 0);
    end(serve);
}

TEST(pipelined_requests_are_answered_in_order)
{
    struct serve *serve = start_default();

    serve_ask(serve,
              "GET /later HTTP/1.1\r\n" HOST "\r\nGET /hello HTTP/1.1\r\n" HOST "\r\n"
              "POST /echo HTTP/1.1\r\n" HOST "Content-Type: application/json; charset=utf-8\r\n"
              "Transfer-Encoding: chunked\r\n\r\n3\r\n[1,\r\n2\r\n2]\r\n0\r\n\r\nGET /later HTTP/1.1\r\n" CLOSE "\r\n"
              "GET /hello HTTP/1.1\r\n" HOST "\r\n",
              text);
    const char *late = strstr(text, "\r\n\r\nlate");
    const char *hello = strstr(text, "\r\n\r\nhello");
    const char *echo = strstr(text, "\r\n\r\n[1,2]");
    assert_true(late != NULL && hello != NULL && echo != NULL && late < hello && hello < echo);
    assert_ends(text, "\r\n\r\nlate");
    assert_int_equal(serve->handled, 4);
    end(serve);
}

TEST(old_clients)
{
    struct serve *serve = start_default();

    serve_ask(serve, "GET /hello HTTP/1.0\r\n\r\n", text);
    assert_has(text, "\r\nConnection: close\r\n");
    assert_ends(text, "hello");
    serve_ask(serve, "GET /big?n=20000 HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", text);
    assert_null(strstr(text, "chunked"));
    assert_has(text, "\r\nConnection: close\r\n");
    assert_int_equal(strlen(strstr(text, "\r\n\r\n")), 20004);
    int fd = serve_dial(serve);
    for (int i = 0; i < 2; i++) {
        serve_send(fd, "GET /hello HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
        serve_read_answer(fd, text);
        assert_has(text, "\r\nConnection: keep-alive\r\n");
    }
    (void)close(fd);
    end(serve);
}

TEST(a_hundred_and_more)
{
    struct serve *serve = start_default();
    int fd = serve_dial(serve);

    serve_send(fd, "PUT /bytes HTTP/1.1\r\n" HOST "Expect: 100-continue\r\nContent-Length: 3\r\n\r\n");
    assert_string_equal(serve_read_answer(fd, text), "HTTP/1.1 100 Continue\r\n\r\n");
    serve_send(fd, "abc");
    assert_ends(serve_read_answer(fd, text), "abc");
    /* Refused before the body was sent: it will not come, so the connection ends. */
    serve_send(fd, "PUT /bytes HTTP/1.1\r\n" HOST "Expect: 100-continue\r\nContent-Length: 300000\r\n\r\n");
    serve_read_all(fd, text);
    assert_starts(text, "HTTP/1.1 413 ");
    assert_has(text, "\r\nConnection: close\r\n");
    (void)close(fd);
    end(serve);
}

static size_t count_body(int fd)
{
    static char piece[65536];
    size_t total = 0;
    ssize_t n;

    while ((n = recv(fd, piece, sizeof piece, 0)) > 0) {
        for (ssize_t i = 0; i < n; i++)
            total += piece[i] == 'x';
    }
    return total;
}

TEST(streams_wait_for_their_reader)
{
    struct serve *serve = start((struct server_limits){.unsent_low_bytes = 100000, .tick_ms = 20});
    int fd = serve_dial(serve);

    serve_send(fd, "GET /big?n=30000000 HTTP/1.1\r\n" CLOSE "\r\n");
    serve_eventually(serve->waits > 0);
    (void)usleep(100000);
    assert_int_equal(serve->waits, 1);
    size_t heads = 1; /* text/plain has one x less than one would think: "X-" is upper case, "text" has one */
    assert_int_equal(count_body(fd), 30000000 + heads);
    assert_true(serve->waits > 1);
    assert_true(serve->most_unsent <= 100000 + 10000 + 16);
    (void)close(fd);
    end(serve);
}

TEST(bodies_wait_for_their_handler)
{
    struct serve *serve = start_default();
    int fd = serve_dial(serve);
    static char piece[1 << 20];

    serve_send(fd, "PUT /stream HTTP/1.1\r\n" CLOSE "Content-Length: 20971520\r\n\r\n");
    for (int i = 0; i < 20; i++)
        serve_send_bytes(fd, piece, sizeof piece);
    serve_read_all(fd, text);
    assert_ends(text, "\r\n\r\n20971520");
    assert_true(serve->pauses > 20);
    (void)close(fd);
    end(serve);
}

TEST(an_answer_before_the_body)
{
    struct serve *serve = start_default();
    static char piece[200000];
    int fd = serve_dial(serve);

    serve_send(fd, "PUT /early HTTP/1.1\r\n" HOST "Content-Length: 1000000\r\n\r\n");
    serve_send_bytes(fd, piece, sizeof piece);
    serve_read_all(fd, text);
    assert_starts(text, "HTTP/1.1 200 OK\r\n");
    assert_has(text, "\r\nConnection: close\r\n");
    assert_ends(text, "hello");
    (void)close(fd);
    end(serve);
}

TEST(server_sent_events)
{
    struct serve *serve = start_default();
    int fd = serve_dial(serve);

    serve_send(fd, "GET /sse HTTP/1.1\r\n" HOST "\r\n");
    serve_read_answer(fd, text);
    assert_has(text, "\r\nContent-Type: text/event-stream\r\n");
    assert_has(text, "\r\nTransfer-Encoding: chunked\r\n");
    size_t length = 0;
    while (strstr(text, "3\r\n:\n\n\r\n") == NULL) {
        ssize_t n = recv(fd, text + length, 1, 0);
        assert_int_equal(n, 1);
        text[++length] = '\0';
    }
    assert_has(text, "\r\nevent: stdout\nid: 7\ndata: one\ndata: two\n\n\r\n");
    (void)close(fd);
    serve_eventually(serve->gone == 1);
    end(serve);
}

TEST(a_stop_lets_requests_end)
{
    struct serve *serve = start_default();
    int idle = serve_dial(serve);
    int busy = serve_dial(serve);

    serve_send(busy, "GET /later HTTP/1.1\r\n" HOST "\r\n");
    serve_eventually(serve->handled == 1 && serve_counts(serve).connections == 2);
    serve_end(serve);
    assert_string_equal(serve_read_all(idle, text), "");
    serve_read_all(busy, text);
    assert_has(text, "\r\nConnection: close\r\n");
    assert_ends(text, "late");
    assert_int_equal(serve->gone, 0);
    (void)close(idle);
    (void)close(busy);
    free(serve);
}

TEST(a_stop_has_a_deadline)
{
    struct serve *serve = start_default();
    int busy = serve_dial(serve);

    serve->stop_within_ms = 50;
    serve_send(busy, "GET /hang HTTP/1.1\r\n" HOST "\r\n");
    serve_eventually(serve->handled == 1);
    serve_end(serve);
    assert_string_equal(serve_read_all(busy, text), "");
    assert_int_equal(serve->gone, 1);
    (void)close(busy);
    free(serve);
}

TEST(counts_and_the_longest_round)
{
    struct serve *serve = start_default();

    serve_ask(serve, "GET /hello HTTP/1.1\r\n" CLOSE "\r\n", text);
    serve_ask(serve, "GET /hello\r\n", text);
    (void)usleep(300000);
    serve_end(serve);
    assert_int_equal(serve->counts.connections_total, 2);
    assert_int_equal(serve->counts.requests_total, 1);
    assert_int_equal(serve->counts.requests_bad, 1);
    assert_true(serve->counts.bytes_in >= 50 && serve->counts.bytes_out > 600);
    assert_true(serve->meter.rounds > 3);
    /* Sleeping is not being busy. */
    assert_true(serve->meter.longest_ns > 0 && serve->meter.longest_ns < 200000000);
    free(serve);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_whole_answer),
        cmocka_unit_test(what_a_handler_sees),
        cmocka_unit_test(a_unix_socket_says_who_it_is),
        cmocka_unit_test(what_is_refused),
        cmocka_unit_test(one_connection_many_requests),
        cmocka_unit_test(pipelined_requests_are_answered_in_order),
        cmocka_unit_test(old_clients),
        cmocka_unit_test(a_hundred_and_more),
        cmocka_unit_test(streams_wait_for_their_reader),
        cmocka_unit_test(bodies_wait_for_their_handler),
        cmocka_unit_test(an_answer_before_the_body),
        cmocka_unit_test(server_sent_events),
        cmocka_unit_test(a_stop_lets_requests_end),
        cmocka_unit_test(a_stop_has_a_deadline),
        cmocka_unit_test(counts_and_the_longest_round),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
