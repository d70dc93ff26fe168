#include "attack/process.h"

#include "base/fd.h"

#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static _Noreturn void become(const struct process *process, pid_t parent)
{
    static const char nowhere[] = "/dev/null";

    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
        _exit(127);
    (void)signal(SIGPIPE, SIG_DFL);
    for (int fd = 0; fd < 3; fd++) {
        int from = process->fds[fd] >= 0 ? process->fds[fd] : open(nowhere, O_RDWR | O_CLOEXEC);
        if (from < 0 || dup2(from, fd) < 0)
            _exit(127);
    }
    if (process->before != NULL && process->before() != 0)
        _exit(127);
    /* execve's own types forgot the const. */
    (void)execve(process->argv[0], (char **)(uintptr_t)process->argv, (char **)(uintptr_t)process->envp);
    _exit(127);
}

pid_t process_start(const struct process *process)
{
    pid_t parent = getpid();
    pid_t pid = fork();

    if (pid == 0)
        become(process, parent);
    return pid < 0 ? -errno : pid;
}

int process_status(int wait_status)
{
    return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

int process_adopt_orphans(void)
{
    return prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0 ? -errno : 0;
}

static bool is_known(pid_t pid, const pid_t *known, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (known[i] == pid)
            return true;
    }
    return false;
}

/* How many children there are beside the known ones; those that have ended are waited for. */
static size_t count_others(const pid_t *known, size_t count)
{
    char text[4096];
    size_t others = 0;
    ssize_t n = fd_read_file(AT_FDCWD, "/proc/thread-self/children", text, sizeof text);
    char *rest = text;

    for (char *word; n > 0 && (word = strtok_r(rest, " \n", &rest)) != NULL;) {
        pid_t pid = (pid_t)strtol(word, NULL, 10);
        if (!is_known(pid, known, count) && waitpid(pid, NULL, WNOHANG) == 0)
            others++;
    }
    return others;
}

bool process_reap_others(const pid_t *known, size_t count, unsigned limit_ms)
{
    for (unsigned ms = 0; ms < limit_ms; ms++) {
        if (count_others(known, count) == 0)
            return true;
        (void)usleep(1000);
    }
    return false;
}

int process_end(pid_t *pid)
{
    int status = 0;

    if (*pid > 0) {
        (void)kill(*pid, SIGKILL);
        (void)waitpid(*pid, &status, 0);
    }
    *pid = 0;
    return process_status(status);
}
