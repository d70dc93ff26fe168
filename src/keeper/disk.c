/*
 * Theory of operation. Below the state folder lies one prepared image per size, made by mkfs.ext4; a sandbox's own is
 * a copy of its few blocks of metadata (some 150 KiB for 1 GiB) in a file without a name. The loop device lets go of
 * it by itself when the file system is unmounted. Tenants write files, never the image, so the kernel only ever reads
 * metadata that mkfs.ext4 and the kernel wrote.
 */
#include "keeper/disk.h"

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/sys.h"
#include "keeper/mnt.h"

#include <dirent.h>
#include <linux/loop.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>

enum {
    NAME_SIZE = 64,
    PREPARED_MAX = 64, /* sizes kept ready; one more and all are made anew */
    BLOCK_BYTES = 4096,
    LOOP_ATTEMPTS = 64, /* others take free devices too */
    MKFS_FD = 3,
    SHUT_DOWN_WITHOUT_FLUSH = 2,
};

#define EXT4_SHUT_DOWN _IOR('X', 125, uint32_t)

static const char *const mkfs_places[] = {"/usr/sbin/mkfs.ext4", "/sbin/mkfs.ext4"};

/* All features by name, and none by the host's mke2fs.conf: what Debian 12 has for ext4, but for the journal. */
#define FEATURES                                                                                                       \
    "none,ext_attr,dir_index,filetype,extent,64bit,flex_bg,sparse_super,large_file,huge_file,dir_nlink,extra_isize,"   \
    "metadata_csum"

const char *disk_find_mkfs(void)
{
    for (size_t i = 0; i < sizeof mkfs_places / sizeof *mkfs_places; i++) {
        if (access(mkfs_places[i], X_OK) == 0)
            return mkfs_places[i];
    }
    return NULL;
}

static _Noreturn void execute_mkfs(int image, char *inodes)
{
    static char name[] = "mkfs.ext4";
    static char options[] = "-qF";
    static char block[] = "-b4096";
    static char inode[] = "-I256";
    static char reserved[] = "-m0";
    static char features[] = "-O" FEATURES;
    static char lazy[] = "-Elazy_itable_init=1,nodiscard,root_owner=0:0";
    static char file[] = "/proc/self/fd/3";
    static char config[] = "MKE2FS_CONFIG=/dev/null";
    char *const argv[] = {name, options, block, inode, reserved, features, lazy, inodes, file, NULL};
    char *const envp[] = {config, NULL};
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    if (null < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0 || dup2(null, 2) < 0)
        _exit(126);
    if (image == MKFS_FD ? fcntl(image, F_SETFD, 0) < 0 : dup2(image, MKFS_FD) < 0)
        _exit(126);
    for (size_t i = 0; i < sizeof mkfs_places / sizeof *mkfs_places; i++)
        (void)execve(mkfs_places[i], argv, envp);
    _exit(127);
}

static int run_mkfs(int image, uint64_t inodes, struct error *err)
{
    char text[24];
    int status;

    (void)snprintf(text, sizeof text, "-N%llu", (unsigned long long)inodes);
    pid_t self = getpid();
    pid_t pid = fork();
    if (pid == 0) {
        /* Not longer than the helper that waits for it. */
        if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != self)
            _exit(126);
        execute_mkfs(image, text);
    }
    if (pid < 0 || waitpid(pid, &status, 0) < 0)
        return error_errno(err, "running mkfs.ext4");
    if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
        return error_set(err, ERROR_UNSUPPORTED, ENOENT,
                         "there is no mkfs.ext4; install it with: apt-get install e2fsprogs");
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        return error_set(err, ERROR_SYSTEM, EIO, "mkfs.ext4 could not make a file system of this size");
    return 0;
}

static int new_file(int folder, uint64_t bytes, struct error *err)
{
    _cleanup_fd_ int fd = openat(folder, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

    if (fd < 0 || ftruncate(fd, (off_t)bytes) < 0)
        return error_errno(err, "making a file of %llu bytes in the state folder", (unsigned long long)bytes);
    return TAKE_FD(fd);
}

/* A cache: whoever still copies from one holds it open. */
static void make_room(int folder)
{
    int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *listing = fd >= 0 ? fdopendir(fd) : NULL;
    const struct dirent *entry;
    size_t count = 0;

    if (listing == NULL) {
        close_fd(&fd);
        return;
    }
    while ((entry = readdir(listing)) != NULL)
        count += entry->d_name[0] != '.' ? 1 : 0;
    rewinddir(listing);
    while (count >= PREPARED_MAX && (entry = readdir(listing)) != NULL) {
        if (entry->d_name[0] != '.')
            (void)unlinkat(fd, entry->d_name, 0);
    }
    (void)closedir(listing);
}

static int prepare(int folder, const char *name, uint64_t bytes, uint64_t inodes, struct error *err)
{
    char path[32];
    _cleanup_fd_ int fd = new_file(folder, bytes, err);

    if (fd < 0)
        return fd;
    int r = run_mkfs(fd, inodes, err);
    if (r < 0)
        return r;
    make_room(folder);
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (linkat(AT_FDCWD, path, folder, name, AT_SYMLINK_FOLLOW) < 0 && errno != EEXIST)
        return error_errno(err, "keeping a prepared image");
    return TAKE_FD(fd);
}

static int open_prepared(int folder, uint64_t bytes, uint64_t inodes, struct error *err)
{
    char name[NAME_SIZE];

    (void)snprintf(name, sizeof name, "ext4-%llu-%llu", (unsigned long long)bytes, (unsigned long long)inodes);
    int fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0 && errno != ENOENT)
        return error_errno(err, "opening a prepared image");
    return fd >= 0 ? fd : prepare(folder, name, bytes, inodes, err);
}

