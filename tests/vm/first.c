/*
 * first: the first process of the machine. Loads the modules that the disks need, mounts both disks and goes on from
 * one of them: nobody can pivot away from the file system that a kernel starts with, so sandboxes need another root.
 *
 * When it ends the kernel panics, which stops the machine; its last words are on the console.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#define START "/opt/hutch/tests/vm/start.sh"

static int complain(const char *what)
{
    (void)fprintf(stderr, "first: %s: %s\n", what, strerror(errno));
    return 1;
}

/* Modules are called 0, 1, ... in the order they need. */
static int load_modules(void)
{
    char path[32];

    for (int i = 0;; i++) {
        (void)snprintf(path, sizeof path, "/modules/%d", i);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
            return errno == ENOENT ? 0 : complain(path);
        if (syscall(SYS_finit_module, fd, "", 0) < 0)
            return complain(path);
        (void)close(fd);
    }
}

int main(void)
{
    static char start[] = START;
    char *const argv[] = {start, NULL};
    char *const envp[] = {NULL};

    if (mount("dev", "/dev", "devtmpfs", 0, NULL) < 0)
        return complain("mounting /dev");
    if (load_modules() != 0)
        return 1;
    if (mount("/dev/vda", "/root", "ext4", 0, NULL) < 0)
        return complain("mounting the root disk");
    if (mount("/dev/vdb", "/root/opt/hutch", "ext4", MS_RDONLY, NULL) < 0)
        return complain("mounting the disk with the tests");
    if (mount("/dev", "/root/dev", NULL, MS_MOVE, NULL) < 0)
        return complain("moving /dev");
    if (chdir("/root") < 0 || mount(".", "/", NULL, MS_MOVE, NULL) < 0 || chroot(".") < 0 || chdir("/") < 0)
        return complain("making the root disk the root");
    (void)execve(START, argv, envp);
    return complain(START);
}
