#include "init/confine.h"

#include "base/fd.h"
#include "base/sys.h"
#include "wire/capability.h"
#include "wire/wire.h"

#include <sys/stat.h>

#define OOM_SCORE "800" /* above init's: when memory runs out a command goes, not PID 1 */

int confine_open_proc(void)
{
    struct stat st;

    if (fstat(WIRE_PROC_FD, &st) == 0 && S_ISDIR(st.st_mode))
        return fcntl(WIRE_PROC_FD, F_SETFD, FD_CLOEXEC) < 0 ? -errno : 0;
    int fd = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    if (fd == WIRE_PROC_FD)
        return 0;
    int r = dup3(fd, WIRE_PROC_FD, O_CLOEXEC) < 0 ? -errno : 0;
    (void)close(fd);
    return r;
}

int confine_apart(void)
{
    int r = fd_write_file(WIRE_PROC_FD, "self/oom_score_adj", OOM_SCORE);

    if (r < 0)
        return r;
    /* Not only on execve: a working folder of /proc/self/fd/N would still find init's (CVE-2024-21626). */
    return sys_close_range(3, ~0U, 0) < 0 ? -errno : 0;
}

/* Plain system calls: a libc's own may think that it has threads to tell. */
int confine_user(uint32_t uid, uint32_t gid)
{
    uint64_t allowed = uid == 0 ? CAPABILITIES_ROOT : CAPABILITIES_NONE;
    int r = capability_bound(CAPABILITIES_INIT, allowed);

    if (r < 0)
        return r;
    if (syscall(SYS_setgroups, 0, NULL) < 0 || syscall(SYS_setresgid, gid, gid, gid) < 0 ||
        syscall(SYS_setresuid, uid, uid, uid) < 0)
        return -errno;
    return capability_set(allowed);
}
