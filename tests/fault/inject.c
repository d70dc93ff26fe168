/*
 * inject: runs hutch and has one system call of one of its processes fail, or that process killed there.
 *
 *     inject --log FILE -- COMMAND...                               write down every call
 *     inject --log FILE ROLE KEY NTH ERROR -- COMMAND...            fail the NTH call KEY of ROLE with the errno ERROR;
 *                                                                   -1: kill the process in front of it
 *                                                                   -2: kill the keeper then
 *
 * AS ROOT, tests only. A tracer of the whole tree, so that what fails is the real program, also where it has given up
 * every privilege and loaded its own filters. The call is not made: another one that has no effect is made in its
 * place, and its result replaced. Only close() is made all the same, as the kernel does it whatever it answers.
 *
 * Who a process is follows from who made it: keeper (the command), zygote, helper (other children of the keeper), child
 * (of the zygote), init (the child after its execve), launch (init's, until execve). Other programs are let go. A
 * call's KEY is its name and those of its arguments that are the same in each run: the last part of a path, what a
 * descriptor is open on, an option's number. `malloc` is a call of the fault build alone (alloc.c).
 *
 * Ends when all have ended, with the status of the command; "hit" in the log says that there was such a call.
 */
#include "fault.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <seccomp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FAULT_ORPHAN = -2 };
enum { TRACEES_MAX = 64, KEY_SIZE = 128, EXIT_INJECT = 250 };

enum role { ROLE_UNKNOWN, ROLE_KEEPER, ROLE_ZYGOTE, ROLE_HELPER, ROLE_CHILD, ROLE_INIT, ROLE_LAUNCH, ROLE_OTHER };

static const char *const role_names[] = {"unknown", "keeper", "zygote", "helper", "child", "init", "launch", "other"};

struct tracee {
    pid_t pid; /* 0: free */
    enum role role;
    bool is_stopped; /* before its maker said who it is */
    bool is_failing; /* its result is to be replaced */
};

static struct {
    struct tracee tracees[TRACEES_MAX];
    pid_t command;
    int command_status;
    bool has_zygote;
    FILE *log;
    const char *role; /* NULL: write down only */
    const char *key;
    long left; /* such calls until it is the one */
    int error;
} inject;

/* Which arguments of a call are told: p a path, f a descriptor, n a number, c the flags of a clone3. */
static const struct {
    long number;
    const char *arguments;
} shown[] = {
    {SYS_open, "p"},
    {SYS_openat, "fp"},
    {SYS_openat2, "fp"},
    {SYS_mkdir, "p"},
    {SYS_mkdirat, "fp"},
    {SYS_unlinkat, "fp"},
    {SYS_faccessat, "fp"},
    {SYS_access, "p"},
    {SYS_stat, "p"},
    {SYS_lstat, "p"},
    {SYS_newfstatat, "fp"},
    {SYS_readlink, "p"},
    {SYS_readlinkat, "fp"},
    {SYS_fchownat, "fp"},
    {SYS_fchmodat, "fp"},
    {SYS_mknodat, "fp"},
    {SYS_symlinkat, "--p"},
    {SYS_renameat2, "fp"},
    {SYS_renameat, "fp"},
    {SYS_execve, "p"},
    {SYS_execveat, "fp"},
    {SYS_fsopen, "p"},
    {SYS_fsconfig, "-np"},
    {SYS_move_mount, "---p"},
    {SYS_mount_setattr, "fp"},
    {SYS_open_tree, "fp"},
    {SYS_mount, "-pp"},
    {SYS_prctl, "n"},
    {SYS_fcntl, "fn"},
    {SYS_ioctl, "fn"},
    {SYS_keyctl, "n"},
    {SYS_prlimit64, "-n"},
    {SYS_setrlimit, "n"},
    {SYS_write, "f"},
    {SYS_pwrite64, "f"},
    {SYS_writev, "f"},
    {SYS_read, "f"},
    {SYS_pread64, "f"},
    {SYS_fstat, "f"},
    {SYS_ftruncate, "f"},
    {SYS_fchdir, "f"},
    {SYS_fchmod, "f"},
    {SYS_fchown, "f"},
    {SYS_flock, "f"},
    {SYS_getdents64, "f"},
    {SYS_sendmsg, "f"},
    {SYS_recvmsg, "f"},
    {SYS_socket, "nn"},
    {SYS_setsockopt, "fnn"},
    {SYS_seccomp, "n"},
    {SYS_setxattr, "p-"},
    {SYS_removexattr, "p"},
    {SYS_epoll_ctl, "fn"},
    {SYS_unshare, "n"},
    {SYS_clone3, "c"},
    {SYS_rt_sigprocmask, "n"},
    {SYS_chdir, "p"},
    {SYS_umount2, "p"},
    {SYS_landlock_add_rule, "-n"},
    {SYS_inotify_add_watch, "fp"},
};

