#include "base/cleanup.h"
#include "base/sys.h"
#include "cli/doctor/folder.h"
#include "cli/doctor/nest.h"
#include "cli/doctor/probes.h"
#include "keeper/dev.h"
#include "keeper/mnt.h"
#include "keeper/proc.h"
#include "keeper/userns.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#define SCRATCH "/run" /* what a new file system is mounted over, in a mount namespace of ours */

/* A tmpfs of our own as the working folder. The name of the call that failed, with errno, or NULL. */
static const char *enter_tmpfs(void)
{
    static const struct mnt_option options[] = {{"size", "1m"}, {"mode", "0755"}};
    _cleanup_fd_ int fd = -1;

    if (sys_mount(NULL, "/", NULL, MS_REC | MS_PRIVATE) < 0)
        return "making mounts private";
    int r = mnt_new("tmpfs", options, 2, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, &fd);
    errno = -r;
    if (r < 0)
        return "mounting a tmpfs";
    if (sys_move_mount(fd, "", AT_FDCWD, SCRATCH, MOVE_MOUNT_F_EMPTY_PATH) < 0 || fchdir(fd) < 0)
        return "attaching a tmpfs";
    return NULL;
}

/* Each call for itself, so that the one that is missing is named. */
static const char *try_calls(void)
{
    struct mount_attr read_only = {.attr_set = MOUNT_ATTR_RDONLY};
    _cleanup_fd_ int fs = sys_fsopen("tmpfs", FSOPEN_CLOEXEC);

    if (fs < 0)
        return "fsopen";
    if (sys_fsconfig(fs, FSCONFIG_SET_STRING, "size", "64k", 0) < 0 ||
        sys_fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
        return "fsconfig";
    _cleanup_fd_ int mount = sys_fsmount(fs, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID);
    if (mount < 0)
        return "fsmount";
    _cleanup_fd_ int copy = sys_open_tree(AT_FDCWD, "/usr", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
    if (copy < 0)
        return "open_tree";
    if (sys_mount_setattr(copy, "", AT_EMPTY_PATH, &read_only) < 0)
        return "mount_setattr";
    if (unshare(CLONE_NEWNS) < 0 || sys_mount(NULL, "/", NULL, MS_REC | MS_PRIVATE) < 0)
        return "making mounts private";
    return sys_move_mount(mount, "", AT_FDCWD, SCRATCH, MOVE_MOUNT_F_EMPTY_PATH) < 0 ? "move_mount" : NULL;
}

void probe_mount_api(struct probe *probe)
{
    const char *failed = try_calls();

    if (failed != NULL)
        finding_no(probe, errno, "%s", failed);
    else
        finding_yes(probe, "fsopen, fsconfig, fsmount, open_tree, move_mount, mount_setattr");
}

void probe_devices(struct probe *probe)
{
    struct error err = {0};
    _cleanup_fd_ int dev = -1;

    if (dev_new(&dev, &err) < 0) {
        finding_no(probe, 0, "%s", err.message);
        return;
    }
    _cleanup_fd_ int null = openat(dev, "null", O_RDWR | O_CLOEXEC);
    if (null < 0)
        finding_no(probe, errno, "opening a device node on a new tmpfs");
    else
        finding_yes(probe, "device nodes can be made and opened");
}

/* A copy of the state folder's mount, which layers would lie on, and what was copied. */
static int copy_state(struct probe *probe, int *ret_fd)
{
    char path[FOLDER_PATH_SIZE];
    _cleanup_fd_ int folder = folder_nearest(probe->state, path);

    if (folder < 0) {
        finding_no(probe, -folder, "opening %s", probe->state);
        return folder;
    }
    int r = mnt_copy(folder, "", MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_RDONLY, ret_fd);
    if (r < 0)
        finding_no(probe, -r, "copying the mount of %s", path);
    return r;
}

/* Show the copy's ids as the child has them. */
static int idmap_for(struct probe *probe, int fd, const struct nest *nest)
{
    _cleanup_fd_ int userns = userns_open(nest->pid);
    int r = userns < 0 ? userns : mnt_idmap(fd, userns);

    if (r < 0)
        finding_no(probe, -r, "%s holds %s, which can't be idmapped", folder_file_system(fd), probe->state);
    return r;
}

static void do_nothing(void *context)
{
    (void)context;
}

void probe_idmap(struct probe *probe)
{
    struct nest nest;
    _cleanup_fd_ int fd = -1;

    if (copy_state(probe, &fd) < 0)
        return;
    int r = nest_start(0, do_nothing, NULL, &nest);
    if (r < 0) {
        finding_no(probe, -r, "cloning into a user namespace");
        return;
    }
    if (idmap_for(probe, fd, &nest) == 0)
        finding_yes(probe, "%s holds %s and can be idmapped", folder_file_system(fd), probe->state);
    nest_cancel(&nest);
}

struct layer {
    struct probe *probe;
    int fd;
    uid_t owner; /* on the disk, and so inside, where it is mapped to */
};

static void mount_overlay(void *context)
{
    static const struct mnt_option options[] = {{"lowerdir", "l:e"}, {"userxattr", NULL}};
    const struct layer *layer = context;
    struct probe *probe = layer->probe;
    struct stat st;
    _cleanup_fd_ int fd = -1;
    const char *failed = enter_tmpfs();

    if (failed == NULL && (mkdir("l", 0755) < 0 || mkdir("e", 0755) < 0 ||
                           sys_move_mount(layer->fd, "", AT_FDCWD, "l", MOVE_MOUNT_F_EMPTY_PATH) < 0))
        failed = "attaching an idmapped layer";
    if (failed != NULL) {
        finding_no(probe, errno, "%s", failed);
        return;
    }
    int r = mnt_new("overlay", options, 2, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_RDONLY, &fd);
    if (r < 0) {
        finding_no(probe, -r, "mounting it in a user namespace over an idmapped layer");
        if (r != -ENODEV)
            finding_mend(probe, "boot Linux 6.1 or later");
    } else if (fstat(fd, &st) < 0 || st.st_uid != layer->owner)
        finding_no(probe, 0, "a folder of user %u's shows up as user %u's", layer->owner, st.st_uid);
    else
        finding_yes(probe, "mounted in a user namespace over an idmapped layer, with userxattr");
}

/* Run it in user, mount and pid namespaces; what it has to say it says itself. */
static void run_nested(struct probe *probe, unsigned long flags, void (*inside)(void *context), struct layer *layer)
{
    struct nest nest;
    int r = nest_start(flags, inside, layer, &nest);

    if (r < 0) {
        finding_no(probe, -r, "cloning into new namespaces");
        return;
    }
    if (layer->fd >= 0 && idmap_for(probe, layer->fd, &nest) < 0) {
        nest_cancel(&nest);
        return;
    }
    r = nest_finish(&nest);
    if (r < 0 && probe->finding->state == FINDING_UNKNOWN)
        finding_no(probe, 0, "the process in the new namespaces ended early");
}

void probe_overlay(struct probe *probe)
{
    struct layer layer = {.probe = probe, .fd = -1};
    struct stat st;

    if (copy_state(probe, &layer.fd) == 0) {
        layer.owner = fstat(layer.fd, &st) == 0 ? st.st_uid : 0;
        run_nested(probe, CLONE_NEWNS, mount_overlay, &layer);
    }
    close_fd(&layer.fd);
}

static void mount_tmpfs(void *context)
{
    const struct layer *layer = context;
    const char *failed = enter_tmpfs();

    if (failed != NULL)
        finding_no(layer->probe, errno, "%s", failed);
    else
        finding_yes(layer->probe, "mounted in a user namespace, with a size limit");
}

void probe_tmpfs(struct probe *probe)
{
    struct layer layer = {.probe = probe, .fd = -1};

    run_nested(probe, CLONE_NEWNS, mount_tmpfs, &layer);
}

static void set_attribute(void *context)
{
    const struct layer *layer = context;
    const char *failed = enter_tmpfs();

    if (failed == NULL && setxattr(".", "user.overlay.probe", "y", 1, 0) < 0)
        failed = "setting a user.* attribute on a tmpfs";
    if (failed != NULL)
        finding_no(layer->probe, errno, "%s", failed);
    else
        finding_yes(layer->probe, "user.* attributes on a tmpfs");
}

void probe_tmpfs_attributes(struct probe *probe)
{
    struct layer layer = {.probe = probe, .fd = -1};

    run_nested(probe, CLONE_NEWNS, set_attribute, &layer);
}

static void mount_proc(void *context)
{
    const struct layer *layer = context;
    _cleanup_fd_ int fd = -1;
    int r = proc_new(-1, &fd);

    if (r < 0)
        finding_no(layer->probe, -r, "mounting one for a new pid namespace");
    else
        finding_yes(layer->probe, "a new one, with hidepid");
}

/* As the keeper does it where the kernel can. */
static int make_proc_outside(void)
{
    struct nest nest;
    _cleanup_fd_ int fd = -1;
    int r = nest_start(CLONE_NEWPID, do_nothing, NULL, &nest);

    if (r < 0)
        return r;
    _cleanup_fd_ int pidfd = (int)syscall(SYS_pidfd_open, nest.pid, 0);
    _cleanup_fd_ int pidns = pidfd >= 0 ? proc_pidns_of(pidfd) : -errno;
    r = pidns < 0 ? pidns : proc_new(pidns, &fd);
    nest_cancel(&nest);
    return r;
}

void probe_proc(struct probe *probe)
{
    struct layer layer = {.probe = probe, .fd = -1};
    int r = make_proc_outside();

    if (r == 0)
        finding_yes(probe, "a new one, made from outside its pid namespace, with hidepid");
    else if (r != -EOPNOTSUPP)
        finding_no(probe, -r, "mounting one from outside its pid namespace");
    else
        run_nested(probe, CLONE_NEWNS | CLONE_NEWPID, mount_proc, &layer);
}