/* What is not a hole. File systems that can share the blocks do so. */
static int copy_data(int from, int to)
{
    off_t end = 0;
    off_t start;

    while ((start = lseek(from, end, SEEK_DATA)) >= 0) {
        off_t at = start;
        end = lseek(from, start, SEEK_HOLE);
        while (end >= 0 && start < end) {
            ssize_t n = copy_file_range(from, &start, to, &at, (size_t)(end - start), 0);
            if (n <= 0)
                return n < 0 ? -errno : -EIO;
        }
        if (end < 0)
            return -errno;
    }
    return errno == ENXIO ? 0 : -errno;
}

static int copy_prepared(int state_fd, uint64_t bytes, uint64_t inodes, struct error *err)
{
    if (mkdirat(state_fd, "images", 0700) < 0 && errno != EEXIST)
        return error_errno(err, "making the folder of images");
    _cleanup_fd_ int folder = openat(state_fd, "images", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (folder < 0)
        return error_errno(err, "opening the folder of images");
    _cleanup_fd_ int prepared = open_prepared(folder, bytes, inodes, err);
    if (prepared < 0)
        return prepared;
    _cleanup_fd_ int fd = new_file(folder, bytes, err);
    if (fd < 0)
        return fd;
    int r = copy_data(prepared, fd);
    return r < 0 ? error_set(err, ERROR_SYSTEM, -r, "copying the prepared image") : TAKE_FD(fd);
}

/* A free loop device with the image in it, for as long as it is used. */
static int attach_loop(int image, char *device, size_t size, struct error *err)
{
    struct loop_config config = {
        .fd = (uint32_t)image,
        .block_size = BLOCK_BYTES,
        /* Direct: else every page would be kept twice. */
        .info = {.lo_flags = LO_FLAGS_AUTOCLEAR | LO_FLAGS_DIRECT_IO},
    };
    _cleanup_fd_ int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);

    if (control < 0)
        return error_errno(err, "opening /dev/loop-control (load the driver with: modprobe loop)");
    for (int attempt = 0; attempt < LOOP_ATTEMPTS; attempt++) {
        int number = ioctl(control, LOOP_CTL_GET_FREE);
        if (number < 0)
            return error_errno(err, "finding a free loop device");
        (void)snprintf(device, size, "/dev/loop%d", number);
        _cleanup_fd_ int fd = open(device, O_RDWR | O_CLOEXEC);
        if (fd < 0)
            return error_errno(err, "opening %s", device);
        if (ioctl(fd, LOOP_CONFIGURE, &config) == 0)
            return TAKE_FD(fd);
        if (errno != EBUSY)
            return error_errno(err, "setting up %s", device);
    }
    return error_set(err, ERROR_SYSTEM, EBUSY, "finding a free loop device");
}

bool disk_tmpfs_has_attributes(void)
{
    _cleanup_fd_ int fd = -1;

    if (mnt_new("tmpfs", NULL, 0, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, &fd) < 0)
        return false;
    _cleanup_fd_ int folder = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return folder >= 0 && fsetxattr(folder, "user.overlay.probe", "y", 1, 0) == 0;
}

int disk_new(int state_fd, uint64_t bytes, uint64_t inodes, struct disk *ret_disk, struct error *err)
{
    char device[32];
    const struct mnt_option options[] = {
        {"source", device},      {"errors", "remount-ro"},
        {"noinit_itable", NULL}, {"barrier", "0"}, /* nobody reads it after a crash */
        {"discard", NULL},                         /* what is removed inside is free again outside */
    };
    _cleanup_fd_ int image = copy_prepared(state_fd, bytes - bytes % BLOCK_BYTES, inodes, err);

    if (image < 0)
        return image;
    _cleanup_fd_ int loop = attach_loop(image, device, sizeof device, err);
    if (loop < 0)
        return loop;
    struct disk disk = DISK_EMPTY;
    int r = mnt_new("ext4", options, sizeof options / sizeof *options, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV,
                    &disk.mount_fd);
    if (r < 0)
        return error_set(err, ERROR_SYSTEM, -r, "mounting the ext4 image on %s", device);
    disk.folder_fd = openat(disk.mount_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (disk.folder_fd < 0) {
        r = error_errno(err, "opening the ext4 image");
        disk_release(&disk);
        return r;
    }
    *ret_disk = disk;
    return 0;
}

void disk_release(struct disk *disk)
{
    close_fd(&disk->mount_fd);
    close_fd(&disk->folder_fd);
}

void disk_discard(int folder_fd)
{
    /* Not through libc, whose ioctl() takes an int here and an unsigned long there. */
    (void)syscall(SYS_ioctl, folder_fd, EXT4_SHUT_DOWN, &(uint32_t){SHUT_DOWN_WITHOUT_FLUSH});
}
