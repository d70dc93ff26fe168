/*
 * attempts: system calls that no sandbox may make, each with arguments that would work on the host (or fail there
 * in another way than here), so that a refusal can only come from the sandbox.
 */
#include "payload.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/io_uring.h>
#include <linux/keyctl.h>
#include <linux/openat2.h>
#include <linux/perf_event.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FCHMODAT2 = 452, X32_BIT = 0x40000000 };
enum { FAMILY_ALG = 38, FAMILY_VSOCK = 40, FAMILY_XDP = 44, FAMILY_BLUETOOTH = 31, NETLINK_AUDIT_PROTOCOL = 9 };

static void say(const char *name, long result)
{
    printf("%s %d\n", name, result < 0 ? errno : 0);
    (void)fflush(stdout);
}

/* A child that a clone may give us ends at once. */
static long only_parent(long pid)
{
    if (pid == 0)
        _exit(0);
    if (pid > 0)
        (void)waitpid((pid_t)pid, NULL, __WALL);
    return pid;
}

static void try_clone(const char *name, unsigned long flag)
{
    say(name, only_parent(syscall(SYS_clone, flag | SIGCHLD, 0, 0, 0, 0)));
}

static void try_namespaces(void)
{
    struct clone_args args = {.flags = CLONE_NEWUSER, .exit_signal = SIGCHLD};
    struct clone_args plain = {.exit_signal = SIGCHLD};

    try_clone("clone-user", CLONE_NEWUSER);
    try_clone("clone-mount", CLONE_NEWNS);
    try_clone("clone-net", CLONE_NEWNET);
    try_clone("clone-pid", CLONE_NEWPID);
    try_clone("clone-ipc", CLONE_NEWIPC);
    try_clone("clone-uts", CLONE_NEWUTS);
    try_clone("clone-cgroup", CLONE_NEWCGROUP);
    /* The kernel looks at 64 bits, a filter that compares 32 of them looks at the wrong ones. */
    try_clone("clone-user-high", CLONE_NEWUSER | UINT64_C(1) << 40);
    say("clone3-user", only_parent(syscall(SYS_clone3, &args, sizeof args)));
    say("clone3", only_parent(syscall(SYS_clone3, &plain, sizeof plain)));
    say("unshare-user", syscall(SYS_unshare, CLONE_NEWUSER));
    say("unshare-mount", syscall(SYS_unshare, CLONE_NEWNS));
    int fd = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    say("setns", syscall(SYS_setns, fd, 0));
}

static void try_mounts(void)
{
    say("mount", syscall(SYS_mount, "none", "/tmp", "tmpfs", 0, NULL));
    say("remount", syscall(SYS_mount, NULL, "/", NULL, 32 /* MS_REMOUNT */, NULL));
    say("umount", syscall(SYS_umount2, "/proc/sys", 2));
    say("pivot_root", syscall(SYS_pivot_root, ".", "."));
    say("chroot", syscall(SYS_chroot, "/"));
    say("fsopen", syscall(SYS_fsopen, "tmpfs", 0));
    say("open_tree", syscall(SYS_open_tree, AT_FDCWD, "/", 1));
    say("mount_setattr", syscall(SYS_mount_setattr, AT_FDCWD, "/", 0, NULL, 0));
    say("move_mount", syscall(SYS_move_mount, AT_FDCWD, "/tmp", AT_FDCWD, "/run", 0));
}

static void try_processes(void)
{
    char byte;
    struct iovec local = {&byte, 1};
    struct iovec remote = {&byte, 1};

    say("ptrace", syscall(SYS_ptrace, PTRACE_TRACEME, 0, 0, 0));
    say("ptrace-init", syscall(SYS_ptrace, PTRACE_SEIZE, 1, 0, 0));
    say("process_vm_readv", syscall(SYS_process_vm_readv, getpid(), &local, 1, &remote, 1, 0));
    say("process_vm_writev", syscall(SYS_process_vm_writev, getpid(), &local, 1, &remote, 1, 0));
    say("kcmp", syscall(SYS_kcmp, getpid(), getpid(), 0, 0, 0));
    int fd = (int)syscall(SYS_pidfd_open, 1, 0);
    say("pidfd_getfd", syscall(SYS_pidfd_getfd, fd, 3, 0));
    say("sethostname", syscall(SYS_sethostname, "x", 1));
}

static void try_kernel_doors(void)
{
    struct io_uring_params ring = {0};
    union bpf_attr attr = {.map_type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = 4, .max_entries = 1};
    struct perf_event_attr perf = {.type = PERF_TYPE_SOFTWARE, .size = sizeof perf, .exclude_kernel = 1};
    struct {
        unsigned bytes;
        int type;
        char data[128];
    } handle = {.bytes = 128};
    int mount_id;

    say("io_uring_setup", syscall(SYS_io_uring_setup, 4, &ring));
    say("bpf", syscall(SYS_bpf, BPF_MAP_CREATE, &attr, sizeof attr));
    say("userfaultfd", syscall(SYS_userfaultfd, 1 /* UFFD_USER_MODE_ONLY */));
    say("perf_event_open", syscall(SYS_perf_event_open, &perf, 0, -1, -1, 0));
    say("keyctl", syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_SESSION_KEYRING, 1));
    say("add_key", syscall(SYS_add_key, "user", "x", "x", 1, KEY_SPEC_PROCESS_KEYRING));
    say("request_key", syscall(SYS_request_key, "user", "x", NULL, 0));
    say("name_to_handle_at", syscall(SYS_name_to_handle_at, AT_FDCWD, "/", &handle, &mount_id, 0));
    say("open_by_handle_at", syscall(SYS_open_by_handle_at, AT_FDCWD, &handle, O_RDONLY));
    say("kexec_load", syscall(SYS_kexec_load, 0, 0, NULL, 0));
    say("finit_module", syscall(SYS_finit_module, 0, "", 0));
    say("delete_module", syscall(SYS_delete_module, "x", O_NONBLOCK));
    say("reboot", syscall(SYS_reboot, 0, 0, 0, NULL));
    say("syslog", syscall(SYS_syslog, 3, &handle, 8));
    say("swapon", syscall(SYS_swapon, "/tmp", 0));
    say("acct", syscall(SYS_acct, NULL));
    say("settimeofday", syscall(SYS_settimeofday, NULL, NULL));
    say("iopl", syscall(SYS_iopl, 3));
    say("fanotify_init", syscall(SYS_fanotify_init, 0, 0));
}

