/*
 * Theory of operation. A layer is a tree with a white-out for each program that has to go: a character device 0/0,
 * which overlayfs takes for "nothing here" in any layer and any mount of its own, since Linux 3.18 and without
 * attributes, which a mount in a user namespace could not trust. They are links to a few inodes. Folders look like
 * those of /usr that they cover, because theirs are the owners and modes that a sandbox sees.
 *
 *     policy/usr                  every program and folder of /usr (usr_index.h)
 *     policy/GENERATION-HASH/list the programs that stay, and when it was last used
 *     policy/GENERATION-HASH/tree the layer
 */
#include "keeper/policy_layer.h"

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/sys.h"
#include "base/tree.h"
#include "keeper/mnt.h"
#include "keeper/usr_index.h"
#include "keeper/whitelist.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>

enum { NAME_SIZE = 64, UNUSED_SECONDS = 3600, LAYERS_MAX = 512 };

static const char fresh[] = "new";

void policy_release(struct policy *policy)
{
    close_fd(&policy->layer_fd);
    buf_release(&policy->programs);
}

struct wire_strv policy_programs(const struct policy *policy)
{
    const struct buf *programs = &policy->programs;
    struct wire_strv strings = {.data = (const char *)programs->data, .length = (uint32_t)programs->length};

    for (size_t i = 0; i < programs->length; i++)
        strings.count += programs->data[i] == '\0';
    return strings;
}

static void layer_name(char name[NAME_SIZE], uint64_t generation, const struct buf *programs)
{
    uint64_t hash = 0xcbf29ce484222325U; /* FNV-1a: a name, not a digest: the list itself is compared */

    for (size_t i = 0; i < programs->length; i++)
        hash = (hash ^ programs->data[i]) * 0x100000001b3U;
    (void)snprintf(name, NAME_SIZE, "%016llx-%016llx", (unsigned long long)generation, (unsigned long long)hash);
}

static bool is_list(int fd, const struct buf *programs)
{
    char text[WHITELIST_BYTES_MAX + 1];
    ssize_t n = fd_read_all(fd, text, sizeof text);

    return n >= 0 && (size_t)n == programs->length && memcmp(text, programs->data, programs->length) == 0;
}