static _Noreturn void die(const char *what)
{
    (void)fprintf(stderr, "inject: %s: %s\n", what, strerror(errno));
    _exit(EXIT_INJECT);
}

static struct tracee *find(pid_t pid)
{
    for (size_t i = 0; i < TRACEES_MAX; i++) {
        if (inject.tracees[i].pid == pid)
            return &inject.tracees[i];
    }
    return NULL;
}

static struct tracee *find_or_add(pid_t pid)
{
    struct tracee *tracee = find(pid);

    if (tracee != NULL)
        return tracee;
    tracee = find(0);
    if (tracee == NULL) {
        errno = ENOSPC;
        die("too many processes");
    }
    *tracee = (struct tracee){.pid = pid};
    return tracee;
}

static __attribute__((format(printf, 2, 3))) void append(char *key, const char *format, ...)
{
    size_t used = strlen(key);
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(key + used, KEY_SIZE - used, format, arguments);
    va_end(arguments);
}

/* The last part of a path or of a descriptor's name, without what differs from run to run. */
static void append_name(char *key, const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash != NULL && slash[1] != '\0' ? slash + 1 : path;
    char text[64] = "";
    size_t used = 0;

    while (*name != '\0' && strchr("[]:", *name) == NULL && used < sizeof text - 2) {
        size_t hex = strspn(name, "0123456789abcdef");
        size_t digits = strspn(name, "0123456789");
        if (hex >= 8 || digits >= 2) {
            text[used++] = 'N';
            name += hex >= 8 ? hex : digits;
        } else {
            text[used++] = isgraph((unsigned char)*name) != 0 ? *name : '_';
            name++;
        }
    }
    append(key, " %s", used > 0 ? text : path[0] == '\0' ? "\"\"" : "/");
}

static void append_path(char *key, pid_t pid, uint64_t address)
{
    char text[4096] = "";
    struct iovec here = {.iov_base = text, .iov_len = sizeof text - 1};
    struct iovec there = {.iov_base = (void *)(uintptr_t)address, .iov_len = sizeof text - 1};

    if (address == 0)
        return;
    /* Not over the end of what is mapped. */
    if (process_vm_readv(pid, &here, 1, &there, 1, 0) < 0) {
        there.iov_len = 4096 - (size_t)(address & 4095);
        if (process_vm_readv(pid, &here, 1, &there, 1, 0) < 0)
            return;
    }
    append_name(key, text);
}

static void append_fd(char *key, pid_t pid, int fd)
{
    char link[64];
    char target[512];

    if (fd < 0)
        return; /* AT_FDCWD */
    (void)snprintf(link, sizeof link, "/proc/%d/fd/%d", pid, fd);
    ssize_t n = readlink(link, target, sizeof target - 1);
    target[n > 0 ? n : 0] = '\0';
    /* Of "anon_inode:[eventpoll]" the second part. */
    append_name(key, strncmp(target, "anon_inode:", 11) == 0 ? target + 11 + (target[11] == '[' ? 1 : 0) : target);
}

static void append_clone(char *key, pid_t pid, uint64_t address)
{
    uint64_t flags = 0;
    struct iovec here = {.iov_base = &flags, .iov_len = sizeof flags};
    struct iovec there = {.iov_base = (void *)(uintptr_t)address, .iov_len = sizeof flags};

    if (process_vm_readv(pid, &here, 1, &there, 1, 0) > 0)
        append(key, " %llx", (unsigned long long)flags);
}

