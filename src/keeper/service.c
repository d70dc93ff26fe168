/*
 * Theory of operation. The child of a clone with its namespaces takes the steps in `steps` one after the other, from
 * building its root to loading the filter, and executes the program. A pipe that closes by itself at that moment tells
 * the keeper how it went: nothing when it did, else the step and the errno.
 */
#include "keeper/service.h"

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/sys.h"
#include "keeper/dev.h"
#include "keeper/mnt.h"
#include "keeper/proc.h"
#include "wire/capability.h"
#include "wire/filter.h"

#include <grp.h>
#include <limits.h>
#include <linux/close_range.h>
#include <linux/keyctl.h>
#include <poll.h>
#include <pwd.h>
#include <sched.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum {
    FIRST_FD = 3,
    OPEN_FILES = 1048576,
    ROOT_ATTRIBUTES = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC,
};

static const struct sock_filter gateway_filter[] = {
#include "gateway.inc"
};
static const struct sock_filter airlock_filter[] = {
#include "airlock.inc"
};

struct start {
    const struct service *service;
    int told_fd;
    int program_fd;
    int root_fd;
    int state_fd; /* a mount of its state folder, -1 without: it can be made only where the folder is */
};

struct outcome {
    uint32_t step;
    int32_t error;
};

/* As on the host: a link into /usr, or a folder of its own; or there is none. */
static int add_usual_folder(int root, const char *name)
{
    char path[32] = "/";
    char target[PATH_MAX];
    _cleanup_fd_ int fd = -1;

    (void)strncat(path, name, sizeof path - 2);
    ssize_t n = readlink(path, target, sizeof target - 1);
    if (n >= 0) {
        target[n] = '\0';
        return symlinkat(target, root, name) < 0 ? -errno : 0;
    }
    if (errno == ENOENT)
        return 0;
    int r = mnt_copy(AT_FDCWD, path, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, &fd);
    if (r == 0)
        r = mnt_make_folders(root, name);
    return r < 0 ? r : mnt_attach(fd, root, name);
}

