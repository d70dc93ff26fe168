/*
 * Theory of operation. The child starts with a copy of the host's mount table and the descriptors of its spawn. It
 * mounts its disk, W, a tmpfs of its own or the image it was given, over a folder of ours and makes that its working
 * folder. All other mount points are
 * made inside W, and every target is opened by descriptor without following a symlink, so nothing is ever looked up on
 * the host or in a template by a name that a tenant could have prepared:
 *
 *     W/r        where the root overlay is attached; becomes /
 *     W/t        top lower layer: mount points that the template lacks
 *     W/l0..     the template's layers          W/h   the host's /usr          W/e   empty
 *     W/p        the policy layer over /usr, when programs are listed
 *     W/u, W/k   upper and work folder of a writable root
 *     W/d/...    the writable folders, each bound to its place
 *
 * After pivot_root the old table is detached; W lives on through the folders bound from it. All writable space of the
 * sandbox is therefore this one file system with its size and inode limit.
 */
#include "keeper/rootfs.h"

#include "base/cleanup.h"
#include "base/sys.h"
#include "keeper/instance.h"
#include "keeper/mnt.h"
#include "keeper/proc.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>

enum { PATH_SIZE = 4200 };

/* Folders that are writable whatever the root is: where from in W, where to in the root. */
static const struct {
    const char *source;
    const char *target;
    mode_t mode;
    bool owned; /* by the user that commands run as */
} writable[] = {
    {"d/workspace", "workspace", 0755, true},
    {"d/tmp", "tmp", 01777, false},
    {"d/run", "run", 01777, false},
    {"d/home", "home/sandbox", 0755, true},
    {"d/out", "mnt/user-data/outputs", 0755, true},
};

/* -errno of a failed call, with what it was about. */
static int failed(struct rootfs *rootfs, int error, const char *what)
{
    (void)snprintf(rootfs->detail, sizeof rootfs->detail, "%s", what);
    return error;
}

static int call_failed(struct rootfs *rootfs, const char *what)
{
    return failed(rootfs, -errno, what);
}

static int new_tmpfs(const struct spawn *spawn, int *ret_fd)
{
    char size[24];
    char inodes[24];
    const struct mnt_option options[] = {{"size", size}, {"nr_inodes", inodes}, {"mode", "0755"}};

    (void)snprintf(size, sizeof size, "%llu", (unsigned long long)spawn->disk_bytes);
    (void)snprintf(inodes, sizeof inodes, "%llu", (unsigned long long)spawn->disk_inodes);
    return mnt_new("tmpfs", options, 3, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, ret_fd);
}

/* With a list of programs nothing is executed but what lies in /usr. */
static uint64_t no_programs(const struct rootfs *rootfs)
{
    return spawn_is_listed(rootfs->spawn) ? MOUNT_ATTR_NOEXEC : 0;
}

int rootfs_disk(struct rootfs *rootfs)
{
    static const char *const folders[] = {"r", "t", "e", "d"};
    _cleanup_fd_ int own = -1;

    if (sys_mount(NULL, "/", NULL, MS_REC | MS_PRIVATE) < 0)
        return call_failed(rootfs, "making mounts private");
    int r = rootfs->spawn->disk_fd < 0 ? new_tmpfs(rootfs->spawn, &own) : 0;
    if (r < 0)
        return failed(rootfs, r, "tmpfs");
    int fd = own >= 0 ? own : rootfs->spawn->disk_fd;
    /* What is bound from it inherits that. */
    struct mount_attr attr = {.attr_set = no_programs(rootfs)};
    if (attr.attr_set != 0 && sys_mount_setattr(fd, "", AT_EMPTY_PATH, &attr) < 0)
        return call_failed(rootfs, "making the disk noexec");
    if (sys_move_mount(fd, "", AT_FDCWD, INSTANCES_FOLDER, MOVE_MOUNT_F_EMPTY_PATH) < 0 || fchdir(fd) < 0)
        return call_failed(rootfs, "attaching the disk");
    (void)umask(0);
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        if (mkdir(folders[i], 0755) < 0)
            return call_failed(rootfs, folders[i]);
    }
    if (mkdir("d/shm", 01777) < 0)
        return call_failed(rootfs, "d/shm");
    for (size_t i = 0; i < sizeof writable / sizeof *writable; i++) {
        if (mkdir(writable[i].source, writable[i].mode) < 0 ||
            (writable[i].owned && chown(writable[i].source, rootfs->spawn->user, rootfs->spawn->user) < 0))
            return call_failed(rootfs, writable[i].target);
    }
    return 0;
}

/* 1 when a layer has a real folder at this path, 0 when none has anything there. */
static int layers_have_folder(struct rootfs *rootfs, const char *path)
{
    for (size_t i = 0; i < rootfs->spawn->layer_count; i++) {
        int fd = mnt_open_folder(rootfs->spawn->layer_fds[i], path);
        if (fd >= 0) {
            (void)close(fd);
            return 1;
        }
        if (fd != -ENOENT)
            return failed(rootfs, fd, path);
    }
    return 0;
}

