/*
 * Connections with real sockets whose clients are slow, half-closed, vanishing, flooding or never reading.
 */
#include "plain.h"

#include <sys/resource.h>

/* One who sends thousands at once does not keep the others waiting. */
TEST(a_flood_of_pipelined_requests)
{
    struct serve *serve = start_default();
    static char flood[1000 * 40];
    char *at = flood;
    int flooder = serve_dial(serve);
    size_t hellos = 0;

    for (int i = 0; i < 1000; i++)
        at = stpcpy(at, i == 999 ? "GET /hello HTTP/1.1\r\n" CLOSE "\r\n" : "GET /hello HTTP/1.1\r\n" HOST "\r\n");
    serve_send(flooder, flood);
    while (true) {
        ssize_t n = recv(flooder, text, SERVE_TEXT - 1, MSG_WAITALL);
        if (n <= 0)
            break;
        text[n] = '\0';
        for (const char *found = text; (found = strstr(found, "HTTP/1.1 200 OK")) != NULL; found++)
            hellos++;
    }
    /* A few may be cut in two by the end of our buffer. */
    assert_true(hellos > 990);
    assert_int_equal(serve->handled, 1000);
    (void)close(flooder);
    serve_end(serve);
    assert_true(serve->meter.rounds >= 1000 / 16);
    free(serve);
}

TEST(byte_by_byte)
{
    struct serve *serve = start_default();
    const char *input =
        "POST /echo HTTP/1.1\r\n" CLOSE "Content-Type: application/json\r\nContent-Length: 5\r\n\r\n[1,2]";
    int fd = serve_dial(serve);

    for (const char *at = input; *at != '\0'; at++) {
        serve_send_bytes(fd, at, 1);
        if (at - input < 40)
            (void)usleep(500);
    }
    serve_read_all(fd, text);
    assert_ends(text, "\r\n\r\n[1,2]");
    (void)close(fd);
    end(serve);
}

TEST(a_body_that_turns_out_too_large)
{
    struct serve *serve = start_default();
    int fd = serve_dial(serve);
    static char chunk[10007];

    serve_send(fd, "PUT /bytes HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n");
    memset(chunk, 'x', sizeof chunk);
    memcpy(chunk, "270f\r\n", 6);
    memcpy(chunk + 6 + 0x270f, "\r\n", 2);
    for (int i = 0; i < 11; i++)
        serve_send_bytes(fd, chunk, 6 + 0x270f + 2);
    serve_read_all(fd, text);
    assert_starts(text, "HTTP/1.1 413 ");
    assert_null(strstr(text, "RESET"));
    assert_int_equal(serve->handled, 0);
    (void)close(fd);
    end(serve);
}

/* It sends all before it reads, as most clients do; the server has no use for it and says so early. */
TEST(a_refusal_reaches_who_sends_much)
{
    static char piece[1 << 20];
    static const char *const heads[] = {
        "PUT /bytes HTTP/1.1\r\n" HOST "Content-Length: 50331648\r\n\r\n",
        "PUT /nowhere HTTP/1.1\r\n" HOST "Content-Length: 50331648\r\n\r\n",
        "PUT /early HTTP/1.1\r\n" HOST "Content-Length: 50331648\r\n\r\n",
    };
    static const char *const expected[] = {"HTTP/1.1 413 ", "HTTP/1.1 404 ", "HTTP/1.1 200 "};
    struct serve *serve = start_default();

    for (size_t i = 0; i < COUNT(heads); i++) {
        int fd = serve_dial(serve);
        serve_send(fd, heads[i]);
        for (int k = 0; k < 48; k++)
            serve_send_bytes(fd, piece, sizeof piece);
        serve_read_all(fd, text);
        assert_starts(text, expected[i]);
        assert_null(strstr(text, "RESET"));
        (void)close(fd);
    }
    end(serve);
}

/* But not for ever. */
TEST(who_goes_on_sending_is_ended)
{
    struct serve *serve = start((struct server_limits){.tick_ms = 20, .linger_ms = 40});
    int fd = serve_dial(serve);
    int pieces = 0;

    serve_send(fd, "PUT /nowhere HTTP/1.1\r\n" HOST "Content-Length: 50331648\r\n\r\n");
    while (send(fd, "x", 1, MSG_NOSIGNAL) == 1 && pieces++ < 1000)
        (void)usleep(10000);
    assert_true(pieces > 10 && pieces < 200);
    (void)close(fd);
    end(serve);
}

