#include "keeper/host_layer.h"

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/sys.h"
#include "base/tree.h"
#include "keeper/mnt.h"

#include <dirent.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

enum { LAYER_VERSION = 3, COPY_DEPTH_MAX = 6, NAME_SIZE = 64 };

static const char *const folders[] = {
    "dev",     "etc/ssl", "home/sandbox", "mnt/user-data/outputs",
    "opt",     "proc",    "root",         "run",
    "srv",     "tmp",     "usr",          "var/cache",
    "var/lib", "var/log", "workspace",
};

static const struct {
    const char *path;
    const char *text;
} files[] = {
    {"etc/passwd", "root:x:0:0:root:/home/sandbox:/bin/sh\n"
                   "nobody:x:65534:65534:sandbox:/home/sandbox:/bin/sh\n"},
    {"etc/group", "root:x:0:\ntty:x:5:\nnogroup:x:65534:\n"},
    {"etc/hosts", "127.0.0.1 localhost sandbox\n::1 localhost\n"},
    {"etc/nsswitch.conf", "passwd: files\ngroup: files\nshadow: files\nhosts: files dns\nservices: files\n"
                          "protocols: files\nnetworks: files\n"},
    {"etc/resolv.conf", "nameserver 198.18.0.2\n"},
    {"etc/shells", "/bin/sh\n/bin/bash\n"},
    {"etc/host.conf", "multi on\n"},
};

static const struct {
    const char *path;
    const char *target;
} links[] = {
    {"etc/os-release", "../usr/lib/os-release"},
    {"etc/mtab", "../proc/self/mounts"},
    {"var/run", "../run"},
    {"var/tmp", "../tmp"},
};

/* Links of a merged-/usr system, taken over as they are on the host. */
static const char *const usr_links[] = {"bin", "sbin", "lib", "lib32", "lib64", "libx32"};

/* What programs in /usr need of the host's /etc. */
static const char *const etc_patterns[] = {
    "alternatives", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime", "timezone",
    "mime.types",   "protocols",   "services",   "fonts",        "terminfo",  "inputrc",
    "magic",        "magic.mime",  "perl",       "python3*",     "java-*",    "locale.alias",
};
static const char *const ssl_patterns[] = {"certs", "openssl.cnf"};

/* Where a change means that the layer must be built again. */
static const char *const sources[] = {"/etc", "/etc/alternatives", "/etc/ssl/certs", "/etc/ld.so.cache", "/usr"};

static int layer_name(char name[NAME_SIZE])
{
    uint64_t hash = 0xcbf29ce484222325U ^ LAYER_VERSION; /* FNV-1a: a change detector, not a digest */

    for (size_t i = 0; i < sizeof sources / sizeof *sources; i++) {
        struct stat st;
        uint64_t parts[4] = {0};
        int r = stat(sources[i], &st);
        if (r < 0 && errno != ENOENT)
            return -errno; /* and not another name, below which the same would be built again */
        if (r == 0) {
            parts[0] = st.st_dev;
            parts[1] = st.st_ino;
            parts[2] = (uint64_t)st.st_mtim.tv_sec;
            parts[3] = (uint64_t)st.st_mtim.tv_nsec;
        }
        for (size_t byte = 0; byte < sizeof parts; byte++)
            hash = (hash ^ ((const uint8_t *)parts)[byte]) * 0x100000001b3U;
    }
    (void)snprintf(name, NAME_SIZE, "host-%016llx", (unsigned long long)hash);
    return 0;
}

