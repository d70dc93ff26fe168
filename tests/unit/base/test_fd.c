#include "base/fd.h"
#include "test.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { MUCH = 1 << 20, KERNEL_FDS_MAX = 253 };

static uint8_t byte_at(size_t i)
{
    return (uint8_t)(i * 7 + i / 251);
}

/* More than a pipe holds, so that both sides see short counts. */
TEST(test_whole)
{
    int ends[2];
    uint8_t *data = malloc(MUCH + 1);

    assert_non_null(data);
    for (size_t i = 0; i < MUCH; i++)
        data[i] = byte_at(i);
    assert_return_code(pipe2(ends, O_CLOEXEC), errno);
    pid_t pid = fork();
    if (pid == 0) {
        (void)close(ends[0]);
        _exit(fd_write_all(ends[1], data, MUCH) == 0 ? 0 : 1);
    }
    (void)close(ends[1]);
    memset(data, 0, MUCH + 1);
    assert_int_equal(fd_read_all(ends[0], data, 10), 10);
    assert_int_equal(fd_read_all(ends[0], data + 10, MUCH - 9), MUCH - 10);
    for (size_t i = 0; i < MUCH; i++)
        assert_int_equal(data[i], byte_at(i));
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    (void)close(ends[0]);
    free(data);
}

TEST(test_whole_fails)
{
    int ends[2];
    char byte;

    assert_return_code(pipe2(ends, O_CLOEXEC | O_NONBLOCK), errno);
    assert_int_equal(fd_read_all(ends[0], &byte, 1), -EAGAIN);
    (void)close(ends[0]);
    assert_int_equal(fd_write_all(ends[1], "x", 1), -EPIPE);
    (void)close(ends[1]);
    assert_int_equal(fd_write_all(-1, "x", 1), -EBADF);
    assert_int_equal(fd_read_all(-1, &byte, 1), -EBADF);
    assert_int_equal(fd_write_all(-1, NULL, 0), 0);
}

TEST(test_files)
{
    char text[32];
    int dir = test_folder();

    test_write(dir, "file", "");
    assert_return_code(symlinkat("file", dir, "link"), errno);
    assert_int_equal(fd_write_file(dir, "file", "hello"), 0);
    assert_int_equal(fd_read_file(dir, "file", text, sizeof text), 5);
    assert_string_equal(text, "hello");
    assert_int_equal(fd_read_file(dir, "file", text, 6), 5);
    assert_int_equal(fd_read_file(dir, "file", text, 5), -EFBIG);
    assert_int_equal(fd_read_file(dir, "file", text, 0), -EFBIG);
    assert_int_equal(fd_write_number(dir, "file", UINT64_MAX), 0);
    assert_int_equal(fd_read_file(dir, "file", text, sizeof text), 20);
    assert_string_equal(text, "18446744073709551615");

    assert_int_equal(fd_write_file(dir, "missing", "x"), -ENOENT);
    assert_int_equal(fd_read_file(dir, "missing", text, sizeof text), -ENOENT);
    assert_int_equal(fd_write_file(dir, "link", "x"), -ELOOP);
    assert_int_equal(fd_read_file(dir, "link", text, sizeof text), -ELOOP);
    assert_int_equal(fd_read_file(dir, ".", text, sizeof text), -EISDIR);
    (void)close(dir);
}

/* The same file as fd 0, again and again. */
static void repeat(int *fds, size_t count)
{
    for (size_t i = 0; i < count; i++)
        fds[i] = STDIN_FILENO;
}

TEST(test_pass)
{
    static const size_t counts[] = {0, 1, 2, FD_PASS_MAX};
    int ends[2];
    struct stat sent;

    test_sockets(ends);
    assert_return_code(fstat(STDIN_FILENO, &sent), errno);
    for (size_t i = 0; i < COUNT(counts); i++) {
        int fds[FD_PASS_MAX];
        char data[8];
        size_t count = 99;
        size_t open_before = test_open_fds();
        repeat(fds, FD_PASS_MAX);
        assert_int_equal(fd_send(ends[0], "packet", 6, fds, counts[i]), 0);
        assert_int_equal(fd_receive(ends[1], data, sizeof data, fds, counts[i], &count), 6);
        assert_memory_equal(data, "packet", 6);
        assert_int_equal(count, counts[i]);
        assert_int_equal(test_open_fds(), open_before + count);
        for (size_t k = 0; k < count; k++) {
            struct stat received;
            assert_return_code(fstat(fds[k], &received), errno);
            assert_int_equal(received.st_ino, sent.st_ino);
            assert_int_equal(fcntl(fds[k], F_GETFD), FD_CLOEXEC);
        }
        fd_close_many(fds, count);
        for (size_t k = 0; k < count; k++)
            assert_int_equal(fds[k], -1);
        assert_int_equal(test_open_fds(), open_before);
    }
    fd_close_many(ends, 2);
}