static int make_mount_point(struct rootfs *rootfs, const char *target)
{
    char path[PATH_SIZE];
    int r = layers_have_folder(rootfs, target);

    if (r != 0)
        return r < 0 ? r : 0;
    (void)snprintf(path, sizeof path, "t/%s", target);
    r = mnt_make_folders(AT_FDCWD, path);
    return r < 0 ? failed(rootfs, r, target) : 0;
}

/* A host folder's mount point below a writable folder is made there. 1 when that was so. */
static int make_in_writable(struct rootfs *rootfs, const char *guest)
{
    char path[PATH_SIZE];

    for (size_t i = 0; i < sizeof writable / sizeof *writable; i++) {
        size_t length = strlen(writable[i].target);
        if (strncmp(guest, writable[i].target, length) != 0 || (guest[length] != '/' && guest[length] != '\0'))
            continue;
        (void)snprintf(path, sizeof path, "%s%s", writable[i].source, guest + length);
        int r = mnt_make_folders(AT_FDCWD, path);
        return r < 0 ? failed(rootfs, r, guest) : 1;
    }
    return 0;
}

static int make_mount_points(struct rootfs *rootfs)
{
    for (size_t i = 0; i < sizeof writable / sizeof *writable; i++) {
        int r = make_mount_point(rootfs, writable[i].target);
        if (r < 0)
            return r;
    }
    for (const char *dir = NULL; (dir = wire_strv_next(rootfs->spawn->dirs, dir)) != NULL;) {
        const char *guest = dir + 1; /* without its leading slash */
        int r = make_in_writable(rootfs, guest);
        if (r == 0)
            r = make_mount_point(rootfs, guest);
        if (r < 0)
            return r;
    }
    return 0;
}

/* An upper folder needs user.* attributes, which tmpfs has since Linux 6.6; without them removed folders come back. */
static int make_upper(struct rootfs *rootfs)
{
    if (mkdir("u", 0755) < 0 || mkdir("k", 0755) < 0)
        return call_failed(rootfs, "upper");
    if (setxattr("u", "user.overlay.probe", "y", 1, 0) < 0)
        return call_failed(rootfs, "a writable root needs extended attributes on tmpfs (Linux 6.6)");
    return removexattr("u", "user.overlay.probe") < 0 ? call_failed(rootfs, "upper") : 0;
}

static int mount_overlay(const struct mnt_option *options, size_t count, uint64_t attributes, int *ret_fd)
{
    return mnt_new("overlay", options, count, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | (unsigned)attributes, ret_fd);
}

int rootfs_root(struct rootfs *rootfs)
{
    char lower[64] = "t";
    const struct mnt_option options[] = {{"lowerdir", lower}, {"userxattr", NULL}, {"upperdir", "u"}, {"workdir", "k"}};
    bool is_writable = (rootfs->spawn->flags & WIRE_SPAWN_ROOT_RW) != 0;
    size_t used = 1;

    int r = make_mount_points(rootfs);
    if (r == 0 && is_writable)
        r = make_upper(rootfs);
    if (r < 0)
        return r;
    for (size_t i = 0; i < rootfs->spawn->layer_count; i++) {
        char name[4] = {'l', (char)('0' + i), '\0', '\0'};
        if (mkdir(name, 0755) < 0 ||
            sys_move_mount(rootfs->spawn->layer_fds[i], "", AT_FDCWD, name, MOVE_MOUNT_F_EMPTY_PATH) < 0)
            return call_failed(rootfs, "attaching a layer");
        used += (size_t)snprintf(lower + used, sizeof lower - used, ":%s", name);
    }
    r = mount_overlay(options, is_writable ? 4 : 2, (is_writable ? 0 : MOUNT_ATTR_RDONLY) | no_programs(rootfs),
                      &rootfs->root_fd);
    if (r < 0)
        return failed(rootfs, r, "overlay");
    if (sys_move_mount(rootfs->root_fd, "", AT_FDCWD, "r", MOVE_MOUNT_F_EMPTY_PATH) < 0)
        return call_failed(rootfs, "attaching the overlay");
    return 0;
}

/* An overlay rather than a bind: locks and inotify watches on a bind would be shared between sandboxes. */
int rootfs_usr(struct rootfs *rootfs)
{
    const struct mnt_option options[] = {{"lowerdir", spawn_is_listed(rootfs->spawn) ? "p:h" : "h:e"},
                                         {"userxattr", NULL}};
    _cleanup_fd_ int fd = -1;

    if ((rootfs->spawn->flags & WIRE_SPAWN_USR) == 0)
        return 0;
    if (mkdir("h", 0755) < 0 || sys_move_mount(rootfs->spawn->usr_fd, "", AT_FDCWD, "h", MOVE_MOUNT_F_EMPTY_PATH) < 0)
        return call_failed(rootfs, "attaching the host's /usr");
    if (spawn_is_listed(rootfs->spawn) &&
        (mkdir("p", 0755) < 0 ||
         sys_move_mount(rootfs->spawn->policy_fd, "", AT_FDCWD, "p", MOVE_MOUNT_F_EMPTY_PATH) < 0))
        return call_failed(rootfs, "attaching the policy layer");
    int r = mount_overlay(options, 2, MOUNT_ATTR_RDONLY, &fd);
    if (r == 0)
        r = mnt_attach(fd, rootfs->root_fd, "usr");
    return r < 0 ? failed(rootfs, r, "overlay on /usr") : 0;
}

