#include "base/tree.h"

#include "base/cleanup.h"
#include "base/sys.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

enum { DEPTH_MAX = 64 };

static void remove_below(int dir, const char *name, int depth)
{
    if (unlinkat(dir, name, 0) == 0 || errno == ENOENT || depth > DEPTH_MAX)
        return;
    int fd = sys_openat2(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC, RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV);
    DIR *folder = fd >= 0 ? fdopendir(fd) : NULL;
    const struct dirent *entry;

    while (folder != NULL && (entry = readdir(folder)) != NULL) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            remove_below(fd, entry->d_name, depth + 1);
    }
    if (folder != NULL)
        (void)closedir(folder);
    else
        close_fd(&fd);
    (void)unlinkat(dir, name, AT_REMOVEDIR);
}

void tree_remove(int dir, const char *name)
{
    remove_below(dir, name, 0);
}