/* As a peer would that does not keep to our maximum. */
static void send_raw(int socket, size_t length, size_t fd_count)
{
    static const char data[64];
    static char control[CMSG_SPACE(sizeof(int) * KERNEL_FDS_MAX)] __attribute__((aligned(16)));
    struct iovec part = {.iov_base = (void *)(uintptr_t)data, .iov_len = length};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};

    if (fd_count > 0) {
        message.msg_control = control;
        message.msg_controllen = CMSG_SPACE(sizeof(int) * fd_count);
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        *header = (struct cmsghdr){
            .cmsg_len = CMSG_LEN(sizeof(int) * fd_count), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
        repeat((int *)(void *)CMSG_DATA(header), fd_count);
    }
    assert_int_equal(sendmsg(socket, &message, 0), length);
}

TEST(test_too_much)
{
    static const struct {
        const char *name;
        size_t length;
        size_t fd_count;
        size_t fd_max;
    } rows[] = {
        {"a packet that was cut", 17, 0, 0},
        {"a packet that was cut, with descriptors", 17, 3, FD_PASS_MAX},
        {"a descriptor for one who takes none", 16, 1, 0},
        {"a descriptor too many", 16, 4, 3},
        {"more than we have room for", 16, FD_PASS_MAX + 1, FD_PASS_MAX},
        {"as many as the kernel takes", 16, KERNEL_FDS_MAX, FD_PASS_MAX},
    };
    int ends[2];
    int fds[FD_PASS_MAX + 1];

    test_sockets(ends);
    for (size_t i = 0; i < COUNT(rows); i++) {
        char data[16];
        size_t open_before = test_open_fds();
        send_raw(ends[0], rows[i].length, rows[i].fd_count);
        assert_row(rows[i].name, fd_receive(ends[1], data, sizeof data, fds, rows[i].fd_max, NULL) == -EMSGSIZE);
        assert_row(rows[i].name, test_open_fds() == open_before);
    }
    repeat(fds, FD_PASS_MAX + 1);
    assert_int_equal(fd_send(ends[0], "x", 1, fds, FD_PASS_MAX + 1), -EMSGSIZE);
    fd_close_many(ends, 2);
}

TEST(test_ends)
{
    static const uint8_t data[32768];
    int ends[2];
    char byte;
    int r;

    test_sockets(ends);
    assert_int_equal(fd_receive(ends[1], &byte, 1, NULL, 0, NULL), -EAGAIN);
    do
        r = fd_send(ends[0], data, sizeof data, NULL, 0);
    while (r == 0);
    assert_int_equal(r, -EAGAIN);
    fd_close_many(ends, 2);

    test_sockets(ends);
    (void)close(ends[0]);
    assert_int_equal(fd_receive(ends[1], &byte, 1, NULL, 0, NULL), 0);
    assert_int_equal(fd_send(ends[1], "x", 1, NULL, 0), -EPIPE);
    (void)close(ends[1]);
    assert_int_equal(fd_receive(-1, &byte, 1, NULL, 0, NULL), -EBADF);
}

TEST(test_close_many)
{
    int fds[] = {-1, dup(STDIN_FILENO), -1};
    size_t open_before = test_open_fds();

    fd_close_many(fds, COUNT(fds));
    assert_int_equal(test_open_fds(), open_before - 1);
    assert_int_equal(fds[1], -1);
}

TEST(test_standard)
{
    int saved = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 16);
    size_t before = test_open_fds();

    assert_return_code(saved, errno);
    (void)close(STDOUT_FILENO);
    int r = fd_occupy_standard();
    bool is_open = fcntl(STDOUT_FILENO, F_GETFD) >= 0;
    (void)dup2(saved, STDOUT_FILENO);
    (void)close(saved);
    assert_int_equal(r, 0);
    assert_true(is_open);
    assert_int_equal(fd_occupy_standard(), 0);
    assert_int_equal(test_open_fds(), before - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole),      cmocka_unit_test(test_whole_fails), cmocka_unit_test(test_files),
        cmocka_unit_test(test_pass),       cmocka_unit_test(test_too_much),    cmocka_unit_test(test_ends),
        cmocka_unit_test(test_close_many), cmocka_unit_test(test_standard),
    };
    (void)signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests_name("base/fd", tests, NULL, NULL);
}
