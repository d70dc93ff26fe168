/*
 * Theory of operation. The process is made by clone3 with CLONE_VFORK | CLONE_VM: it borrows init's memory until
 * execve, so nothing is copied, and tells what failed by writing it down where init finds it. Until then it touches
 * nothing but its own stack frames and `struct launch`. CLONE_INTO_CGROUP puts it into its cgroup before it exists.
 */
#include "init/command.h"

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/sys.h"
#include "init/confine.h"
#include "init/terminal.h"
#include "wire/filter.h"

#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>

static const struct sock_filter tight[] = {
#include "tight.inc"
};

static const struct sock_filter standard[] = {
#include "standard.inc"
};

struct launch {
    const struct wire_exec *exec;
    char **argv;
    char **envp;
    int fds[3];
    int error;
    enum wire_failed failed;
};

static int set_limits(const struct wire_exec *exec)
{
    const struct {
        int resource;
        uint64_t value; /* 0: as it is */
    } limits[] = {
        {RLIMIT_NOFILE, exec->open_files},
        {RLIMIT_FSIZE, exec->file_bytes},
        {RLIMIT_STACK, exec->stack_bytes},
        {RLIMIT_CPU, exec->cpu_seconds},
    };

    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        struct rlimit limit = {limits[i].value, limits[i].value};
        if (limits[i].value != 0 && sys_prlimit(limits[i].resource, &limit, NULL) < 0)
            return -errno;
    }
    return 0;
}

static int load_filter(uint8_t which)
{
    return which == WIRE_FILTER_TIGHT ? filter_load(tight, sizeof tight) : filter_load(standard, sizeof standard);
}

/* As execvpe does it, but with the PATH of the command's own environment. -errno; a program that exists but can't be
 * executed is told apart from one that does not exist. */
static int execute(char **argv, char **envp)
{
    const char *path = "/usr/local/bin:/usr/bin:/bin";
    int error = ENOENT;

    if (strchr(argv[0], '/') != NULL) {
        (void)execve(argv[0], argv, envp);
        return -errno;
    }
    for (char **entry = envp; *entry != NULL; entry++) {
        if (strncmp(*entry, "PATH=", 5) == 0)
            path = *entry + 5;
    }
    while (*path != '\0') {
        char file[4096];
        size_t folder = strcspn(path, ":");
        size_t name = strlen(argv[0]);
        if (folder > 0 && folder + 1 + name < sizeof file) {
            memcpy(file, path, folder);
            file[folder] = '/';
            memcpy(file + folder + 1, argv[0], name + 1);
            (void)execve(file, argv, envp);
            if (errno != ENOENT && errno != ENOTDIR)
                error = errno;
        }
        path += folder + (path[folder] == ':' ? 1 : 0);
    }
    return -error;
}

static int prepare_and_execute(struct launch *launch)
{
    const struct wire_exec *exec = launch->exec;
    sigset_t none;

    (void)sigemptyset(&none);
    if (setsid() < 0 || sigprocmask(SIG_SETMASK, &none, NULL) < 0)
        return -errno;
    /* The leader of a new session: its terminal, with its group in the foreground. */
    if ((exec->flags & WIRE_EXEC_TTY) != 0 && ioctl(launch->fds[0], TIOCSCTTY, 0) < 0)
        return -errno;
    for (int fd = 0; fd < 3; fd++) {
        if (dup2(launch->fds[fd], fd) < 0)
            return -errno;
    }
    int r = confine_apart();
    if (r == 0)
        r = set_limits(exec);
    if (r == 0)
        r = confine_user(exec->uid, exec->gid);
    if (r < 0)
        return r;
    launch->failed = WIRE_FAILED_FOLDER;
    if (chdir(exec->folder.length > 0 ? exec->folder.text : "/") < 0)
        return -errno;
    launch->failed = WIRE_FAILED_SETUP;
    r = load_filter(exec->filter);
    if (r < 0)
        return r;
    launch->failed = WIRE_FAILED_PROGRAM;
    return execute(launch->argv, launch->envp);
}

static _Noreturn void run_child(struct launch *launch)
{
    launch->error = -prepare_and_execute(launch);
    _exit(127);
}

/*
 * clone3 with borrowed memory, inline: a wrapper's return address would be on the stack that both use. Without a
 * stack of its own the child runs on ours, below this frame, until execve; we are stopped for so long.
 */
