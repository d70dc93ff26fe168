#include "keeper/listener.h"

#include "base/cleanup.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_addresses), cmocka_unit_test(test_in_use),
                                       cmocka_unit_test(test_unix)};

    return cmocka_run_group_tests_name("keeper/listener", tests, NULL, NULL);
}
