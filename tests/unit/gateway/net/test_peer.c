#include "gateway/net/peer.h"
#include "test.h"

#include <arpa/inet.h>
#include <unistd.h>

/* A connection from 127.0.0.1 to a socket of this family that listens everywhere. */
static void check_tcp(int family)
{
    struct sockaddr_storage address = {.ss_family = (sa_family_t)family};
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_in from;
    socklen_t length = sizeof address;
    socklen_t from_length = sizeof from;
    struct peer peer;
    int listener = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (listener < 0)
        skip(); /* no IPv6 here */
    assert_return_code(
        bind(listener, (struct sockaddr *)&address, family == AF_INET ? sizeof to : sizeof(struct sockaddr_in6)),
        errno);
    assert_return_code(listen(listener, 1), errno);
    assert_return_code(getsockname(listener, (struct sockaddr *)&address, &length), errno);
    to.sin_port = ((struct sockaddr_in *)&address)->sin_port; /* where the other family has it as well */
    assert_return_code(connect(client, (struct sockaddr *)&to, sizeof to), errno);
    assert_return_code(getsockname(client, (struct sockaddr *)&from, &from_length), errno);
    int accepted = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    assert_return_code(peer_get(accepted, &peer), 0);
    assert_int_equal(peer.kind, PEER_TCP);
    assert_string_equal(peer.address, "127.0.0.1");
    assert_int_equal(peer.port, ntohs(from.sin_port));
    assert_int_equal(peer.uid, (uid_t)-1);
    (void)close(accepted);
    (void)close(client);
    (void)close(listener);
}

TEST(tcp)
{
    check_tcp(AF_INET);
}

TEST(an_address_in_another)
{
    check_tcp(AF_INET6);
}

TEST(unix_sockets)
{
    struct peer peer;
    int ends[2];

    assert_return_code(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), errno);
    assert_return_code(peer_get(ends[0], &peer), 0);
    assert_int_equal(peer.kind, PEER_UNIX);
    assert_int_equal(peer.uid, getuid());
    assert_int_equal(peer.gid, getgid());
    assert_int_equal(peer.pid, getpid());
    assert_string_equal(peer.address, "");
    (void)close(ends[0]);
    (void)close(ends[1]);
    assert_int_equal(peer_get(-1, &peer), -EBADF);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tcp),
        cmocka_unit_test(an_address_in_another),
        cmocka_unit_test(unix_sockets),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
