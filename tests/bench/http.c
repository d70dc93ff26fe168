/*
 * http: what the gateway's HTTP layer costs by itself: small requests over keep-alive connections to a server that
 * answers at once, on a loop of its own thread.
 *
 *   build/tests/bench/bench-http [CONNECTIONS] [SECONDS]
 */
#include "base/clock.h"
#include "gateway/net/meter.h"
#include "gateway/net/server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { SAMPLES_MAX = 4 << 20, CONNECTIONS_MAX = 256 };

static void answer(struct request *request)
{
    static const char body[] =
        "{\"success\":true,\"tool\":\"shell_exec\",\"result\":{\"stdout\":\"\",\"exit_code\":0}}";

    request_answer(request, 200, "application/json", body, sizeof body - 1);
}

static const struct route routes[] = {
    {.method = METHOD_POST, .pattern = "/execute", .body = ROUTE_JSON, .body_cap = 1 << 20, .handle = answer},
};

static const char request_text[] =
    "POST /execute HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nUser-Agent: bench\r\nAccept: */*\r\n"
    "Authorization: Bearer 0123456789abcdef0123456789abcdef\r\nContent-Type: application/json\r\n"
    "Content-Length: 55\r\n\r\n{\"tool\":\"shell_exec\",\"arguments\":{\"command\":\"true   \"}}";

static void die(const char *what)
{
    perror(what);
    exit(1);
}

static int listen_somewhere(uint16_t *ret_port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof address) < 0 || listen(fd, 512) < 0 ||
        getsockname(fd, (struct sockaddr *)&address, &length) < 0)
        die("listening");
    *ret_port = ntohs(address.sin_port);
    return fd;
}

static int dial(uint16_t port)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(port)};
    int on = 1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) < 0 ||
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) < 0)
        die("dialing");
    return fd;
}

static void *run_loop(void *loop)
{
    (void)uv_run(loop, UV_RUN_DEFAULT);
    return NULL;
}

static int compare(const void *a, const void *b)
{
    const uint32_t *left = a;
    const uint32_t *right = b;

    return *left < *right ? -1 : *left > *right;
}

/* One answer is one packet here: what the server writes at once comes at once. */
static void take_answer(int fd)
{
    char text[2048];
    ssize_t n = recv(fd, text, sizeof text, 0);

    if (n < 100 || memcmp(text, "HTTP/1.1 200", 12) != 0 || text[n - 1] != '}')
        die("an answer is wrong");
}

static size_t measure(const int *fds, size_t count, uint64_t seconds, uint32_t *samples)
{
    struct pollfd ready[CONNECTIONS_MAX];
    uint64_t sent_ns[CONNECTIONS_MAX];
    uint64_t end_ns = clock_now_ns() + seconds * 1000000000U;
    size_t total = 0;

    for (size_t i = 0; i < count; i++) {
        ready[i] = (struct pollfd){.fd = fds[i], .events = POLLIN};
        sent_ns[i] = clock_now_ns();
        if (send(fds[i], request_text, sizeof request_text - 1, 0) < 0)
            die("sending");
    }
    while (clock_now_ns() < end_ns && total < SAMPLES_MAX - count) {
        if (count > 1 && poll(ready, count, 1000) < 0)
            die("poll");
        for (size_t i = 0; i < count; i++) {
            if (count > 1 && ready[i].revents == 0)
                continue;
            take_answer(fds[i]);
            uint64_t now = clock_now_ns();
            samples[total++] = (uint32_t)(now - sent_ns[i]);
            sent_ns[i] = now;
            if (send(fds[i], request_text, sizeof request_text - 1, 0) < 0)
                die("sending");
        }
    }
    return total;
}

int main(int argc, char **argv)
{
    size_t count = argc > 1 ? strtoul(argv[1], NULL, 10) : 1;
    uint64_t seconds = argc > 2 ? strtoull(argv[2], NULL, 10) : 3;
    const struct route *tables[] = {routes};
    const size_t counts[] = {1};
    struct router *router;
    struct server *server;
    struct error err;
    struct meter meter;
    uv_loop_t loop;
    uint16_t port;
    pthread_t thread;
    int fds[CONNECTIONS_MAX];
    uint32_t *samples = malloc(sizeof *samples * SAMPLES_MAX);

    if (count < 1 || count > CONNECTIONS_MAX || samples == NULL)
        return 1;
    struct server_options options = {.loop = &loop};
    if (uv_loop_init(&loop) < 0 || meter_start(&meter, &loop, &err) < 0 ||
        router_new(tables, counts, 1, &router, &err) < 0)
        die("starting");
    options.router = router;
    if (server_new(&options, &server, &err) < 0 || server_listen(server, listen_somewhere(&port), NULL, &err) < 0 ||
        pthread_create(&thread, NULL, run_loop, &loop) != 0)
        die("starting");
    for (size_t i = 0; i < count; i++)
        fds[i] = dial(port);
    uint64_t busy = meter.busy_ns;
    size_t total = measure(fds, count, seconds, samples);
    busy = meter.busy_ns - busy;
    qsort(samples, total, sizeof *samples, compare);
    printf("connections=%zu requests_per_s=%.0f p50_us=%.1f p99_us=%.1f server_busy_us_per_request=%.2f "
           "longest_round_us=%.0f\n",
           count, (double)total / (double)seconds, samples[total / 2] / 1e3, samples[total * 99 / 100] / 1e3,
           (double)busy / 1e3 / (double)total, (double)meter.longest_ns / 1e3);
    free(samples);
    return 0;
}