/* Where the loader looks for libraries first. */
static int add_loader_cache(int root)
{
    _cleanup_fd_ int fd = -1;

    if (access("/etc/ld.so.cache", F_OK) < 0)
        return 0;
    int r = mnt_make_folders(root, "etc");
    _cleanup_fd_ int file = openat(root, "etc/ld.so.cache", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
    if (r == 0 && file < 0)
        r = -errno;
    if (r == 0)
        r = mnt_copy(AT_FDCWD, "/etc/ld.so.cache", MOUNT_ATTR_RDONLY | ROOT_ATTRIBUTES, &fd);
    return r < 0 ? r : mnt_attach(fd, root, "etc/ld.so.cache");
}

/* Of v1; into that of v2 it was cloned. */
static int enter_cgroup(struct start *start)
{
    const struct cgroup_entry *cgroup = start->service->cgroup;

    for (size_t i = 0; cgroup != NULL && i < cgroup->task_count; i++) {
        if (write(cgroup->tasks[i], "0", 1) != 1)
            return -errno;
    }
    return 0;
}

/* A daemon that the host's memory must not cost its life does not pass that on. */
static int lower_value(struct start *start)
{
    static const char path[] = "/proc/self/oom_score_adj";
    char score[16];

    (void)start;
    ssize_t n = fd_read_file(AT_FDCWD, path, score, sizeof score);
    if (n < 0)
        return (int)n;
    return score[0] == '-' ? fd_write_file(AT_FDCWD, path, "0") : 0;
}

static int make_root(struct start *start)
{
    static const struct mnt_option options[] = {{"size", "64k"}, {"nr_inodes", "64"}, {"mode", "0755"}};

    if (sys_mount(NULL, "/", NULL, MS_REC | MS_PRIVATE) < 0)
        return -errno;
    int r = mnt_new("tmpfs", options, sizeof options / sizeof *options, ROOT_ATTRIBUTES, &start->root_fd);
    if (r < 0)
        return r;
    /* Anywhere: a folder that every host has. */
    if (sys_move_mount(start->root_fd, "", AT_FDCWD, "/proc", MOVE_MOUNT_F_EMPTY_PATH) < 0)
        return -errno;
    return 0;
}

static int fill_root(struct start *start)
{
    static const char *const usual[] = {"usr", "lib", "lib64", "lib32"};
    int root = start->root_fd;
    int r = 0;

    for (size_t i = 0; r == 0 && i < sizeof usual / sizeof *usual; i++)
        r = add_usual_folder(root, usual[i]);
    if (r == 0)
        r = add_loader_cache(root);
    if (r == 0 && start->state_fd >= 0)
        r = mnt_make_folders(root, "state");
    return r == 0 && start->state_fd >= 0 ? mnt_attach(start->state_fd, root, "state") : r;
}

static int add_devices(struct start *start)
{
    _cleanup_fd_ int dev = -1;
    struct error err;
    int r = dev_new(&dev, &err);

    if (r == 0)
        r = mnt_make_folders(start->root_fd, "dev");
    return r < 0 ? r : mnt_attach(dev, start->root_fd, "dev");
}

/* AddressSanitizer reads its own /proc/self/maps; no program that is released has one. */
static int add_proc(struct start *start)
{
#ifdef HUTCH_SANITIZED
    _cleanup_fd_ int proc = -1;
    int r = proc_new(-1, &proc);

    if (r == 0)
        r = mnt_make_folders(start->root_fd, "proc");
    return r < 0 ? r : mnt_attach(proc, start->root_fd, "proc");
#else
    (void)start;
    return 0;
#endif
}

static int enter_root(struct start *start)
{
    struct mount_attr read_only = {.attr_set = MOUNT_ATTR_RDONLY};

    if (sys_mount_setattr(start->root_fd, "", AT_EMPTY_PATH, &read_only) < 0)
        return -errno;
    if (fchdir(start->root_fd) < 0 || sys_pivot_root(".", ".") < 0 || sys_umount2(".", SYS_UMOUNT_DETACH) < 0)
        return -errno;
    return chdir(start->service->state_fd >= 0 ? "/state" : "/") < 0 ? -errno : 0;
}

/* Neither the caller's signals nor its session. */
static int leave_caller(struct start *start)
{
    static const struct sigaction by_default = {.sa_handler = SIG_DFL};
    sigset_t none;

    (void)start;
    for (int number = 1; number < NSIG; number++) {
        if (sigaction(number, &by_default, NULL) < 0 && errno != EINVAL)
            return -errno;
    }
    (void)sigemptyset(&none);
    (void)umask(0077);
    if (syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL) < 0 && errno != ENOSYS)
        return -errno;
    return setsid() < 0 || sigprocmask(SIG_SETMASK, &none, NULL) < 0 ? -errno : 0;
}

static int arrange_descriptors(struct start *start)
{
    const struct service *service = start->service;
    int first_free = FIRST_FD + SERVICE_FDS_MAX;
    int high[SERVICE_FDS_MAX];
    int input = service->input_fd >= 0 ? fcntl(service->input_fd, F_DUPFD_CLOEXEC, first_free)
                                       : open("/dev/null", O_RDONLY | O_CLOEXEC);
    int output = open("/dev/null", O_WRONLY | O_CLOEXEC);
    int error = fcntl(service->error_fd, F_DUPFD_CLOEXEC, first_free);

    for (size_t i = 0; i < service->fd_count; i++) {
        high[i] = fcntl(service->fds[i], F_DUPFD_CLOEXEC, first_free);
        if (high[i] < 0)
            return -errno;
    }
    start->program_fd = fcntl(service->program_fd, F_DUPFD_CLOEXEC, first_free);
    int told = fcntl(start->told_fd, F_DUPFD_CLOEXEC, first_free);
    if (input < 0 || output < 0 || error < 0 || start->program_fd < 0 || told < 0)
        return -errno;
    start->told_fd = told;
    if (dup2(input, STDIN_FILENO) < 0 || dup2(output, STDOUT_FILENO) < 0 || dup2(error, STDERR_FILENO) < 0)
        return -errno;
    for (size_t i = 0; i < service->fd_count; i++) {
        if (dup2(high[i], FIRST_FD + (int)i) < 0)
            return -errno;
    }
    /* What else there is closes itself at the execution. */
    return sys_close_range(FIRST_FD + (unsigned)service->fd_count, ~0U, CLOSE_RANGE_CLOEXEC) < 0 ? -errno : 0;
}