/* What comes of the body until then is neither refused again nor handled after all. */
TEST(refusals_that_take_their_time)
{
    struct serve *serve = calloc(1, sizeof *serve);
    static char piece[50000];

    assert_non_null(serve);
    serve->limits = (struct server_limits){.tick_ms = 20, .body_silence_ms = 60};
    serve->refuses_late = true;
    serve_start(serve);
    int large = serve_dial(serve);
    int slow = serve_dial(serve);
    serve_send(large, "PUT /bytes HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n");
    serve_send(slow, "PUT /bytes HTTP/1.1\r\n" HOST "Content-Length: 2\r\n\r\nx");
    for (int i = 0; i < 10; i++) {
        serve_send(large, "c350\r\n");
        serve_send_bytes(large, piece, sizeof piece);
        serve_send(large, "\r\n");
        (void)usleep(i == 1 ? 0 : 10000);
    }
    serve_send(slow, "x");
    assert_starts(serve_read_all(large, text), "HTTP/1.1 413 ");
    assert_null(strstr(text, "RESET"));
    assert_starts(serve_read_all(slow, text), "HTTP/1.1 408 ");
    assert_int_equal(serve->refused, 2);
    assert_int_equal(serve->handled, 0);
    (void)close(large);
    (void)close(slow);
    serve_end(serve);
    free(serve);
}

TEST(half_closed_clients_get_their_answer)
{
    struct serve *serve = start_default();
    int fd = serve_dial(serve);

    serve_send(fd, "GET /later HTTP/1.1\r\n" HOST "\r\nGET /hello HTTP/1.1\r\n" HOST "\r\n");
    (void)shutdown(fd, SHUT_WR);
    serve_read_all(fd, text);
    assert_has(text, "late");
    assert_ends(text, "hello");
    assert_int_equal(serve->gone, 1);
    (void)close(fd);
    end(serve);
}

static void vanish(int fd, bool reset)
{
    struct linger hard = {.l_onoff = reset, .l_linger = 0};

    assert_return_code(setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard), errno);
    (void)close(fd);
}

TEST(clients_that_vanish)
{
    static const struct {
        const char *input;
        int handled;
    } rows[] = {
        {"", 0},
        {"GET /hang HTT", 0},
        {"GET /hang HTTP/1.1\r\n" HOST, 0},
        {"PUT /bytes HTTP/1.1\r\n" HOST "Content-Length: 10\r\n\r\nabc", 0},
        {"POST /echo HTTP/1.1\r\n" HOST "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
         0},
        {"GET /hang HTTP/1.1\r\n" HOST "\r\n", 1},
        {"GET /sse HTTP/1.1\r\n" HOST "\r\n", 1},
        {"GET /later HTTP/1.1\r\n" HOST "\r\n", 1},
        {"GET /big?n=100000000 HTTP/1.1\r\n" HOST "\r\n", 1},
    };

    for (int reset = 0; reset < 2; reset++) {
        struct serve *serve = start_default();
        int handled = 0;
        for (size_t i = 0; i < COUNT(rows); i++) {
            int fd = serve_dial(serve);
            uint64_t came = serve_counts(serve).bytes_in;
            serve_send(fd, rows[i].input);
            handled += rows[i].handled;
            serve_eventually(serve_counts(serve).bytes_in == came + strlen(rows[i].input));
            serve_eventually(serve->handled == handled);
            vanish(fd, reset == 1);
        }
        serve_eventually(serve_counts(serve).connections == 0 && serve_counts(serve).requests == 0);
        /* /hang, /sse, /later, /big: each is told once, the last perhaps by a write that failed. */
        assert_int_equal(serve->gone + serve->failed, 4);
        /* And the two bodies that did not come. */
        assert_int_equal(serve->done, 6);
        assert_true(serve->done_unheard >= 3);
        end(serve);
    }
}

/* While somebody thinks about whether it may ask at all. */
TEST(clients_that_vanish_before_they_are_heard)
{
    for (int reset = 0; reset < 2; reset++) {
        struct serve *serve = start_default();
        int fd = serve_dial(serve);
        serve_send(fd, "PUT /bytes HTTP/1.1\r\n" HOST "X-Wait: 1\r\nContent-Length: 1\r\n\r\nx");
        serve_eventually(serve_counts(serve).requests_total == 1);
        vanish(fd, reset == 1);
        serve_eventually(serve->done == 1);
        end(serve);
    }
}

TEST(a_stream_whose_client_vanishes)
{
    struct serve *serve = start_default();
    int fd = serve_dial(serve);

    /* The first piece pauses it; the rest goes on once it is taken. */
    serve_send(fd, "PUT /stream HTTP/1.1\r\n" HOST "Content-Length: 1000\r\n\r\nabc");
    serve_eventually(serve->pauses == 1);
    (void)usleep(20000);
    serve_send(fd, "abc");
    serve_eventually(serve->pauses == 2);
    (void)close(fd);
    serve_eventually(serve->gone == 1 && serve->ended == 1);
    end(serve);
}

