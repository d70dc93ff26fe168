#include "base/cleanup.h"
#include "keeper/mnt.h"
#include "keeper/userns.h"
#include "test.h"

#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

/* Behind ".." the kernel answers EAGAIN while anything on the machine is being mounted or renamed (openat2(2)). */
#define PATIENTLY(call)                                                                                                \
    ({                                                                                                                 \
        int answer;                                                                                                    \
        do                                                                                                             \
            answer = (call);                                                                                           \
        while (answer == -EAGAIN);                                                                                     \
        answer;                                                                                                        \
    })

/* A folder with a/b, a file, and symlinks out of it and within it. */
static int make_tree(void)
{
    int tree = test_folder();

    assert_return_code(mkdirat(tree, "a", 0755), errno);
    assert_return_code(mkdirat(tree, "a/b", 0755), errno);
    test_write(tree, "file", "");
    assert_return_code(symlinkat("/", tree, "out"), errno);
    assert_return_code(symlinkat("a", tree, "in"), errno);
    return tree;
}

static const struct {
    const char *path;
    int folder; /* what opening it as a folder gives */
    int target; /* what attaching to it gives */
} paths[] = {
    {"a", 0, 0},
    {"a/b", 0, 0},
    {"file", -ENOTDIR, -EINVAL},
    {"missing", -ENOENT, -ENOENT},
    {"out", -ELOOP, -EINVAL}, /* the link itself, which is no folder */
    {"out/etc", -ELOOP, -ELOOP},
    {"in", -ELOOP, -EINVAL},
    {"in/b", -ELOOP, -ELOOP},
    {"..", -EXDEV, -EXDEV},
    {"a/../..", -EXDEV, -EXDEV},
    {"/etc", -EXDEV, -EXDEV},
};

TEST(test_open_folder)
{
    int tree = make_tree();

    for (size_t i = 0; i < COUNT(paths); i++) {
        int fd = PATIENTLY(mnt_open_folder(tree, paths[i].path));
        assert_row(paths[i].path, paths[i].folder < 0 ? fd == paths[i].folder : fd >= 0);
        cleanup_fd(&fd);
    }
    (void)close(tree);
}

/* Only what is attached somewhere can be attached to. */
TEST(test_attach)
{
    int tree = make_tree();

    assert_return_code(sys_move_mount(tree, "", AT_FDCWD, "/run", MOVE_MOUNT_F_EMPTY_PATH), errno);
    for (size_t i = 0; i < COUNT(paths); i++) {
        _cleanup_fd_ int mount = -1;
        struct stat st;
        struct stat root;
        assert_int_equal(mnt_new("tmpfs", NULL, 0, 0, &mount), 0);
        assert_row(paths[i].path, PATIENTLY(mnt_attach(mount, tree, paths[i].path)) == paths[i].target);
        if (paths[i].target == 0) {
            assert_return_code(fstatat(tree, paths[i].path, &st, 0), errno);
            assert_return_code(fstat(mount, &root), errno);
            assert_row(paths[i].path, st.st_dev == root.st_dev);
            char attached[64];
            (void)snprintf(attached, sizeof attached, "/run/%s", paths[i].path);
            assert_return_code(sys_umount2(attached, SYS_UMOUNT_DETACH), errno);
        }
    }
    (void)close(tree);
    assert_return_code(sys_umount2("/run", SYS_UMOUNT_DETACH), errno);
}

TEST(test_new)
{
    static const struct mnt_option options[] = {{"size", "64k"}, {"noswap", NULL}};
    static const struct mnt_option unknown[] = {{"no-such-option", "1"}};
    struct statvfs st;
    int fd = -1;

    assert_int_equal(mnt_new("tmpfs", options, 1, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOEXEC, &fd), 0);
    assert_return_code(fstatvfs(fd, &st), errno);
    assert_int_equal(st.f_blocks * st.f_frsize, 65536);
    assert_int_equal(st.f_flag & (ST_RDONLY | ST_NOEXEC | ST_NOSUID), ST_RDONLY | ST_NOEXEC);
    assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
    (void)close(fd);
    size_t open_before = test_open_fds();
    assert_int_equal(mnt_new("tmpfs", unknown, 1, 0, &fd), -EINVAL);
    assert_int_equal(mnt_new("no-such-type", NULL, 0, 0, &fd), -ENODEV);
    assert_int_equal(test_open_fds(), open_before);
}

