#include "keeper/airlock_sockets.h"

#include "base/fd.h"
#include "test.h"
#include "wire/link.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/ioctl.h>

enum { TCP, UDP, LINK, COUNT_FDS };

static int fds[COUNT_FDS] = {-1, -1, -1};

/* A namespace of our own, as the zygote has it, and what the airlock is handed. */
static int plug(void **state)
{
    static uint8_t frame[WIRE_FRAME_MAX];
    struct ifreq up = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
    struct wire_message message;
    int received[FD_PASS_MAX];
    size_t count = 0;
    int ends[2];

    (void)state;
    assert_return_code(unshare(CLONE_NEWNET), errno);
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert_return_code(ioctl(fd, SIOCSIFFLAGS, &up), errno);
    (void)close(fd);
    assert_return_code(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), errno);
    assert_int_equal(airlock_sockets_plug(ends[0], 7), 0);
    assert_int_equal(link_receive(ends[1], WIRE_BY_KEEPER, WIRE_IN_RUNNING, frame, &message, received, &count), 1);
    assert_int_equal(message.type, WIRE_PLUG);
    assert_int_equal(message.plug.sandbox, 7);
    assert_int_equal(count, COUNT_FDS);
    memcpy(fds, received, sizeof fds);
    fd_close_many(ends, 2);
    return 0;
}

static socklen_t address_of(const char *text, uint16_t port, struct sockaddr_storage *to)
{
    struct sockaddr_in *in = (struct sockaddr_in *)to;
    struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)to;

    memset(to, 0, sizeof *to);
    if (inet_pton(AF_INET, text, &in->sin_addr) == 1) {
        in->sin_family = AF_INET;
        in->sin_port = htons(port);
        return sizeof *in;
    }
    assert_int_equal(inet_pton(AF_INET6, text, &in6->sin6_addr), 1);
    in6->sin6_family = AF_INET6;
    in6->sin6_port = htons(port);
    return sizeof *in6;
}

static int dial(const char *text, uint16_t port, int type, int *ret_fd)
{
    struct sockaddr_storage to;
    socklen_t length = address_of(text, port, &to);

    *ret_fd = socket(to.ss_family, type | SOCK_CLOEXEC, 0);
    assert_true(*ret_fd >= 0);
    return connect(*ret_fd, (const struct sockaddr *)&to, length) < 0 ? -errno : 0;
}

TEST(connections_to_any_address_come_with_where_they_wanted_to_go)
{
    static const struct {
        const char *to;
        uint16_t port;
        const char *seen;
    } rows[] = {
        {"198.18.1.2", 443, "::ffff:198.18.1.2"},
        {"8.8.8.8", 1, "::ffff:8.8.8.8"},
        {"10.0.0.1", 65535, "::ffff:10.0.0.1"},
        {"169.254.169.254", 80, "::ffff:169.254.169.254"},
        {"127.0.0.1", 15004, "::ffff:127.0.0.1"},
        {"::1", 15004, "::1"},
        {"fd68:7574:6368::102", 22, "fd68:7574:6368::102"},
        {"2001:4860::1", 443, "2001:4860::1"},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct sockaddr_in6 local = {0};
        socklen_t length = sizeof local;
        char text[INET6_ADDRSTRLEN];
        int client;
        assert_row(rows[i].to, dial(rows[i].to, rows[i].port, SOCK_STREAM, &client) == 0);
        struct pollfd ready = {.fd = fds[TCP], .events = POLLIN};
        assert_row(rows[i].to, poll(&ready, 1, 2000) == 1);
        int fd = accept4(fds[TCP], NULL, NULL, SOCK_CLOEXEC);
        assert_row(rows[i].to, fd >= 0);
        assert_return_code(getsockname(fd, (struct sockaddr *)&local, &length), errno);
        assert_non_null(inet_ntop(AF_INET6, &local.sin6_addr, text, sizeof text));
        assert_string_equal(text, rows[i].seen);
        assert_int_equal(ntohs(local.sin6_port), rows[i].port);
        (void)close(fd);
        (void)close(client);
    }
}

TEST(loopback_stays_the_sandboxs_own)
{
    struct sockaddr_storage here;
    int client;
    int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_equal(dial("127.0.0.1", 8080, SOCK_STREAM, &client), -ECONNREFUSED);
    (void)close(client);
    assert_int_equal(dial("::1", 8080, SOCK_STREAM, &client), -ECONNREFUSED);
    (void)close(client);
    socklen_t length = address_of("0.0.0.0", 8080, &here);
    assert_return_code(bind(server, (const struct sockaddr *)&here, length), errno);
    assert_return_code(listen(server, 1), errno);
    assert_int_equal(dial("127.0.0.1", 8080, SOCK_STREAM, &client), 0);
    (void)close(client);
    /* A server of the sandbox's does not stand in for others. */
    assert_int_equal(dial("8.8.8.8", 8080, SOCK_STREAM, &client), 0);
    int fd = accept4(fds[TCP], NULL, NULL, SOCK_CLOEXEC);
    assert_true(fd >= 0);
    (void)close(fd);
    (void)close(client);
    (void)close(server);
}

TEST(questions_come_from_every_address_and_nothing_else_does)
{
    static const char *const resolvers[] = {"198.18.0.2", "8.8.8.8", "127.0.0.1", "2001:4860::1"};

    for (size_t i = 0; i < COUNT(resolvers); i++) {
        int client;
        char data[8];
        assert_int_equal(dial(resolvers[i], 53, SOCK_DGRAM, &client), 0);
        assert_int_equal(send(client, "q", 1, 0), 1);
        assert_row(resolvers[i], recv(fds[UDP], data, sizeof data, MSG_DONTWAIT) == 1);
        (void)close(client);
        assert_int_equal(dial(resolvers[i], 443, SOCK_DGRAM, &client), 0);
        assert_int_equal(send(client, "q", 1, 0), 1);
        assert_row(resolvers[i], recv(client, data, sizeof data, 0) == -1 && errno == ECONNREFUSED);
        (void)close(client);
    }
}

TEST(without_the_sockets_nothing_answers)
{
    int client;

    fd_close_many(fds, COUNT_FDS);
    assert_int_equal(dial("8.8.8.8", 443, SOCK_STREAM, &client), -ECONNREFUSED);
    (void)close(client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(connections_to_any_address_come_with_where_they_wanted_to_go),
        cmocka_unit_test(loopback_stays_the_sandboxs_own),
        cmocka_unit_test(questions_come_from_every_address_and_nothing_else_does),
        cmocka_unit_test(without_the_sockets_nothing_answers),
    };

    return cmocka_run_group_tests(tests, plug, NULL);
}
