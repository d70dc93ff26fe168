#include "attack/control.h"

#include "attack/process.h"
#include "base/sys.h"

#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/wait.h>

int control_beside(void)
{
    return 0;
}

/* A change of user takes the death signal away. */
int control_nobody(void)
{
    enum { NOBODY = 65534 };

    if (setgroups(0, NULL) < 0 || setresgid(NOBODY, NOBODY, NOBODY) < 0 || setresuid(NOBODY, NOBODY, NOBODY) < 0)
        return -1;
    return prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 ? -1 : 0;
}

/* Go on as a child; who stays behind ends as it does. */
static int descend(void)
{
    int status = 0;
    pid_t pid = fork();

    if (pid > 0) {
        (void)waitpid(pid, &status, 0);
        _exit(process_status(status));
    }
    return pid < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 ? -1 : 0;
}

/* Twice: the first process in the new namespace is its PID 1, which is not the one to attack from. */
int control_apart(void)
{
    if (unshare(CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP) < 0 ||
        descend() < 0 || sys_mount(NULL, "/", NULL, MS_REC | MS_PRIVATE) < 0 ||
        sys_mount("proc", "/proc", "proc", 0) < 0)
        return -1;
    return descend();
}