/* Changing the copy leaves the mount as it is. */
TEST(test_copy)
{
    struct statvfs st;
    int copy = -1;

    assert_int_equal(mnt_copy(AT_FDCWD, "/run", MOUNT_ATTR_RDONLY, &copy), 0);
    assert_return_code(fstatvfs(copy, &st), errno);
    assert_int_equal(st.f_flag & ST_RDONLY, ST_RDONLY);
    assert_return_code(statvfs("/run", &st), errno);
    assert_int_equal(st.f_flag & ST_RDONLY, 0);
    assert_int_equal(mkdirat(copy, "x", 0755), -1);
    assert_int_equal(errno, EROFS);
    (void)close(copy);
    assert_int_equal(mnt_copy(AT_FDCWD, "/run/missing", 0, &copy), -ENOENT);
}

TEST(test_make_folders)
{
    static char too_long[5000];
    struct stat st;
    int tree = make_tree();

    assert_int_equal(mnt_make_folders(tree, "x/y/z"), 0);
    assert_int_equal(mnt_make_folders(tree, "x/y/z"), 0);
    assert_return_code(fstatat(tree, "x/y/z", &st, 0), errno);
    assert_true(S_ISDIR(st.st_mode));
    assert_int_equal(st.st_mode & 0777, 0755);
    assert_int_equal(mnt_make_folders(tree, "file/x"), -ENOTDIR);
    memset(too_long, 'x', sizeof too_long - 1);
    assert_int_equal(mnt_make_folders(tree, too_long), -ENAMETOOLONG);
    (void)close(tree);
}

/* A mapped copy of some folder. A tmpfs can be mapped since Linux 6.3, the file system of /var/tmp,
 * unless it is an overlay, since long before. */
static int map_copy(int userns, const char **ret_folder)
{
    static const char *const folders[] = {"/run", "/var/tmp"};
    int copy = -1;

    for (size_t i = 0; i < COUNT(folders); i++) {
        assert_int_equal(mnt_copy(AT_FDCWD, folders[i], 0, &copy), 0);
        if (mnt_idmap(copy, userns) == 0) {
            *ret_folder = folders[i];
            return copy;
        }
        assert_int_equal(errno, EINVAL);
        (void)close(copy);
    }
    fail_msg("neither a tmpfs nor /var/tmp can be mapped here");
    return -1;
}

/* Through the mapped copy root's files are those of the id that stands for it. */
TEST(test_idmap)
{
    struct stat st;
    struct error err;
    char name[32];
    const char *folder = NULL;
    int userns = -1;

    assert_int_equal(userns_new((struct userns_map){0, 131072, 10}, (struct userns_map){0, 196608, 10}, &userns, &err),
                     0);
    int copy = map_copy(userns, &folder);
    int dir = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    (void)snprintf(name, sizeof name, "hutch-test-%d", getpid());
    test_write(dir, name, "");
    int r = fstatat(copy, name, &st, 0);
    (void)unlinkat(dir, name, 0);
    assert_return_code(r, errno);
    assert_int_equal(st.st_uid, 131072);
    assert_int_equal(st.st_gid, 196608);
    (void)close(dir);
    (void)close(copy);
    (void)close(userns);
    assert_true(userns_new((struct userns_map){0, 0, 0}, (struct userns_map){0, 0, 1}, &userns, &err) < 0);
    assert_int_equal(err.code, ERROR_SYSTEM);
}

static int hide_run(void **state)
{
    (void)state;
    test_hide("/run");
    (void)umask(022);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_open_folder), cmocka_unit_test(test_attach),       cmocka_unit_test(test_new),
        cmocka_unit_test(test_copy),        cmocka_unit_test(test_make_folders), cmocka_unit_test(test_idmap),
    };
    return cmocka_run_group_tests_name("keeper/mnt", tests, hide_run, NULL);
}