TEST(clients_that_never_read)
{
    struct serve *serve = start((struct server_limits){.write_stall_ms = 1000, .tick_ms = 20});
    int fd = serve_dial(serve);
    int slow = serve_dial(serve);
    static char piece[400000];

    serve_send(fd, "GET /big?n=100000000 HTTP/1.1\r\n" HOST "\r\n");
    serve_eventually(serve->gone == 1);
    /* One who reads slowly is not ended, although it takes longer than that. */
    serve_send(slow, "GET /big?n=8000000 HTTP/1.1\r\n" CLOSE "\r\n");
    size_t total = 0;
    ssize_t n;
    while ((n = recv(slow, piece, sizeof piece, 0)) > 0) {
        total += (size_t)n;
        (void)usleep(20000);
    }
    assert_true(total > 8000000);
    assert_int_equal(n, 0);
    assert_int_equal(serve->gone, 1);
    /* A handler that does not wait is stopped by the cap. */
    (void)close(slow);
    slow = serve_dial(serve);
    serve_send(slow, "GET /flood HTTP/1.1\r\n" HOST "\r\n");
    serve_eventually(serve->ended == 2);
    (void)close(slow);
    (void)close(fd);
    end(serve);
}

TEST(clients_that_are_too_slow)
{
    struct serve *serve = start((struct server_limits){
        .headers_ms = 200, .body_silence_ms = 200, .body_bytes_per_s = 1000, .idle_ms = 400, .tick_ms = 20});
    int idle = serve_dial(serve);
    int head = serve_dial(serve);
    int body = serve_dial(serve);
    int drops = serve_dial(serve);

    /* A byte now and then does not help: it counts from the first. */
    serve_send(head, "GET /hello HTTP/1.1\r\n");
    serve_send(body, "PUT /bytes HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nab");
    serve_send(drops, "PUT /bytes HTTP/1.1\r\n" HOST "Content-Length: 500\r\n\r\n");
    for (int i = 0; i < 8; i++) {
        (void)usleep(50000);
        ignore_result(send(head, "X: y\r\n", 6, MSG_NOSIGNAL));
        ignore_result(send(drops, "x", 1, MSG_NOSIGNAL));
    }
    assert_starts(serve_read_all(head, text), "HTTP/1.1 408 ");
    assert_starts(serve_read_all(body, text), "HTTP/1.1 408 ");
    assert_starts(serve_read_all(drops, text), "HTTP/1.1 408 ");
    assert_string_equal(serve_read_all(idle, text), "");
    assert_int_equal(serve_counts(serve).timeouts, 4);
    (void)close(idle);
    (void)close(head);
    (void)close(body);
    (void)close(drops);
    end(serve);
}

TEST(who_is_told_to_wait_is_not_late)
{
    struct serve *serve = start((struct server_limits){.body_silence_ms = 200, .tick_ms = 20});
    int fd = serve_dial(serve);

    serve_send(fd, "PUT /slow HTTP/1.1\r\n" CLOSE "Content-Length: 5\r\n\r\nhello");
    assert_ends(serve_read_all(fd, text), "\r\n\r\nslow");
    assert_int_equal(serve->gone, 0);
    (void)close(fd);
    end(serve);
}

TEST(a_stream_that_turns_out_too_large)
{
    struct serve *serve = start_default();

    serve_ask(serve, "PUT /few HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\nb\r\n01234567890\r\n0\r\n\r\n",
              text);
    assert_starts(text, "HTTP/1.1 413 ");
    assert_int_equal(serve->gone, 1);
    serve_ask(serve, "PUT /few HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n5\r\n01234\r\nzz\r\n", text);
    assert_starts(text, "HTTP/1.1 400 ");
    serve_eventually(serve->ended == 2);
    end(serve);
}

/* An answer that is not as long as it said must not look complete, nor run into the next. */
TEST(promises_are_kept)
{
    struct serve *serve = start_default();
    int fd = serve_dial(serve);

    serve_send(fd, "GET /promise?n=10 HTTP/1.1\r\n" HOST "\r\n");
    assert_ends(serve_read_answer(fd, text), "\r\n\r\nxxxxxxxxxx");
    serve_eventually(serve->handled == 1);
    serve_send(fd, "GET /promise?n=9 HTTP/1.1\r\n" HOST "\r\nGET /promise?n=10 HTTP/1.1\r\n" HOST "\r\n");
    serve_read_all(fd, text);
    assert_null(strstr(text, "xxxxxxxxxx"));
    serve_eventually(serve->handled == 2);
    (void)close(fd);
    serve_ask(serve, "GET /promise?n=11 HTTP/1.1\r\n" HOST "\r\n", text);
    assert_null(strstr(text, "xxxxxxxxxxx"));
    serve_eventually(serve->handled == 102);
    end(serve);
}