static void describe(const struct tracee *tracee, const struct __ptrace_syscall_info *info, char key[KEY_SIZE])
{
    long number = (long)info->entry.nr;
    char *name = number == FAULT_CALL ? NULL : seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, (int)number);

    (void)snprintf(key, KEY_SIZE, "%s", number == FAULT_CALL ? "malloc" : name != NULL ? name : "?");
    free(name);
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++) {
        if (shown[i].number != number)
            continue;
        for (size_t a = 0; shown[i].arguments[a] != '\0'; a++) {
            uint64_t value = info->entry.args[a];
            switch (shown[i].arguments[a]) {
            case 'p':
                append_path(key, tracee->pid, value);
                break;
            case 'f':
                append_fd(key, tracee->pid, (int)value);
                break;
            case 'n':
                append(key, " %llu", (unsigned long long)(uint32_t)value);
                break;
            case 'c':
                append_clone(key, tracee->pid, value);
                break;
            default:
                break;
            }
        }
    }
}

static void resume(struct tracee *tracee, int signal_number)
{
    bool is_over = inject.role != NULL && inject.left == 0 && !tracee->is_failing;

    /* One that was killed meanwhile is heard of by wait. */
    (void)ptrace(is_over ? PTRACE_CONT : PTRACE_SYSCALL, tracee->pid, NULL, (void *)(intptr_t)signal_number);
}

static void replace_call(struct tracee *tracee, long number)
{
    struct user_regs_struct registers;

    tracee->is_failing = true;
    if (number == SYS_close || number == FAULT_CALL)
        return;
    if (ptrace(PTRACE_GETREGS, tracee->pid, NULL, &registers) < 0)
        return;
    /* -1 would be refused by every filter, and some kill. */
    registers.orig_rax = SYS_getppid;
    (void)ptrace(PTRACE_SETREGS, tracee->pid, NULL, &registers);
}

static void on_entry(struct tracee *tracee, const struct __ptrace_syscall_info *info)
{
    char key[KEY_SIZE];
    const char *role = role_names[tracee->role];

    if (inject.role == NULL) {
        describe(tracee, info, key);
        (void)fprintf(inject.log, "%s\t%s\n", role, key);
        return;
    }
    if (inject.left == 0 || strcmp(role, inject.role) != 0)
        return;
    describe(tracee, info, key);
    if (strcmp(key, inject.key) != 0 || --inject.left > 0)
        return;
    (void)fprintf(inject.log, "hit\n");
    (void)fflush(inject.log);
    if (inject.error < 0)
        (void)kill(inject.error == FAULT_ORPHAN ? inject.command : tracee->pid, SIGKILL);
    else
        replace_call(tracee, (long)info->entry.nr);
}

static void on_return(struct tracee *tracee)
{
    struct user_regs_struct registers;

    if (!tracee->is_failing)
        return;
    tracee->is_failing = false;
    if (ptrace(PTRACE_GETREGS, tracee->pid, NULL, &registers) < 0)
        return;
    registers.rax = (unsigned long long)-(long long)inject.error;
    (void)ptrace(PTRACE_SETREGS, tracee->pid, NULL, &registers);
}

static void on_call(struct tracee *tracee)
{
    struct __ptrace_syscall_info info = {0};

    if (ptrace(PTRACE_GET_SYSCALL_INFO, tracee->pid, sizeof info, &info) > 0) {
        if (info.op == PTRACE_SYSCALL_INFO_ENTRY)
            on_entry(tracee, &info);
        else if (info.op == PTRACE_SYSCALL_INFO_EXIT)
            on_return(tracee);
    }
    resume(tracee, 0);
}

static enum role role_of_child(enum role maker)
{
    switch (maker) {
    case ROLE_KEEPER:
        if (inject.has_zygote)
            return ROLE_HELPER;
        inject.has_zygote = true;
        return ROLE_ZYGOTE;
    case ROLE_ZYGOTE:
        return ROLE_CHILD;
    case ROLE_INIT:
        return ROLE_LAUNCH;
    case ROLE_UNKNOWN:
    case ROLE_HELPER:
    case ROLE_CHILD:
    case ROLE_LAUNCH:
    case ROLE_OTHER:
    default:
        return ROLE_OTHER;
    }
}

static void on_child(const struct tracee *maker)
{
    unsigned long pid = 0;

    if (ptrace(PTRACE_GETEVENTMSG, maker->pid, NULL, &pid) < 0)
        return;
    struct tracee *made = find_or_add((pid_t)pid);
    made->role = role_of_child(maker->role);
    if (made->is_stopped) {
        made->is_stopped = false;
        resume(made, 0);
    }
}