__attribute__((noinline)) static pid_t clone_and_run(struct clone_args *args, struct launch *launch)
{
    long result;
#ifndef __x86_64__
#error "written for x86-64: with a copy of its memory the child could not say what failed"
#endif
    __asm__ volatile("syscall" : "=a"(result) : "a"(SYS_clone3), "D"(args), "S"(sizeof *args) : "rcx", "r11", "memory");
    if (result < 0)
        launch->error = (int)-result;
    if (result == 0)
        run_child(launch);
    return (pid_t)result;
}

/* Pointers to `count` strings from *text on, which moves behind them; NULL when they are not there. */
static char **point_at(const char **text, const char *end, uint32_t count)
{
    char **list = count <= end - *text ? calloc((size_t)count + 1, sizeof *list) : NULL;

    if (list == NULL)
        return NULL;
    for (uint32_t i = 0; i < count; i++) {
        const char *next = memchr(*text, '\0', (size_t)(end - *text));
        if (next == NULL) {
            free((void *)list);
            return NULL;
        }
        list[i] = (char *)(uintptr_t)*text; /* execve's own type forgot the const */
        *text = next + 1;
    }
    return list;
}

static int launch(struct launch *launch, int cgroup_fd, pid_t *ret_pid)
{
    struct clone_args args = {.flags = CLONE_VM | CLONE_VFORK, .exit_signal = SIGCHLD};

    if (cgroup_fd >= 0) {
        args.flags |= CLONE_INTO_CGROUP;
        args.cgroup = (uint64_t)(unsigned)cgroup_fd;
    }
    pid_t pid = clone_and_run(&args, launch);
    if (pid < 0 || launch->error != 0)
        return launch->error != 0 ? -launch->error : -EAGAIN;
    *ret_pid = pid;
    return 0;
}

static int make_pipes(bool with_stdin, int inner[3], struct command_pipes *outer)
{
    int ends[2];

    for (int fd = 0; fd < 3; fd++) {
        if (fd == 0 && !with_stdin) {
            inner[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
            if (inner[0] < 0)
                return -errno;
            continue;
        }
        if (pipe2(ends, O_CLOEXEC) < 0)
            return -errno;
        inner[fd] = ends[fd == 0 ? 0 : 1];
        int *ours = fd == 0 ? &outer->stdin_fd : fd == 1 ? &outer->stdout_fd : &outer->stderr_fd;
        *ours = ends[fd == 0 ? 1 : 0];
        if (fcntl(*ours, F_SETFL, O_NONBLOCK) < 0)
            return -errno;
    }
    return 0;
}

static int make_terminal(const struct wire_exec *exec, int inner[3], struct command_pipes *outer)
{
    int r = terminal_open(exec->uid, exec->rows, exec->columns, &outer->stdout_fd, &outer->slave_fd);

    for (int fd = 0; r == 0 && fd < 3; fd++)
        inner[fd] = outer->slave_fd;
    return r;
}

static void close_pipes(struct command_pipes *pipes)
{
    close_fd(&pipes->stdin_fd);
    close_fd(&pipes->stdout_fd);
    close_fd(&pipes->stderr_fd);
    close_fd(&pipes->slave_fd);
}

int command_start(const struct wire_exec *exec, const char *strings, size_t length, int cgroup_fd,
                  struct command_pipes *ret_pipes, pid_t *ret_pid, enum wire_failed *ret_failed)
{
    struct command_pipes pipes = {-1, -1, -1, -1};
    const char *end = strings + length;
    bool has_terminal = (exec->flags & WIRE_EXEC_TTY) != 0;
    struct launch start = {.exec = exec, .fds = {-1, -1, -1}, .failed = WIRE_FAILED_SETUP};

    *ret_failed = WIRE_FAILED_SETUP;
    if (exec->argc == 0 || exec->filter > WIRE_FILTER_STANDARD)
        return -EINVAL;
    start.argv = point_at(&strings, end, exec->argc);
    start.envp = start.argv != NULL ? point_at(&strings, end, exec->envc) : NULL;
    int r = start.envp == NULL ? -EINVAL
            : has_terminal     ? make_terminal(exec, start.fds, &pipes)
                               : make_pipes((exec->flags & WIRE_EXEC_STDIN) != 0, start.fds, &pipes);
    if (r < 0 && has_terminal && start.envp != NULL)
        start.failed = WIRE_FAILED_TERMINAL;
    if (r == 0)
        r = launch(&start, cgroup_fd, ret_pid);
    *ret_failed = start.failed;
    if (!has_terminal)
        fd_close_many(start.fds, 3);
    free((void *)start.argv);
    free((void *)start.envp);
    if (r < 0) {
        close_pipes(&pipes);
        return r;
    }
    *ret_pipes = pipes;
    return 0;
}