static int bind(struct rootfs *rootfs, const char *source, const char *target, uint64_t attributes)
{
    _cleanup_fd_ int fd = -1;
    int r = mnt_copy(AT_FDCWD, source, attributes, &fd);

    if (r == 0)
        r = mnt_attach(fd, rootfs->root_fd, target);
    return r < 0 ? failed(rootfs, r, target) : 0;
}

int rootfs_writable(struct rootfs *rootfs)
{
    for (size_t i = 0; i < sizeof writable / sizeof *writable; i++) {
        int r = bind(rootfs, writable[i].source, writable[i].target, 0);
        if (r < 0)
            return r;
    }
    return 0;
}

int rootfs_dev(struct rootfs *rootfs, int dev_fd)
{
    int r = mnt_attach(dev_fd, rootfs->root_fd, "dev");

    if (r < 0)
        return failed(rootfs, r, "dev");
    rootfs->dev_fd = dev_fd;
    return bind(rootfs, "d/shm", "dev/shm", MOUNT_ATTR_NOEXEC);
}

/*
 * All sandboxes take their terminals from one count of the machine's (kernel.pty.max, less what it reserves for the
 * host's own mount namespace), and what is written to one is kept in memory that is charged to nobody.
 */
int rootfs_terminals(struct rootfs *rootfs)
{
    static const struct mnt_option options[] = {{"ptmxmode", "0666"}, {"mode", "0620"}, {"gid", "5"}, {"max", "32"}};
    _cleanup_fd_ int fd = -1;

    if ((rootfs->spawn->flags & WIRE_SPAWN_TERMINAL) == 0)
        return 0;
    int r = mnt_new("devpts", options, 4, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, &fd);
    if (r == 0)
        r = mnt_attach(fd, rootfs->root_fd, "dev/pts");
    return r < 0 ? failed(rootfs, r, "devpts") : 0;
}

int rootfs_dirs(struct rootfs *rootfs)
{
    size_t i = 0;

    for (const char *dir = NULL; (dir = wire_strv_next(rootfs->spawn->dirs, dir)) != NULL; i++) {
        int r = mnt_attach(rootfs->spawn->dir_fds[i], rootfs->root_fd, dir + 1);
        if (r < 0)
            return failed(rootfs, r, dir);
    }
    return 0;
}

int rootfs_proc(struct rootfs *rootfs, int made_fd)
{
    int r = 0;

    rootfs->proc_fd = made_fd;
    if (made_fd < 0)
        r = proc_new(-1, &rootfs->proc_fd);
    if (r == 0)
        r = mnt_attach(rootfs->proc_fd, rootfs->root_fd, "proc");
    return r < 0 ? failed(rootfs, r, "proc") : 0;
}

/*
 * Code must not be written into a program that runs: /proc/PID/mem writes even where memory is read-only. Init still
 * has to set its commands' oom_score_adj; it gets a copy of its own, with everything that was mounted over it.
 */
static int lock_proc(struct rootfs *rootfs)
{
    struct mount_attr attr = {.attr_set = MOUNT_ATTR_RDONLY};

    rootfs->init_proc_fd =
        sys_open_tree(rootfs->proc_fd, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH | AT_RECURSIVE);
    if (rootfs->init_proc_fd < 0 || sys_mount_setattr(rootfs->proc_fd, "", AT_EMPTY_PATH, &attr) < 0)
        return call_failed(rootfs, "making /proc read-only");
    return 0;
}

int rootfs_masks(struct rootfs *rootfs, bool is_masked)
{
    struct proc_covers covers = {.null_dir = rootfs->dev_fd, .empty_dir = AT_FDCWD, .empty = "e"};
    const char *place = "";
    int r = is_masked ? 0 : proc_mask(rootfs->proc_fd, &covers, &place);

    if (r == 0)
        r = proc_seal(rootfs->proc_fd, &place);
    if (r < 0)
        return failed(rootfs, r, place);
    return spawn_is_listed(rootfs->spawn) ? lock_proc(rootfs) : 0;
}

int rootfs_pivot(struct rootfs *rootfs)
{
    if (fchdir(rootfs->root_fd) < 0)
        return call_failed(rootfs, "entering the new root");
    if (sys_pivot_root(".", ".") < 0)
        return call_failed(rootfs, "pivot_root");
    if (sys_umount2(".", SYS_UMOUNT_DETACH) < 0)
        return call_failed(rootfs, "detaching the old root");
    if (chdir("/") < 0)
        return call_failed(rootfs, "entering /");
    (void)umask(0022);
    return 0;
}
