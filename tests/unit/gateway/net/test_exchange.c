/*
 * Clients that send more than is wanted, or take less than they asked for: each costs the server a bounded amount of
 * memory, and is refused once.
 */
#include "serve.h"

#define HOST "Host: h\r\n"
#define JSON HOST "Content-Type: application/json\r\n"

enum { CHUNK = 65536, PAGES = 400 };

static char text[SERVE_TEXT];

static struct serve *start(struct server_limits limits, bool refuses_late)
{
    struct serve *serve = calloc(1, sizeof *serve);

    assert_non_null(serve);
    limits.tick_ms = 20;
    serve->limits = limits;
    serve->refuses_late = refuses_late;
    serve->stop_within_ms = 5000;
    serve_start(serve);
    return serve;
}

static void end(struct serve *serve)
{
    serve_end(serve);
    free(serve);
}

/* Whoever goes on after the limit while the refusal is being written down is not refused again. */
TEST(a_body_that_goes_on_after_it_was_refused)
{
    struct serve *serve = start((struct server_limits){0}, true);
    static char chunk[CHUNK + 9] = "10000\r\n";
    int fd = serve_dial(serve);

    memset(chunk + 7, ' ', CHUNK);
    memcpy(chunk + 7 + CHUNK, "\r\n", 2);
    serve_send(fd, "POST /echo HTTP/1.1\r\n" JSON "Transfer-Encoding: chunked\r\n\r\n");
    for (int i = 0; i < 64; i++) {
        if (send(fd, chunk, sizeof chunk, MSG_NOSIGNAL) < 0)
            break;
    }
    serve_read_all(fd, text);
    assert_starts(text, "HTTP/1.1 413 ");
    assert_null(strstr(text + 1, "HTTP/1.1"));
    assert_int_equal(serve->refused, 1);
    assert_int_equal(serve->handled, 0);
    (void)close(fd);
    end(serve);
}

TEST(a_body_that_comes_after_its_time)
{
    struct serve *serve = start((struct server_limits){.body_silence_ms = 60}, true);
    int fd = serve_dial(serve);

    serve_send(fd, "POST /echo HTTP/1.1\r\n" JSON "Content-Length: 4\r\n\r\n[1");
    serve_eventually(serve->refused == 1);
    serve_send(fd, ",2");
    serve_read_all(fd, text);
    assert_starts(text, "HTTP/1.1 408 ");
    assert_null(strstr(text + 1, "HTTP/1.1"));
    assert_int_equal(serve->handled, 0);
    (void)close(fd);
    end(serve);
}

/* All of them together have a limit too, and what was refused makes room. */
TEST(many_large_bodies)
{
    struct serve *serve = start((struct server_limits){.bodies_bytes = 45000}, false);
    static char body[30000];
    int first = serve_dial(serve);
    int second = serve_dial(serve);

    memset(body, ' ', sizeof body);
    serve_send(first, "POST /echo HTTP/1.1\r\n" JSON "Content-Length: 30002\r\n\r\n");
    serve_send_bytes(first, body, sizeof body);
    /* Of another connection nothing says when it was read: its answer does. */
    serve_ask(serve, "GET /hello HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n", text);
    (void)usleep(20000);
    serve_send(second, "POST /echo HTTP/1.1\r\n" JSON "Connection: close\r\nContent-Length: 30002\r\n\r\n");
    serve_send_bytes(second, body, sizeof body);
    serve_read_all(second, text);
    assert_starts(text, "HTTP/1.1 503 ");
    serve_send(first, "[]");
    serve_read_answer(first, text);
    assert_starts(text, "HTTP/1.1 200 ");
    serve_send(first, "POST /echo HTTP/1.1\r\n" JSON "Content-Length: 30002\r\n\r\n");
    serve_send_bytes(first, body, sizeof body);
    serve_send(first, "[]");
    assert_int_equal(recv(first, body, sizeof body, MSG_WAITALL), sizeof body);
    (void)close(first);
    (void)close(second);
    end(serve);
}

/* A client that does not read its answers gets no others made; when it reads, it gets them all. */
TEST(answers_wait_for_their_reader)
{
    struct serve *serve = start((struct server_limits){0}, false);
    static char body[100000];
    int fd = serve_dial(serve);
    size_t bytes = 0;
    ssize_t n;

    for (int i = 0; i < PAGES; i++)
        serve_send(fd, "GET /page HTTP/1.1\r\n" HOST "\r\n");
    assert_return_code(shutdown(fd, SHUT_WR), errno);
    serve_eventually(serve->handled > 0);
    (void)usleep(100000);
    int handled = serve->handled;
    (void)usleep(100000);
    assert_int_equal(handled, serve->handled);
    assert_true(handled < PAGES);
    while ((n = recv(fd, body, sizeof body, 0)) > 0)
        bytes += (size_t)n;
    assert_int_equal(n, 0);
    assert_int_equal(serve->handled, PAGES);
    assert_true(bytes > PAGES * sizeof body);
    (void)close(fd);
    end(serve);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_body_that_goes_on_after_it_was_refused),
        cmocka_unit_test(a_body_that_comes_after_its_time),
        cmocka_unit_test(many_large_bodies),
        cmocka_unit_test(answers_wait_for_their_reader),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