TEST(gone_is_told_once)
{
    struct serve *serve = start_default();
    int fd = serve_dial(serve);

    serve->stop_within_ms = 1;
    serve_send(fd, "GET /later HTTP/1.1\r\n" HOST "\r\n");
    (void)shutdown(fd, SHUT_WR);
    serve_eventually(serve->gone == 1);
    /* The connection is ended on top of that while the handler still works. */
    serve_end(serve);
    assert_int_equal(serve->gone, 1);
    assert_int_equal(serve->ended, 1);
    (void)close(fd);
    free(serve);
}

TEST(too_many_connections)
{
    struct serve *serve = start((struct server_limits){.connections_max = 3, .tick_ms = 20});
    int fds[5];

    for (int i = 0; i < 3; i++) {
        fds[i] = serve_dial(serve);
        if (i > 0)
            serve_send(fds[i], "GET /hang HTTP/1.1\r\n" HOST "\r\n");
    }
    serve_eventually(serve->handled == 2);
    /* The idle one makes room; when there is none the new one goes. */
    fds[3] = serve_dial(serve);
    serve_send(fds[3], "GET /hang HTTP/1.1\r\n" HOST "\r\n");
    assert_string_equal(serve_read_all(fds[0], text), "");
    serve_eventually(serve->handled == 3);
    fds[4] = serve_dial(serve);
    serve_send(fds[4], "GET /hello HTTP/1.1\r\n" HOST "\r\n");
    assert_starts(serve_read_all(fds[4], text), "HTTP/1.1 503 ");
    assert_null(strstr(text, "RESET"));
    struct server_counts counts = serve_counts(serve);
    assert_int_equal(counts.connections, 3);
    assert_int_equal(counts.connections_evicted, 1);
    assert_int_equal(counts.connections_refused, 1);
    for (int i = 0; i < 5; i++)
        (void)close(fds[i]);
    end(serve);
}

TEST(slow_heads_keep_nobody_out)
{
    struct serve *serve = start((struct server_limits){.connections_max = 20, .tick_ms = 20});
    int fds[40];

    for (size_t i = 0; i < COUNT(fds); i++) {
        fds[i] = serve_dial(serve);
        /* Also by bodies that nobody wants and that do not come. */
        serve_send(fds[i],
                   i % 2 == 0 ? "GET /hello HTTP/1.1\r\n" : "PUT /x HTTP/1.1\r\n" HOST "Content-Length: 9\r\n\r\n");
        assert_ends(serve_ask(serve, "GET /hello HTTP/1.1\r\n" CLOSE "\r\n", text), "hello");
    }
    assert_true(serve_counts(serve).connections_evicted >= 20);
    assert_int_equal(serve_counts(serve).connections_refused, 0);
    for (size_t i = 0; i < COUNT(fds); i++)
        (void)close(fds[i]);
    end(serve);
}

TEST(many_idle_connections)
{
    enum { MOST = 2000 };
    static int fds[MOST];
    struct rlimit limit;

    assert_return_code(getrlimit(RLIMIT_NOFILE, &limit), errno);
    limit.rlim_cur = limit.rlim_max;
    assert_return_code(setrlimit(RLIMIT_NOFILE, &limit), errno);
    size_t count = limit.rlim_cur / 2 - 50 < MOST ? (size_t)limit.rlim_cur / 2 - 50 : MOST;
    struct serve *serve = start_default();
    for (size_t i = 0; i < count; i++)
        fds[i] = serve_dial(serve);
    serve_eventually(serve_counts(serve).connections == count);
    for (int i = 0; i < 10; i++)
        assert_ends(serve_ask(serve, "GET /hello HTTP/1.1\r\n" CLOSE "\r\n", text), "hello");
    for (size_t i = 0; i < count; i++)
        (void)close(fds[i]);
    serve_eventually(serve_counts(serve).connections == 0);
    end(serve);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_flood_of_pipelined_requests),
        cmocka_unit_test(byte_by_byte),
        cmocka_unit_test(a_body_that_turns_out_too_large),
        cmocka_unit_test(a_refusal_reaches_who_sends_much),
        cmocka_unit_test(who_goes_on_sending_is_ended),
        cmocka_unit_test(refusals_that_take_their_time),
        cmocka_unit_test(half_closed_clients_get_their_answer),
        cmocka_unit_test(clients_that_vanish),
        cmocka_unit_test(clients_that_vanish_before_they_are_heard),
        cmocka_unit_test(a_stream_whose_client_vanishes),
        cmocka_unit_test(clients_that_never_read),
        cmocka_unit_test(clients_that_are_too_slow),
        cmocka_unit_test(who_is_told_to_wait_is_not_late),
        cmocka_unit_test(a_stream_that_turns_out_too_large),
        cmocka_unit_test(promises_are_kept),
        cmocka_unit_test(gone_is_told_once),
        cmocka_unit_test(too_many_connections),
        cmocka_unit_test(slow_heads_keep_nobody_out),
        cmocka_unit_test(many_idle_connections),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