static int copy_file(int from, const char *name, int to, mode_t mode)
{
    _cleanup_fd_ int source = openat(from, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    _cleanup_fd_ int target = openat(to, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
    uint8_t part[16384];
    ssize_t n;

    if (source < 0 || target < 0)
        return -errno;
    while ((n = fd_read_all(source, part, sizeof part)) > 0) {
        int r = fd_write_all(target, part, (size_t)n);
        if (r < 0)
            return r;
    }
    return (int)n;
}

static int copy_matching(int from, const char *name, int to, const char *const *patterns, size_t count, int depth);

static int copy_entry(int from, const char *name, int to, int depth)
{
    char target[PATH_MAX];
    struct stat st;

    if (fstatat(from, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : -errno;
    if (S_ISLNK(st.st_mode)) {
        ssize_t n = readlinkat(from, name, target, sizeof target - 1);
        if (n < 0)
            return -errno;
        target[n] = '\0';
        return symlinkat(target, to, name) < 0 ? -errno : 0;
    }
    /* Private keys and the like stay on the host. */
    if ((st.st_mode & 0004) == 0)
        return 0;
    if (S_ISREG(st.st_mode))
        return copy_file(from, name, to, (st.st_mode & 0111) != 0 ? 0755 : 0644);
    if (!S_ISDIR(st.st_mode) || depth >= COPY_DEPTH_MAX)
        return 0;
    if (mkdirat(to, name, 0755) < 0)
        return -errno;
    _cleanup_fd_ int below = openat(to, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    return below < 0 ? -errno : copy_matching(from, name, below, NULL, 0, depth + 1);
}

static bool matches(const char *name, const char *const *patterns, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (fnmatch(patterns[i], name, 0) == 0)
            return true;
    }
    return patterns == NULL;
}

/* Copy the entries of from/name that match, or all when there are no patterns. */
static int copy_matching(int from, const char *name, int to, const char *const *patterns, size_t count, int depth)
{
    int fd = openat(from, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *folder = fd >= 0 ? fdopendir(fd) : NULL;
    const struct dirent *entry;
    int r = 0;

    if (folder == NULL) {
        r = errno == ENOENT ? 0 : -errno;
        close_fd(&fd);
        return r;
    }
    while (r == 0 && (entry = readdir(folder)) != NULL) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
            matches(entry->d_name, patterns, count))
            r = copy_entry(fd, entry->d_name, to, depth);
    }
    (void)closedir(folder);
    return r;
}

static int link_into_usr(int layer, struct error *err)
{
    for (size_t i = 0; i < sizeof usr_links / sizeof *usr_links; i++) {
        char path[16];
        char target[64];
        (void)snprintf(path, sizeof path, "/%s", usr_links[i]);
        ssize_t n = readlink(path, target, sizeof target - 1);
        if (n < 0 && errno == ENOENT)
            continue;
        if (n < 0)
            return error_set(err, ERROR_UNSUPPORTED, ENOTSUP,
                             "%s is not a link into /usr on this host; use a folder template (--root FOLDER)", path);
        target[n] = '\0';
        if (symlinkat(target, layer, usr_links[i]) < 0)
            return error_errno(err, "linking %s", path);
    }
    return 0;
}

static int write_new_file(int layer, const char *path, const char *text)
{
    _cleanup_fd_ int fd = openat(layer, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);

    return fd < 0 ? -errno : fd_write_all(fd, text, strlen(text));
}

static int fill_own(int layer)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < sizeof folders / sizeof *folders; i++)
        r = mnt_make_folders(layer, folders[i]);
    for (size_t i = 0; r == 0 && i < sizeof files / sizeof *files; i++)
        r = write_new_file(layer, files[i].path, files[i].text);
    for (size_t i = 0; r == 0 && i < sizeof links / sizeof *links; i++)
        r = symlinkat(links[i].target, layer, links[i].path) < 0 ? -errno : 0;
    return r;
}

static int fill_from_host(int layer)
{
    _cleanup_fd_ int etc = openat(layer, "etc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    _cleanup_fd_ int ssl = openat(layer, "etc/ssl", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (etc < 0 || ssl < 0)
        return -errno;
    int r = copy_matching(AT_FDCWD, "/etc", etc, etc_patterns, sizeof etc_patterns / sizeof *etc_patterns, 0);
    if (r == 0)
        r = copy_matching(AT_FDCWD, "/etc/ssl", ssl, ssl_patterns, sizeof ssl_patterns / sizeof *ssl_patterns, 0);
    return r;
}

static int fill(int layer, struct error *err)
{
    int r = link_into_usr(layer, err);

    if (r < 0)
        return r;
    r = fill_own(layer);
    if (r == 0)
        r = fill_from_host(layer);
    return r < 0 ? error_set(err, ERROR_SYSTEM, -r, "filling the host template") : 0;
}

/* Remove layers of this kind, other than `keep`, that nobody holds. */
static void remove_old(int layers, const char *keep)
{
    int fd = openat(layers, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *folder = fd >= 0 ? fdopendir(fd) : NULL;
    const struct dirent *entry;

    while (folder != NULL && (entry = readdir(folder)) != NULL) {
        if (strncmp(entry->d_name, "host-", 5) != 0 || strcmp(entry->d_name, keep) == 0)
            continue;
        _cleanup_fd_ int old = openat(layers, entry->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        if (old >= 0 && flock(old, LOCK_EX | LOCK_NB) == 0)
            tree_remove(layers, entry->d_name);
    }
    if (folder != NULL)
        (void)closedir(folder);
}

static int build(int layers, const char *name, struct error *err)
{
    static const char fresh[] = "new-host";
    mode_t before = umask(0022);

    tree_remove(layers, fresh);
    int r = mkdirat(layers, fresh, 0755) < 0 ? error_errno(err, "making a layer") : 0;
    if (r == 0) {
        _cleanup_fd_ int layer = openat(layers, fresh, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        r = layer < 0 ? error_errno(err, "opening a layer") : fill(layer, err);
    }
    if (r == 0 && renameat(layers, fresh, layers, name) < 0)
        r = error_errno(err, "renaming a layer");
    if (r < 0)
        tree_remove(layers, fresh);
    else
        remove_old(layers, name);
    (void)umask(before);
    return r;
}

/* -ENOENT when it has to be built, or was removed while we waited for the lock. */
static int open_locked(int layers, const char *name, int *ret_fd)
{
    struct stat st;
    _cleanup_fd_ int fd = openat(layers, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

    if (fd < 0 || flock(fd, LOCK_SH) < 0 || fstat(fd, &st) < 0)
        return -errno;
    if (st.st_nlink == 0)
        return -ENOENT;
    *ret_fd = TAKE_FD(fd);
    return 0;
}

int host_layer_open(int state_fd, int *ret_fd, struct error *err)
{
    char name[NAME_SIZE];

    if (mkdirat(state_fd, "layers", 0700) < 0 && errno != EEXIST)
        return error_errno(err, "making the folder of layers");
    _cleanup_fd_ int layers = openat(state_fd, "layers", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (layers < 0)
        return error_errno(err, "opening the folder of layers");
    int r = layer_name(name);
    if (r < 0)
        return error_set(err, ERROR_SYSTEM, -r, "looking at what the host's layer is made of");
    r = open_locked(layers, name, ret_fd);
    if (r != -ENOENT)
        return r < 0 ? error_set(err, ERROR_SYSTEM, -r, "opening layer %s", name) : 0;

    if (flock(layers, LOCK_EX) < 0)
        return error_errno(err, "locking the folder of layers");
    r = open_locked(layers, name, ret_fd);
    if (r != -ENOENT)
        return r < 0 ? error_set(err, ERROR_SYSTEM, -r, "opening layer %s", name) : 0;
    r = build(layers, name, err);
    if (r == 0 && (r = open_locked(layers, name, ret_fd)) < 0)
        return error_set(err, ERROR_SYSTEM, -r, "opening layer %s", name);
    return r;
}
