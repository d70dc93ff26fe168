#include "keeper/template.h"

#include "base/cleanup.h"
#include "base/sys.h"
#include "keeper/mnt.h"

enum { LAYER_ATTRIBUTES = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_RDONLY };

static int add_layer(int folder_fd, struct spawn *spawn, struct error *err)
{
    int r = mnt_copy(folder_fd, "", LAYER_ATTRIBUTES, &spawn->layer_fds[spawn->layer_count]);

    if (r < 0)
        return error_set(err, ERROR_SYSTEM, -r, "copying a layer's mount");
    spawn->layer_count++;
    return 0;
}

int template_open_host(int host_layer_fd, struct spawn *spawn, struct error *err)
{
    int r = add_layer(host_layer_fd, spawn, err);

    if (r < 0)
        return r;
    /* Not idmapped: as namespace root's files, what only root may read on the host would be readable. */
    r = mnt_copy(AT_FDCWD, "/usr", LAYER_ATTRIBUTES, &spawn->usr_fd);
    if (r < 0)
        return error_set(err, ERROR_SYSTEM, -r, "copying the mount of /usr");
    spawn->flags |= WIRE_SPAWN_USR;
    return 0;
}

int template_open_policy(const struct policy *policy, struct spawn *spawn, struct error *err)
{
    /* As /usr itself: not idmapped. */
    int r = mnt_copy(policy->layer_fd, "", LAYER_ATTRIBUTES, &spawn->policy_fd);

    if (r < 0)
        return error_set(err, ERROR_SYSTEM, -r, "copying the policy layer's mount");
    spawn->programs = policy_programs(policy);
    spawn->flags |= WIRE_SPAWN_ONLY;
    return 0;
}

/* CVE-2021-30465, CVE-2026-47766: a symlink where a mount is to go would lead the mount elsewhere. */
static int check_folder(int root, const char *path, bool needed, struct error *err)
{
    int fd = mnt_open_folder(root, path);

    if (fd >= 0) {
        (void)close(fd);
        return 0;
    }
    if (fd == -ENOENT)
        return needed
                   ? error_set(err, ERROR_INVALID, ENOENT, "the root folder has no /%s; make it an empty folder", path)
                   : 0;
    if (fd == -ELOOP)
        return error_set(err, ERROR_INVALID, ELOOP, "/%s in the root folder is or lies behind a symlink", path);
    return error_set(err, ERROR_INVALID, -fd, "/%s in the root folder", path);
}

int template_open_folder(int folder_fd, struct spawn *spawn, struct error *err)
{
    static const struct {
        const char *path;
        bool needed;
    } folders[] = {
        {"dev", true},
        {"proc", true},
        {"run", true},
        {"tmp", true},
        {"workspace", false},
        {"home", false},
        {"home/sandbox", false},
        {"mnt", false},
        {"mnt/user-data", false},
        {"mnt/user-data/outputs", false},
    };

    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        int r = check_folder(folder_fd, folders[i].path, folders[i].needed, err);
        if (r < 0)
            return r;
    }
    return add_layer(folder_fd, spawn, err);
}

void template_close(struct spawn *spawn)
{
    fd_close_many(spawn->layer_fds, spawn->layer_count);
    spawn->layer_count = 0;
    close_fd(&spawn->usr_fd);
    close_fd(&spawn->policy_fd);
}
