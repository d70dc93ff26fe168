#include "base/cleanup.h"
#include "base/fd.h"
#include "base/sys.h"
#include "cli/doctor/probes.h"
#include "wire/filter.h"
#include "wire/landlock.h"

#include <linux/keyctl.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/utsname.h>
#include <sys/wait.h>

enum { ANSWER_OF_FILTER = ENOTNAM };

void probe_kernel(struct probe *probe)
{
    struct utsname name;

    if (uname(&name) < 0)
        finding_no(probe, errno, "uname");
    else
#ifdef __x86_64__
        finding_yes(probe, "%s %s, x86-64", name.sysname, name.release);
#else
        finding_no(probe, 0, "%s %s on %s", name.sysname, name.release, name.machine);
#endif
}

static int try_openat2(void)
{
    _cleanup_fd_ int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    _cleanup_fd_ int usr =
        sys_openat2(root, "usr", O_PATH | O_CLOEXEC, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);

    return usr < 0 ? errno : 0;
}

static int try_close_range(void)
{
    return sys_close_range(~0U, ~0U, 0) < 0 ? errno : 0;
}

static int try_execveat(void)
{
    static char *const nothing[] = {NULL};

    (void)sys_execveat(-1, "", nothing, nothing, AT_EMPTY_PATH);
    return errno == EBADF ? 0 : errno;
}

static int try_unshare(void)
{
    return unshare(0) < 0 ? errno : 0;
}

void probe_calls(struct probe *probe)
{
    static const struct {
        const char *name;
        int (*try)(void);
    } calls[] = {{"openat2", try_openat2},
                 {"close_range", try_close_range},
                 {"execveat", try_execveat},
                 {"unshare", try_unshare}};

    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        int error = calls[i].try();
        if (error != 0) {
            finding_no(probe, error, "%s", calls[i].name);
            return;
        }
    }
    finding_yes(probe, "openat2, close_range, execveat, unshare");
}

void probe_pidfd(struct probe *probe)
{
    int pidfd = -1;
    siginfo_t info = {0};
    struct clone_args args = {.flags = CLONE_PIDFD, .pidfd = (uintptr_t)&pidfd, .exit_signal = SIGCHLD};
    pid_t pid = sys_clone3(&args);

    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;)
            (void)pause();
    }
    if (pid < 0) {
        finding_no(probe, errno, "clone3 with a pidfd");
        return;
    }
    bool sent = sys_pidfd_send_signal(pidfd, SIGKILL) == 0;
    int error = errno;
    if (!sent)
        (void)kill(pid, SIGKILL);
    bool waited = waitid(P_PIDFD, (id_t)pidfd, &info, WEXITED) == 0;
    if (sent && !waited)
        error = errno;
    if (sent && waited)
        finding_yes(probe, "clone3 with a pidfd, signal and wait through it");
    else
        finding_no(probe, error, "%s", sent ? "waiting for a pidfd" : "pidfd_send_signal");
    (void)close(pidfd);
}

void probe_seccomp(struct probe *probe)
{
    static const struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ANSWER_OF_FILTER),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0) {
        finding_no(probe, errno, "setting no_new_privs");
        return;
    }
    int r = filter_load(filter, sizeof filter);
    if (r < 0)
        finding_no(probe, -r, "loading a filter");
    else if (syscall(SYS_getppid) >= 0 || errno != ANSWER_OF_FILTER)
        finding_no(probe, 0, "a filter was loaded but does not hold");
    else
        finding_yes(probe, "a filter was loaded and holds");
}

/* Put this process into a domain with these rules. 0 or -errno. */
static int enter_domain(const struct landlock_rules *rules)
{
    _cleanup_fd_ int fd = landlock_new(rules);

    if (fd < 0)
        return fd;
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ? -errno : landlock_enter(fd);
}

/* Compiled in, but not among the security modules that were chosen at boot. */
static void mend_landlock(struct probe *probe)
{
    char now[120];
    ssize_t n = fd_read_file(AT_FDCWD, "/sys/kernel/security/lsm", now, sizeof now);

    finding_mend(probe, "add lsm=landlock,%s to GRUB_CMDLINE_LINUX in /etc/default/grub; then: update-grub && reboot",
                 n > 0 ? now : "$(cat /sys/kernel/security/lsm)");
}

void probe_landlock(struct probe *probe)
{
    static const struct landlock_rules no_reading = {.fs = LANDLOCK_ACCESS_FS_READ_FILE};
    int version = landlock_version();

    if (version < 0) {
        finding_no(probe, -version, "asking for its version");
        if (version == -EOPNOTSUPP)
            mend_landlock(probe);
        return;
    }
    int r = enter_domain(&no_reading);
    if (r < 0) {
        finding_no(probe, -r, "version %d, but entering a domain", version);
        return;
    }
    _cleanup_fd_ int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
    if (fd >= 0 || errno != EACCES)
        finding_no(probe, 0, "version %d, but a file that no rule names can be read", version);
    else
        finding_yes(probe, "version %d", version);
}

void probe_landlock_scopes(struct probe *probe)
{
    static const struct landlock_rules scopes = {.scoped = LANDLOCK_SCOPED_SOCKETS | LANDLOCK_SCOPED_SIGNALS};
    int version = landlock_version();

    if (version < LANDLOCK_VERSION_OF_SCOPES) {
        finding_no(probe, 0, "version %d; scopes came with %d (Linux 6.12)", version, LANDLOCK_VERSION_OF_SCOPES);
        return;
    }
    int r = enter_domain(&scopes);
    if (r < 0)
        finding_no(probe, -r, "entering a domain with scopes");
    else if (kill(getppid(), 0) == 0 || errno != EPERM)
        finding_no(probe, 0, "a signal leaves the domain");
    else
        finding_yes(probe, "signals and abstract sockets");
}

void probe_keyring(struct probe *probe)
{
    if (syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL) >= 0) {
        finding_yes(probe, "a session keyring of its own");
        return;
    }
    /* What is not there can't be shared. */
    if (errno == ENOSYS)
        finding_yes(probe, "the kernel has none");
    else
        finding_no(probe, errno, "joining a new session keyring");
}
