#include "keeper/listener.h"

#include "base/cleanup.h"
#include "test.h"

#include <linux/filter.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>

TEST(test_addresses)
{
    static const struct {
        const char *address;
        int result;
    } rows[] = {
        {"127.0.0.1:0", 0},
        {"127.0.0.1", -EBADMSG},
        {"127.0.0.1:", -EBADMSG},
        {"127.0.0.1:65536", -EBADMSG},
        {"127.0.0.1:1 ", -EBADMSG},
        {"localhost:80", -EBADMSG},
        {"::1:80", -EBADMSG},
        {"[::1:80", -EBADMSG},
        {"[]:80", -EBADMSG},
        {":80", -EBADMSG},
        {"", -EBADMSG},
        {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa:80", -EBADMSG},
        {"192.0.2.1:0", -EADDRNOTAVAIL},
    };
    size_t before = test_open_fds();

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct error err = {0};
        int fd = -1;
        assert_row(rows[i].address, listener_open(rows[i].address, &fd, &err) == rows[i].result);
        close_fd(&fd);
        assert_int_equal(test_open_fds(), before);
    }
}

TEST(test_in_use)
{
    struct error err = {0};
    char address[LISTENER_PATH_SIZE];
    int first = -1;
    int second = -1;

    assert_int_equal(listener_open("127.0.0.1:0", &first, &err), 0);
    listener_describe(first, address, sizeof address);
    assert_int_equal(strncmp(address, "127.0.0.1:", 10), 0);
    assert_string_not_equal(address, "127.0.0.1:0");
    assert_int_equal(listener_open(address, &second, &err), -EADDRINUSE);
    assert_non_null(strstr(err.message, address));
    close_fd(&first);
}

TEST(test_unix)
{
    char folder[] = "/tmp/hutch-listener-XXXXXX";
    char path[64];
    char described[LISTENER_PATH_SIZE];
    struct error err = {0};
    struct stat st;
    int first = -1;
    int second = -1;

    assert_non_null(mkdtemp(folder));
    (void)snprintf(path, sizeof path, "%s/sock", folder);
    assert_int_equal(listener_open_unix(path, 4321, &first, &err), 0);
    listener_describe(first, described, sizeof described);
    assert_string_equal(described, path);
    assert_return_code(stat(path, &st), errno);
    assert_int_equal(st.st_mode & 07777, 0660);
    assert_int_equal(st.st_gid, 4321);
    assert_int_equal(listener_open_unix(path, 0, &second, &err), -EADDRINUSE);
    close_fd(&first);
    assert_int_equal(listener_open_unix(path, 0, &second, &err), 0);
    close_fd(&second);
    assert_return_code(unlink(path), errno);
    assert_return_code(mkdir(path, 0700), errno);
    assert_int_equal(listener_open_unix(path, 0, &second, &err), -EEXIST);
    assert_int_equal(listener_open_unix("relative", 0, &second, &err), -ENAMETOOLONG);
    assert_return_code(rmdir(path), errno);
    assert_return_code(rmdir(folder), errno);
}

enum { SHUT_DOWN, FILTERED, TIED, FAR_AWAY, SMALL, IMPATIENT, SPOILED_COUNT };

static void spoil(int fd, int how)
{
    struct sock_filter drop = BPF_STMT(BPF_RET | BPF_K, 0);
    struct sock_fprog program = {.len = 1, .filter = &drop};
    int r = 0;

    switch (how) {
    case SHUT_DOWN:
        r = shutdown(fd, SHUT_RDWR);
        break;
    case FILTERED:
        r = setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program);
        break;
    case TIED:
        r = setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, "lo", 3);
        break;
    case FAR_AWAY:
        r = setsockopt(fd, IPPROTO_IP, IP_MINTTL, &(int){255}, sizeof(int));
        break;
    case SMALL:
        r = setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &(int){1}, sizeof(int));
        break;
    default:
        r = setsockopt(fd, IPPROTO_TCP, TCP_DEFER_ACCEPT, &(int){1000}, sizeof(int));
    }
    assert_return_code(r, errno);
}

TEST(test_sound)
{
    static const char *const addresses[] = {"127.0.0.1:0", "[::1]:0"};
    char address[LISTENER_PATH_SIZE];
    struct error err = {0};
    size_t before = test_open_fds();

    for (size_t i = 0; i < COUNT(addresses); i++) {
        for (int how = 0; how < SPOILED_COUNT; how++) {
            int fd = -1;
            if (listener_open(addresses[i], &fd, &err) < 0 || (i == 1 && how == FAR_AWAY)) {
                close_fd(&fd);
                continue;
            }
            listener_describe(fd, address, sizeof address);
            assert_true(listener_is_sound(fd, address));
            /* As the gateway does. */
            assert_return_code(listen(fd, 128), errno);
            assert_true(listener_is_sound(fd, address));
            assert_false(listener_is_sound(fd, addresses[i]));
            spoil(fd, how);
            assert_row(addresses[i], !listener_is_sound(fd, address));
            close_fd(&fd);
        }
    }
    assert_false(listener_is_sound(-1, "127.0.0.1:80"));
    assert_int_equal(test_open_fds(), before);
}

TEST(test_sound_unix)
{
    char folder[] = "/tmp/hutch-listener-XXXXXX";
    char path[64];
    struct error err = {0};
    int fd = -1;

    assert_non_null(mkdtemp(folder));
    (void)snprintf(path, sizeof path, "%s/sock", folder);
    for (int how = SHUT_RD; how <= SHUT_RDWR; how++) {
        if (how == SHUT_WR) /* which means nothing to one that listens */
            continue;
        assert_int_equal(listener_open_unix(path, 0, &fd, &err), 0);
        assert_true(listener_is_sound(fd, path));
        assert_return_code(shutdown(fd, how), errno);
        assert_false(listener_is_sound(fd, path));
        close_fd(&fd);
    }
    assert_int_equal(listener_open_unix(path, 0, &fd, &err), 0);
    spoil(fd, SMALL);
    assert_false(listener_is_sound(fd, path));
    close_fd(&fd);
    assert_return_code(unlink(path), errno);
    assert_return_code(rmdir(folder), errno);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_addresses), cmocka_unit_test(test_in_use),
                                       cmocka_unit_test(test_unix), cmocka_unit_test(test_sound),
                                       cmocka_unit_test(test_sound_unix)};

    return cmocka_run_group_tests_name("keeper/listener", tests, NULL, NULL);
}
