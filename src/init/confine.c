#include "init/confine.h"

#include "base/fd.h"
#include "base/sys.h"
#include "wire/capability.h"

#define OOM_SCORE "800" /* above init's: when memory runs out a command goes, not PID 1 */

int confine_apart(void)
{
    /* Not only on execve: a working folder of /proc/self/fd/N would still find init's (CVE-2024-21626). */
    if (sys_close_range(3, ~0U, 0) < 0)
        return -errno;
    return fd_write_file(AT_FDCWD, "/proc/self/oom_score_adj", OOM_SCORE);
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