/* -ENOENT when it has to be built, or was removed while we waited for the lock. */
static int open_locked(int folder, const char *name, const struct buf *programs, int *ret_fd)
{
    _cleanup_fd_ int dir = openat(folder, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    _cleanup_fd_ int tree = dir < 0 ? -1 : openat(dir, "tree", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

    if (dir < 0 || tree < 0 || flock(tree, LOCK_SH) < 0)
        return -errno;
    /* Looked for after it is locked: it goes first when a layer is removed. */
    _cleanup_fd_ int list = openat(dir, "list", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (list < 0 || !is_list(list, programs))
        return -ENOENT;
    if (futimens(list, NULL) < 0)
        return -errno;
    *ret_fd = TAKE_FD(tree);
    return 0;
}

/* A folder of the layer, as /usr has it. */
static int make_folder(int tree, int usr_fd, const char *path)
{
    struct stat st;

    if (mkdirat(tree, path, 0700) < 0)
        return errno == EEXIST ? 0 : -errno;
    if (fstatat(usr_fd, path, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
        fchownat(tree, path, st.st_uid, st.st_gid, AT_SYMLINK_NOFOLLOW) < 0 ||
        fchmodat(tree, path, st.st_mode & 0777, 0) < 0)
        return -errno;
    return 0;
}

static int make_folders(int tree, int usr_fd, const char *path)
{
    char part[PATH_MAX];

    for (const char *slash = strchr(path, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        size_t length = (size_t)(slash - path);
        if (length >= sizeof part)
            return -ENAMETOOLONG;
        memcpy(part, path, length);
        part[length] = '\0';
        int r = make_folder(tree, usr_fd, part);
        if (r < 0)
            return r;
    }
    return 0;
}

static int white_out(int dir, int tree, int usr_fd, const char *path)
{
    static const char whiteout[] = "whiteout";
    int r = linkat(dir, whiteout, tree, path, 0) < 0 ? -errno : 0;

    if (r == -ENOENT) {
        r = make_folders(tree, usr_fd, path);
        if (r == 0)
            r = linkat(dir, whiteout, tree, path, 0) < 0 ? -errno : 0;
    }
    /* None there yet, or it has as many links as a file may have. */
    if (r == -ENOENT || r == -EMLINK) {
        (void)unlinkat(dir, whiteout, 0);
        if (mknodat(dir, whiteout, S_IFCHR, 0) < 0 || linkat(dir, whiteout, tree, path, 0) < 0)
            return -errno;
        return 0;
    }
    return r;
}

static int fill(int dir, int usr_fd, const struct usr_index *index, const struct buf *programs, struct error *err)
{
    struct stat st;
    int r = mkdirat(dir, "tree", 0700) < 0 ? -errno : 0;
    _cleanup_fd_ int tree = r < 0 ? -1 : openat(dir, "tree", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    _cleanup_fd_ int list = openat(dir, "list", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);

    if (tree < 0 || list < 0 || fstat(usr_fd, &st) < 0 || fchmod(tree, st.st_mode & 0777) < 0)
        return error_errno(err, "making a policy layer");
    for (const char *path = index->programs; path < index->end; path += strlen(path) + 1) {
        r = whitelist_has(programs, path) ? 0 : white_out(dir, tree, usr_fd, path);
        if (r < 0)
            return error_set(err, ERROR_SYSTEM, -r, "taking away /usr/%.200s", path);
    }
    r = fd_write_all(list, programs->data, programs->length);
    return r < 0 ? error_set(err, ERROR_SYSTEM, -r, "making a policy layer") : 0;
}

/* Remove layers that nobody holds and that were not used for a while: a run hands its sandbox over to be ended just
 * before it lets go of its lock. How many are left. */
static size_t remove_old(int folder)
{
    size_t left = 0;
    int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *listing = fd >= 0 ? fdopendir(fd) : NULL;
    const struct dirent *entry;

    while (listing != NULL && (entry = readdir(listing)) != NULL) {
        struct stat st;
        _cleanup_fd_ int dir = openat(folder, entry->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        if (dir < 0 || entry->d_name[0] == '.' || strcmp(entry->d_name, fresh) == 0)
            continue;
        /* One without its list was left half removed. */
        left++;
        if (fstatat(dir, "list", &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_mtim.tv_sec + UNUSED_SECONDS > time(NULL))
            continue;
        _cleanup_fd_ int tree = openat(dir, "tree", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        if (tree < 0 || flock(tree, LOCK_EX | LOCK_NB) < 0)
            continue;
        (void)unlinkat(dir, "list", 0);
        tree_remove(folder, entry->d_name);
        left--;
    }
    if (listing != NULL)
        (void)closedir(listing);
    return left;
}

/* With the lock of the folder. */
static int build(int folder, const char *name, int usr_fd, const struct usr_index *index, const struct buf *programs,
                 struct error *err)
{
    if (remove_old(folder) >= LAYERS_MAX)
        return error_set(err, ERROR_LIMIT, EAGAIN, "%d lists of programs were used within an hour", LAYERS_MAX);
    mode_t before = umask(0);
    tree_remove(folder, fresh);
    int r = mkdirat(folder, fresh, 0700) < 0 ? error_errno(err, "making a policy layer") : 0;
    if (r == 0) {
        _cleanup_fd_ int dir = openat(folder, fresh, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        r = dir < 0 ? error_errno(err, "opening a policy layer") : fill(dir, usr_fd, index, programs, err);
    }
    /* A layer of this name with another list would be in the way; and nothing else is. */
    if (r == 0 && renameat(folder, fresh, folder, name) < 0)
        r = error_errno(err, "renaming a policy layer");
    if (r < 0)
        tree_remove(folder, fresh);
    (void)umask(before);
    return r;
}

static int load_index(int folder, int usr_fd, struct usr_index *index, struct error *err)
{
    int r = usr_index_load(folder, usr_fd, index);

    if (r != -ENOENT)
        return r < 0 ? error_set(err, ERROR_SYSTEM, -r, "reading the list of programs") : 0;
    r = usr_index_make(folder, usr_fd, err);
    if (r < 0)
        return r;
    r = usr_index_load(folder, usr_fd, index);
    return r < 0 ? error_set(err, ERROR_SYSTEM, -r == ENOENT ? EAGAIN : -r, "/usr changes all the time") : 0;
}

/* 0 and the layer, or -ENOENT when something has to be built first. */
static int open_ready(int folder, int usr_fd, const struct buf *programs, int *ret_fd)
{
    uint64_t generation;
    char name[NAME_SIZE];
    int r = usr_index_current(folder, usr_fd, &generation);

    if (r < 0)
        return r;
    layer_name(name, generation, programs);
    return open_locked(folder, name, programs, ret_fd);
}

static int open_built(int folder, int usr_fd, const struct buf *programs, int *ret_fd, struct error *err)
{
    struct usr_index index;
    char name[NAME_SIZE];

    if (flock(folder, LOCK_EX) < 0)
        return error_errno(err, "locking the folder of policies");
    int r = load_index(folder, usr_fd, &index, err);
    if (r < 0)
        return r;
    layer_name(name, index.generation, programs);
    r = open_locked(folder, name, programs, ret_fd);
    if (r == -ENOENT)
        r = build(folder, name, usr_fd, &index, programs, err);
    else if (r < 0)
        r = error_set(err, ERROR_SYSTEM, -r, "opening policy layer %s", name);
    if (r == 0 && *ret_fd < 0 && (r = open_locked(folder, name, programs, ret_fd)) < 0)
        r = error_set(err, ERROR_SYSTEM, -r, "opening policy layer %s", name);
    usr_index_release(&index);
    return r;
}

static int open_layer(int state_fd, int usr_fd, const struct buf *programs, int *ret_fd, struct error *err)
{
    if (mkdirat(state_fd, "policy", 0700) < 0 && errno != EEXIST)
        return error_errno(err, "making the folder of policies");
    _cleanup_fd_ int folder = openat(state_fd, "policy", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (folder < 0)
        return error_errno(err, "opening the folder of policies");
    int r = open_ready(folder, usr_fd, programs, ret_fd);
    if (r != -ENOENT)
        return r < 0 ? error_set(err, ERROR_SYSTEM, -r, "opening a policy layer") : 0;
    return open_built(folder, usr_fd, programs, ret_fd, err);
}

int policy_prepare(int state_fd, struct wire_strv names, struct policy *ret_policy, enum step *ret_step,
                   struct error *err)
{
    struct policy policy = {.layer_fd = -1, .programs = buf_init(WHITELIST_BYTES_MAX)};
    _cleanup_fd_ int usr = -1;

    *ret_step = STEP_POLICY;
    /* What is mounted below it does not come along, as in a sandbox. */
    int r = mnt_copy(AT_FDCWD, "/usr", MOUNT_ATTR_RDONLY, &usr);
    if (r < 0)
        return error_set(err, ERROR_SYSTEM, -r, "copying the mount of /usr");
    r = whitelist_resolve(usr, names, &policy.programs, err);
    if (r < 0)
        *ret_step = STEP_REQUEST;
    if (r == 0)
        r = open_layer(state_fd, usr, &policy.programs, &policy.layer_fd, err);
    if (r < 0) {
        policy_release(&policy);
        return r;
    }
    *ret_policy = policy;
    return 0;
}