static int set_limits(struct start *start)
{
    /* 0 would let a core_pattern that pipes start its program all the same, as the host's root; 1 does not. */
    static const struct rlimit no_core = {1, 1};
    struct rlimit files = {OPEN_FILES, OPEN_FILES};
    struct rlimit cpu = {start->service->cpu_max, start->service->cpu_max};
    struct rlimit now;

    if (sys_prlimit(RLIMIT_CORE, &no_core, NULL) < 0)
        return -errno;
    if (sys_prlimit(RLIMIT_NOFILE, &files, NULL) < 0) {
        if (sys_prlimit(RLIMIT_NOFILE, NULL, &now) < 0)
            return -errno;
        now.rlim_cur = now.rlim_max;
        if (sys_prlimit(RLIMIT_NOFILE, &now, NULL) < 0)
            return -errno;
    }
    return start->service->cpu_max != 0 && sys_prlimit(RLIMIT_CPU, &cpu, NULL) < 0 ? -errno : 0;
}

static int drop_privileges(struct start *start)
{
    struct service_user user = start->service->user;
    int r = capability_bound(CAPABILITIES_ALL, CAPABILITIES_NONE);

    if (r < 0)
        return r;
    if (setgroups(0, NULL) < 0 || setresgid(user.gid, user.gid, user.gid) < 0 ||
        setresuid(user.uid, user.uid, user.uid) < 0)
        return -errno;
    r = capability_set(CAPABILITIES_NONE);
    if (r < 0)
        return r;
    /* After the last change of ids, which would clear it. */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
        return -errno;
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ? -errno : 0;
}

/*
 * After the change of ids: the count is of all that its user runs, other gateways too, and beyond the limit the kernel
 * would execute nothing.
 */
static int limit_processes(struct start *start)
{
    unsigned max = start->service->process_max;
    struct rlimit processes = {max, max};

    return max != 0 && sys_prlimit(RLIMIT_NPROC, &processes, NULL) < 0 ? -errno : 0;
}

static int load_filter(struct start *start)
{
    return start->service->is_airlock ? filter_load(airlock_filter, sizeof airlock_filter)
                                      : filter_load(gateway_filter, sizeof gateway_filter);
}

static const struct {
    const char *name;
    int (*take)(struct start *start);
} steps[] = {
    {"entering its cgroup", enter_cgroup},
    {"setting its OOM score", lower_value},
    {"making a root", make_root},
    {"attaching /usr and the state folder", fill_root},
    {"making /dev", add_devices},
    {"making /proc", add_proc},
    {"entering the root", enter_root},
    {"leaving the caller's session", leave_caller},
    {"arranging descriptors", arrange_descriptors},
    {"setting limits", set_limits},
    {"dropping privileges", drop_privileges},
    {"limiting its processes", limit_processes},
    {"loading the filter", load_filter},
};
enum { STEPS = sizeof steps / sizeof *steps };

static _Noreturn void become(struct start *start)
{
    struct outcome outcome = {0};

    for (; outcome.step < STEPS && outcome.error == 0; outcome.step++)
        outcome.error = -steps[outcome.step].take(start);
    if (outcome.error == 0) {
        (void)sys_execveat(start->program_fd, "", start->service->argv, start->service->environment, AT_EMPTY_PATH);
        outcome.error = errno;
    } else {
        outcome.step--;
    }
    ignore_result(write(start->told_fd, &outcome, sizeof outcome));
    _exit(1);
}

/* Until the pipe closes. */
static int hear(int fd, struct error *err)
{
    struct outcome outcome = {0};
    ssize_t n = fd_read_all(fd, &outcome, sizeof outcome);

    if (n == 0)
        return 0;
    if (n != (ssize_t)sizeof outcome)
        return error_set(err, ERROR_SYSTEM, EPIPE, "hearing from it");
    return error_set(err, ERROR_SYSTEM, outcome.error, "%s",
                     outcome.step < STEPS ? steps[outcome.step].name : "executing the program");
}

