/*
 * test: what every unit test includes: cmocka, and the few things that several of them need.
 *
 * They run as root, as Hutch does. Folders they need are file systems of their own that nobody else sees and that go
 * with the descriptor or the process, so that tests may run beside each other and beside real sandboxes.
 */
#pragma once

#include "base/sys.h"

#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif

#define COUNT(array) (sizeof(array) / sizeof *(array))

#define TEST(name) static void name(void **state __attribute__((unused)))

/* An assertion about one row of a table, which a failure names. */
#define assert_row(row, condition)                                                                                     \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            fail_msg("%s: %s", (row), #condition);                                                                     \
    } while (0)

/* How many descriptors this process has open. */
static inline size_t test_open_fds(void)
{
    DIR *folder = opendir("/proc/self/fd");
    size_t count = 0;

    assert_non_null(folder);
    while (readdir(folder) != NULL)
        count++;
    (void)closedir(folder);
    return count;
}

/* An empty folder without a path, for functions that take a folder's descriptor. */
static inline int test_folder(void)
{
    int fs = sys_fsopen("tmpfs", FSOPEN_CLOEXEC);

    assert_true(fs >= 0);
    assert_return_code(sys_fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0), errno);
    int fd = sys_fsmount(fs, FSMOUNT_CLOEXEC, 0);
    assert_true(fd >= 0);
    (void)close(fs);
    return fd;
}

/* From here on this process has an empty folder of its own at `path`. */
static inline void test_hide(const char *path)
{
    assert_return_code(unshare(CLONE_NEWNS), errno);
    assert_return_code(sys_mount(NULL, "/", NULL, MS_REC | MS_PRIVATE), errno);
    assert_return_code(sys_mount("tmpfs", path, "tmpfs", 0), errno);
}

/* A file with this text. */
static inline void test_write(int dir, const char *path, const char *text)
{
    int fd = openat(dir, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    (void)close(fd);
}

static inline void test_sockets(int ends[2])
{
    assert_return_code(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), errno);
}

/*
 * After a command was started. Until execve it runs on our stack, in frames that never return, and AddressSanitizer
 * would take what they used for theirs still.
 */
static inline void test_reclaim_stack(void)
{
#ifdef __SANITIZE_ADDRESS__
    enum { MORE_THAN_IT_USED = 65536 };
    __asan_unpoison_memory_region((char *)__builtin_frame_address(0) - MORE_THAN_IT_USED, MORE_THAN_IT_USED);
#endif
}
