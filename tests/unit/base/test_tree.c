#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/tree.h"
#include "test.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum { EXCHANGE = 2, FILES = 8, SECONDS = 2 };

static char place[] = "/tmp/hutch-tree-XXXXXX";

static void make_file(int dir, const char *name)
{
    _cleanup_fd_ int fd = openat(dir, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

    assert_return_code(fd, errno);
}

static int make_folder(int dir, const char *name)
{
    if (mkdirat(dir, name, 0755) < 0)
        assert_int_equal(errno, EEXIST);
    int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_return_code(fd, errno);
    return fd;
}

static int set_up(void **state)
{
    (void)state;
    return mkdtemp(place) != NULL && chdir(place) == 0 ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    return chdir("/") < 0 || rmdir(place) < 0 ? -1 : 0;
}

TEST(test_all)
{
    _cleanup_fd_ int outer = make_folder(AT_FDCWD, "outer");
    _cleanup_fd_ int inner = make_folder(outer, "inner");

    make_file(inner, "file");
    make_file(outer, "file");
    assert_return_code(symlinkat("/nowhere", inner, "dangling"), errno);
    make_file(AT_FDCWD, "beside");
    tree_remove(AT_FDCWD, "outer");
    assert_int_equal(access("outer", F_OK), -1);
    tree_remove(AT_FDCWD, "outer"); /* once more */
    assert_return_code(access("beside", F_OK), errno);
    tree_remove(AT_FDCWD, "beside");
    assert_int_equal(access("beside", F_OK), -1);
}

static void name_file(int i, char name[16])
{
    (void)snprintf(name, 16, "x%d", i);
}

/* One who may write in the tree has a folder of his and a symlink to another's change places all the time. */
static _Noreturn void swap(void)
{
    int tree = open("tree", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) {
        if (syscall(SYS_renameat2, tree, "one", tree, "other", EXCHANGE) < 0) {
            (void)close(tree);
            tree = open("tree", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        }
    }
}

static void fill(int tree)
{
    char name[16];
    _cleanup_fd_ int one = make_folder(tree, "one");

    for (int i = 0; i < FILES; i++) {
        name_file(i, name);
        make_file(one, name);
    }
    assert_return_code(symlinkat("../victim", tree, "other"), errno);
}

TEST(test_swapped)
{
    char name[16];
    uint64_t end_ns = clock_now_ns() + SECONDS * 1000000000ULL;
    _cleanup_fd_ int victim = make_folder(AT_FDCWD, "victim");

    for (int i = 0; i < FILES; i++) {
        name_file(i, name);
        make_file(victim, name);
    }
    pid_t pid = fork();
    if (pid == 0)
        swap();
    while (clock_now_ns() < end_ns) {
        _cleanup_fd_ int tree = make_folder(AT_FDCWD, "tree");
        fill(tree);
        (void)usleep(500);
        for (int i = 0; i < 100 && access("tree", F_OK) == 0; i++)
            tree_remove(AT_FDCWD, "tree");
        assert_int_equal(access("tree", F_OK), -1);
    }
    (void)kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    for (int i = 0; i < FILES; i++) {
        name_file(i, name);
        assert_return_code(faccessat(victim, name, F_OK, 0), errno);
    }
    tree_remove(AT_FDCWD, "victim");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_all), cmocka_unit_test(test_swapped)};

    return cmocka_run_group_tests_name("base/tree", tests, set_up, tear_down);
}