int service_begin(const struct service *service, struct service_begun *ret_begun, struct error *err)
{
    struct start start = {.service = service, .root_fd = -1, .state_fd = -1};
    int pidfd = -1;
    int told[2];
    struct clone_args args = {
        .flags = CLONE_PIDFD | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS |
                 (service->is_airlock ? 0 : CLONE_NEWNET),
        .pidfd = (uintptr_t)&pidfd,
        .exit_signal = SIGCHLD,
    };

    if (service->cgroup != NULL) {
        args.flags |= CLONE_INTO_CGROUP;
        args.cgroup = (uint64_t)(unsigned)service->cgroup->dir;
    }
    int made = service->state_fd >= 0 ? mnt_copy(service->state_fd, "", ROOT_ATTRIBUTES, &start.state_fd) : 0;
    if (made < 0)
        return error_set(err, ERROR_SYSTEM, -made, "copying the mount of the state folder");
    if (pipe2(told, O_CLOEXEC) < 0) {
        close_fd(&start.state_fd);
        return error_errno(err, "starting %s", service->argv[0]);
    }
    pid_t pid = sys_clone3(&args);
    if (pid == 0) {
        (void)close(told[0]);
        start.told_fd = told[1];
        become(&start);
    }
    int r = pid < 0 ? error_errno(err, "starting %s: cloning it", service->argv[0]) : 0;
    close_fd(&told[1]);
    close_fd(&start.state_fd);
    if (r < 0) {
        close_fd(&told[0]);
        return r;
    }
    *ret_begun = (struct service_begun){.name = service->argv[0], .pidfd = pidfd, .told_fd = told[0]};
    return 0;
}

int service_finish(struct service_begun *begun, int *ret_pidfd, struct error *err)
{
    int r = hear(begun->told_fd, err);

    close_fd(&begun->told_fd);
    if (r < 0) {
        (void)service_end(&begun->pidfd, 0);
        error_wrap(err, "starting %s", begun->name);
        return r;
    }
    *ret_pidfd = TAKE_FD(begun->pidfd);
    return 0;
}

int service_start(const struct service *service, int *ret_pidfd, struct error *err)
{
    struct service_begun begun = {.pidfd = -1, .told_fd = -1};
    int r = service_begin(service, &begun, err);

    return r < 0 ? r : service_finish(&begun, ret_pidfd, err);
}

int service_end(int *pidfd, int grace_ms)
{
    siginfo_t info = {0};

    if (*pidfd < 0)
        return 0;
    struct pollfd end = {.fd = *pidfd, .events = POLLIN};
    if (grace_ms > 0)
        (void)poll(&end, 1, grace_ms);
    (void)sys_pidfd_send_signal(*pidfd, SIGKILL);
    while (waitid(P_PIDFD, (id_t)*pidfd, &info, WEXITED) < 0 && errno == EINTR)
        continue;
    close_fd(pidfd);
    return info.si_code == CLD_EXITED ? info.si_status << 8 : info.si_status;
}

int service_find_user(const char *name, struct service_user *ret_user, struct error *err)
{
    const struct passwd *entry = getpwnam(name);

    if (entry != NULL && entry->pw_uid != 0 && entry->pw_gid == 0)
        return error_set(err, ERROR_INVALID, 0,
                         "the user '%s' has root's group; give it one of its own: groupadd --system %s; usermod "
                         "--gid %s %s",
                         name, name, name, name);
    if (entry == NULL || entry->pw_uid == 0)
        return error_set(
            err, ERROR_NOT_FOUND, 0,
            "there is no user '%s', which a service of Hutch's runs as: useradd --system --user-group --no-create-home "
            "--shell /usr/sbin/nologin %s",
            name, name);
    *ret_user = (struct service_user){.uid = entry->pw_uid, .gid = entry->pw_gid};
    return 0;
}
