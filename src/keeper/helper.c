#include "keeper/helper.h"

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/sys.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

enum { HELPER_SOCKET = 3, HELPER_FD };

/* First away from the numbers that they are to have. */
static int keep_only(int socket, int fd)
{
    int high_socket = fcntl(socket, F_DUPFD_CLOEXEC, HELPER_FD + 1);
    int high_fd = fcntl(fd, F_DUPFD_CLOEXEC, HELPER_FD + 1);

    if (high_socket < 0 || high_fd < 0 || dup3(high_socket, HELPER_SOCKET, O_CLOEXEC) < 0 ||
        dup3(high_fd, HELPER_FD, O_CLOEXEC) < 0)
        return -errno;
    return sys_close_range(HELPER_FD + 1, ~0U, 0) < 0 ? -errno : 0;
}

int helper_start(struct helper *ret_helper, void (*work)(int socket, int fd, void *context), int fd, void *context,
                 struct error *err)
{
    int ends[2];
    int pidfd = -1;
    pid_t keeper = getpid();
    struct clone_args args = {.flags = CLONE_PIDFD, .pidfd = (uintptr_t)&pidfd, .exit_signal = SIGCHLD};

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return error_errno(err, "starting a helper");
    pid_t pid = sys_clone3(&args);
    if (pid < 0) {
        int r = error_errno(err, "starting a helper");
        fd_close_many(ends, 2);
        return r;
    }
    if (pid == 0) {
        if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != keeper)
            _exit(1);
        if (keep_only(ends[1], fd) < 0)
            _exit(1);
        work(HELPER_SOCKET, HELPER_FD, context);
        _exit(0);
    }
    (void)close(ends[1]);
    *ret_helper = (struct helper){.socket = ends[0], .pidfd = pidfd};
    return 0;
}

void helper_release(struct helper *helper)
{
    siginfo_t info;

    close_fd(&helper->socket);
    if (helper->pidfd < 0)
        return;
    (void)sys_pidfd_send_signal(helper->pidfd, SIGKILL);
    (void)waitid(P_PIDFD, (id_t)helper->pidfd, &info, WEXITED);
    close_fd(&helper->pidfd);
}