/* True when it is none of ours any more, and let go. */
static bool on_exec(struct tracee *tracee)
{
    switch (tracee->role) {
    case ROLE_UNKNOWN:
        tracee->role = ROLE_KEEPER;
        return false;
    case ROLE_CHILD:
        tracee->role = ROLE_INIT;
        return false;
    case ROLE_KEEPER:
    case ROLE_ZYGOTE:
    case ROLE_HELPER:
    case ROLE_INIT:
    case ROLE_LAUNCH:
    case ROLE_OTHER:
    default:
        (void)ptrace(PTRACE_DETACH, tracee->pid, NULL, NULL);
        tracee->pid = 0;
        return true;
    }
}

static void on_stop(struct tracee *tracee, int status)
{
    int signal_number = WSTOPSIG(status);

    switch (status >> 16) {
    case PTRACE_EVENT_FORK:
    case PTRACE_EVENT_VFORK:
    case PTRACE_EVENT_CLONE:
        on_child(tracee);
        break;
    case PTRACE_EVENT_EXEC:
        if (on_exec(tracee))
            return;
        break;
    case PTRACE_EVENT_STOP:
        if (tracee->role == ROLE_UNKNOWN && tracee->pid != inject.command) {
            tracee->is_stopped = true;
            return;
        }
        if (signal_number == SIGSTOP || signal_number == SIGTSTP || signal_number == SIGTTIN ||
            signal_number == SIGTTOU) {
            (void)ptrace(PTRACE_LISTEN, tracee->pid, NULL, NULL);
            return;
        }
        break;
    case 0:
        if (signal_number == (SIGTRAP | 0x80)) {
            on_call(tracee);
            return;
        }
        resume(tracee, signal_number);
        return;
    default:
        break;
    }
    resume(tracee, 0);
}

static void start(char **argv)
{
    int go[2];
    char byte = 0;

    if (pipe2(go, O_CLOEXEC) < 0)
        die("pipe");
    pid_t pid = fork();
    if (pid < 0)
        die("fork");
    if (pid == 0) {
        if (read(go[0], &byte, 1) == 1)
            (void)execv(argv[0], argv);
        die(argv[0]);
    }
    inject.command = pid;
    (void)find_or_add(pid);
    if (ptrace(PTRACE_SEIZE, pid, NULL,
               (void *)(uintptr_t)(PTRACE_O_EXITKILL | PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEFORK |
                                   PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC)) < 0)
        die("PTRACE_SEIZE");
    /* It runs freely until its execve stops it; from then on every call does. */
    if (write(go[1], &byte, 1) != 1)
        die("write");
    (void)close(go[0]);
    (void)close(go[1]);
}

static int follow(void)
{
    int status;
    pid_t pid;

    while ((pid = waitpid(-1, &status, __WALL)) > 0 || errno == EINTR) {
        if (pid < 0)
            continue;
        if (WIFSTOPPED(status)) {
            on_stop(find_or_add(pid), status);
            continue;
        }
        struct tracee *tracee = find(pid);
        if (tracee != NULL)
            tracee->pid = 0;
        if (pid == inject.command)
            inject.command_status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    }
    return inject.command_status;
}

int main(int argc, char **argv)
{
    int at = 3;

    if (argc < 5 || strcmp(argv[1], "--log") != 0) {
        errno = EINVAL;
        die("usage: inject --log FILE [ROLE KEY NTH ERROR] -- COMMAND...");
    }
    inject.log = fopen(argv[2], "we");
    if (inject.log == NULL)
        die(argv[2]);
    if (argc > 8 && strcmp(argv[3], "--") != 0) {
        inject.role = argv[3];
        inject.key = argv[4];
        inject.left = strtol(argv[5], NULL, 10);
        inject.error = (int)strtol(argv[6], NULL, 10);
        at = 7;
    }
    if (strcmp(argv[at], "--") != 0 || argv[at + 1] == NULL) {
        errno = EINVAL;
        die("no command");
    }
    start(argv + at + 1);
    int r = follow();
    (void)fclose(inject.log);
    return r;
}
