#include "keeper/folders.h"

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/sys.h"

#include <endian.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* Nor onto another file system: what is mounted below a share was not shared. */
enum { BENEATH = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV };

static bool is_name(const char *name)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    size_t length = strlen(name);

    return length > 0 && length < FOLDER_NAME_SIZE && strspn(name, allowed) == length;
}

static const struct folder *find(const struct folders *folders, const char *name, bool is_share)
{
    for (size_t i = 0; i < folders->count; i++) {
        if (folders->list[i].is_share == is_share && strcmp(folders->list[i].name, name) == 0)
            return &folders->list[i];
    }
    return NULL;
}

static int add(struct folders *folders, const char *name, const char *path, bool is_share, bool is_writable,
               struct error *err)
{
    const char *kind = is_share ? "share" : "template";

    if (!is_name(name) || path[0] != '/' || find(folders, name, is_share) != NULL)
        return error_set(err, ERROR_PROTOCOL, EBADMSG, "the reader's answer has a bad %s", kind);
    if (folders->count == FOLDERS_MAX)
        return error_set(err, ERROR_LIMIT, 0, "there are more than %d templates and shares", FOLDERS_MAX);
    struct folder *folder = &folders->list[folders->count];
    *folder = (struct folder){.is_share = is_share, .is_writable = is_writable};
    (void)snprintf(folder->name, sizeof folder->name, "%s", name);
    folder->fd = sys_openat2(AT_FDCWD, path, O_PATH | O_DIRECTORY | O_CLOEXEC, RESOLVE_NO_SYMLINKS);
    if (folder->fd < 0 && errno == ELOOP)
        return error_set(err, ERROR_INVALID, ELOOP, "%ss.%s: %.200s contains a symlink; give the real path", kind, name,
                         path);
    if (folder->fd < 0)
        return error_errno(err, "%ss.%s: opening the folder %.200s", kind, name, path);
    folders->count++;
    return 0;
}

static int add_templates(struct folders *folders, struct wire_strv templates, struct error *err)
{
    const char *name = NULL;
    int r = 0;

    while (r == 0 && (name = wire_strv_next(templates, name)) != NULL) {
        const char *path = wire_strv_next(templates, name);
        r = path == NULL ? error_set(err, ERROR_PROTOCOL, EBADMSG, "the reader's answer has half a template")
                         : add(folders, name, path, false, false, err);
        name = path;
    }
    return r;
}

static int add_shares(struct folders *folders, struct wire_strv shares, struct error *err)
{
    const char *name = NULL;
    int r = 0;

    while (r == 0 && (name = wire_strv_next(shares, name)) != NULL) {
        const char *path = wire_strv_next(shares, name);
        const char *access = path != NULL ? wire_strv_next(shares, path) : NULL;
        if (access == NULL || (strcmp(access, "ro") != 0 && strcmp(access, "rw") != 0))
            return error_set(err, ERROR_PROTOCOL, EBADMSG, "the reader's answer has half a share");
        r = add(folders, name, path, true, strcmp(access, "rw") == 0, err);
        name = access;
    }
    return r;
}

int folders_open(struct folders *folders, const struct wire_config *config, struct error *err)
{
    folders->count = 0;
    int r = add_templates(folders, config->templates, err);
    if (r == 0)
        r = add_shares(folders, config->shares, err);
    if (r < 0)
        folders_close(folders);
    return r;
}

void folders_close(struct folders *folders)
{
    for (size_t i = 0; i < folders->count; i++)
        close_fd(&folders->list[i].fd);
    folders->count = 0;
}

static int open_share(const struct folder *share, const char *path, bool wants_write, int *ret_fd, struct error *err)
{
    if (wants_write && !share->is_writable)
        return error_set(err, ERROR_DENIED, EACCES, "share '%.63s' may only be read", share->name);
    int fd = sys_openat2(share->fd, path[0] != '\0' ? path : ".", O_PATH | O_DIRECTORY | O_CLOEXEC, BENEATH);
    if (fd < 0)
        return error_errno(err, "opening %.200s in share '%.63s'", path, share->name);
    *ret_fd = fd;
    return 0;
}

/*
 * One inner user stands for one outside: all of them must be the same one's. The path is the client's choice, and with
 * it whose folder that is; but root's it is only where the share itself is root's.
 */
static int take_owner(struct wire_create *create, const struct folder *share, int fd, bool is_first, struct error *err)
{
    struct stat st;
    struct stat top;

    if (fstat(fd, &st) < 0 || fstat(share->fd, &top) < 0)
        return error_errno(err, "looking at a share");
    if ((st.st_uid == 0 || st.st_gid == 0) && top.st_uid != 0)
        return error_set(err, ERROR_DENIED, EACCES, "a folder in share '%.63s' is root's, and the share is not",
                         share->name);
    if (!is_first && (create->dir_owner_uid != st.st_uid || create->dir_owner_gid != st.st_gid))
        return error_set(err, ERROR_INVALID, 0, "the shares of one sandbox must belong to the same user");
    create->dir_owner_uid = st.st_uid;
    create->dir_owner_gid = st.st_gid;
    return 0;
}

static int resolve_shares(const struct folders *folders, struct wire_create *create, uint64_t *dir_flags, int *fds,
                          size_t *fd_count, struct error *err)
{
    const char *name = NULL;

    for (uint32_t i = 0; i < create->dirs.count; i++) {
        const char *share = wire_strv_next(create->shares, name);
        const char *path = wire_strv_next(create->shares, share);
        bool wants_write = (wire_u64v_at(create->dir_flags, i) & WIRE_DIR_WRITABLE) != 0;
        const struct folder *folder = find(folders, share, true);
        if (folder == NULL)
            return error_set(err, ERROR_NOT_FOUND, ENOENT, "there is no share '%.63s'", share);
        int r = open_share(folder, path, wants_write, &fds[*fd_count], err);
        if (r < 0)
            return r;
        (*fd_count)++;
        dir_flags[i] = htole64(wants_write ? WIRE_DIR_WRITABLE : 0);
        r = take_owner(create, folder, fds[*fd_count - 1], i == 0, err);
        if (r < 0)
            return r;
        name = path;
    }
    create->dir_flags = (struct wire_u64v){.data = (const uint8_t *)dir_flags, .count = create->dirs.count};
    return 0;
}

int folders_resolve(const struct folders *folders, struct wire_create *create, uint64_t *dir_flags, int *fds,
                    size_t *ret_fd_count, struct error *err)
{
    bool has_template = create->template_name.length > 0;
    size_t fd_count = 0;
    int r = 0;

    if (has_template != ((create->flags & WIRE_CREATE_FOLDER) != 0) || create->dirs.count > WIRE_DIRS_MAX ||
        create->dir_flags.count != create->dirs.count || create->shares.count != 2 * create->dirs.count)
        return error_set(err, ERROR_INVALID, 0, "template, shares and guest paths do not go together");
    if (has_template) {
        const struct folder *template = find(folders, create->template_name.text, false);
        if (template == NULL)
            return error_set(err, ERROR_NOT_FOUND, ENOENT, "there is no template '%.63s'", create->template_name.text);
        fds[0] = fcntl(template->fd, F_DUPFD_CLOEXEC, 0);
        if (fds[0] < 0)
            return error_errno(err, "opening a template");
        fd_count = 1;
    }
    if (create->dirs.count > 0)
        r = resolve_shares(folders, create, dir_flags, fds, &fd_count, err);
    if (r < 0) {
        fd_close_many(fds, fd_count);
        return r;
    }
    *ret_fd_count = fd_count;
    return 0;
}