static void try_sockets(void)
{
    say("socket-packet", socket(AF_PACKET, SOCK_RAW, 0));
    say("socket-packet-high", syscall(SYS_socket, AF_PACKET | UINT64_C(1) << 40, SOCK_RAW, 0));
    say("socket-vsock", socket(FAMILY_VSOCK, SOCK_STREAM, 0));
    say("socket-alg", socket(FAMILY_ALG, SOCK_SEQPACKET, 0));
    say("socket-xdp", socket(FAMILY_XDP, SOCK_RAW, 0));
    say("socket-bluetooth", socket(FAMILY_BLUETOOTH, SOCK_STREAM, 0));
    say("socket-audit", socket(AF_NETLINK, SOCK_RAW, NETLINK_AUDIT_PROTOCOL));
    say("socket-raw", socket(AF_INET, SOCK_RAW, 1));
    say("socket-raw6", socket(AF_INET6, SOCK_RAW, 58));
    say("socket-inet", socket(AF_INET, SOCK_STREAM, 0));
    say("socket-unix", socket(AF_UNIX, SOCK_STREAM, 0));
}

static void try_terminal(void)
{
    char letter = 'x';
    int discipline = 1; /* SLIP, for which the kernel would load a module */

    /* CVE-2019-10063: the kernel takes 32 bits of the request, so a filter must not look at the others. */
    say("tiocsti", syscall(SYS_ioctl, 0, UINT64_C(0x5412), &letter));
    say("tiocsti-high", syscall(SYS_ioctl, 0, UINT64_C(0x5412) | UINT64_C(1) << 32, &letter));
    say("tioclinux-high", syscall(SYS_ioctl, 0, UINT64_C(0x541c) | UINT64_C(1) << 63, &letter));
    say("tiocsetd", syscall(SYS_ioctl, 0, UINT64_C(0x5423), &discipline));
    say("tty", open("/dev/tty", O_RDWR | O_CLOEXEC));
}

int payload_attempts(char **argv)
{
    (void)argv;
    try_namespaces();
    try_mounts();
    try_processes();
    try_kernel_doors();
    try_sockets();
    try_terminal();
    say("mknod", mknod("/tmp/device", S_IFCHR | 0600, 0x103));
    return 0;
}

/* The answer to every address family there is, with every kind of socket. */
int payload_families(char **argv)
{
    char name[32];
    int ends[2];

    (void)argv;
    for (int family = 0; family < 64; family++) {
        (void)snprintf(name, sizeof name, "socket-%d", family);
        say(name, socket(family, SOCK_DGRAM, 0));
        (void)snprintf(name, sizeof name, "pair-%d", family);
        say(name, socketpair(family, SOCK_DGRAM, 0, ends));
    }
    for (int protocol = 0; protocol < 32; protocol++) {
        (void)snprintf(name, sizeof name, "netlink-%d", protocol);
        say(name, socket(AF_NETLINK, SOCK_RAW, protocol));
    }
    return 0;
}

int payload_set_id(char **argv)
{
    struct open_how how = {.flags = O_CREAT | O_WRONLY, .mode = 04755};

    if (chdir(argv[0]) < 0)
        return 1;
    (void)umask(0);
    int fd = open("plain", O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
    say("plain", fd);
    say("chmod", syscall(SYS_chmod, "plain", 04755));
    say("chmod-gid", syscall(SYS_chmod, "plain", 02755));
    say("chmod-high", syscall(SYS_chmod, "plain", 04755 | UINT64_C(1) << 40));
    say("fchmod", syscall(SYS_fchmod, fd, 06755));
    say("fchmodat", syscall(SYS_fchmodat, AT_FDCWD, "plain", 04755));
    say("fchmodat2", syscall(FCHMODAT2, AT_FDCWD, "plain", 04755, 0));
    say("open", syscall(SYS_open, "by-open", O_CREAT | O_WRONLY, 04755));
    say("openat", syscall(SYS_openat, AT_FDCWD, "by-openat", O_CREAT | O_WRONLY, 02755));
    say("openat2", syscall(SYS_openat2, AT_FDCWD, "by-openat2", &how, sizeof how));
    say("creat", syscall(SYS_creat, "by-creat", 04755));
    say("mknod", syscall(SYS_mknod, "by-mknod", S_IFREG | 04755, 0));
    say("mknodat", syscall(SYS_mknodat, AT_FDCWD, "by-mknodat", S_IFREG | 02755, 0));
    return 0;
}

int payload_int80(char **argv)
{
    long result = 20; /* getpid of i386 */

    (void)argv;
#ifdef __x86_64__
    __asm__ volatile("int $0x80" : "+a"(result) : : "memory", "r8", "r9", "r10", "r11");
#endif
    printf("int80 %ld\n", result);
    return 0;
}

int payload_x32(char **argv)
{
    (void)argv;
    say("x32", syscall(X32_BIT | SYS_getpid));
    return 0;
}
