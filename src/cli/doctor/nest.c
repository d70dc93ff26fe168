#include "cli/doctor/nest.h"

#include "base/cleanup.h"
#include "base/sys.h"
#include "keeper/ids.h"
#include "keeper/keeper.h"
#include "keeper/userns.h"

#include <grp.h>
#include <sys/prctl.h>
#include <sys/wait.h>

static _Noreturn void run_inside(int go_fd, void (*inside)(void *context), void *context)
{
    char go;

    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || read(go_fd, &go, 1) != 1)
        _exit(1);
    if (setgroups(0, NULL) < 0 || setresgid(0, 0, 0) < 0 || setresuid(0, 0, 0) < 0)
        _exit(1);
    inside(context);
    _exit(0);
}

int nest_start(unsigned long flags, void (*inside)(void *context), void *context, struct nest *ret_nest)
{
    static const struct userns_map map = {0, (uint32_t)KEEPER_ID_LAST + 1, IDS_PER_SANDBOX};
    int go[2];

    if (pipe2(go, O_CLOEXEC) < 0)
        return -errno;
    pid_t pid = sys_clone(flags | CLONE_NEWUSER | SIGCHLD);
    if (pid == 0) {
        (void)close(go[1]);
        run_inside(go[0], inside, context);
    }
    int error = errno;
    (void)close(go[0]);
    if (pid < 0) {
        (void)close(go[1]);
        return -error;
    }
    struct nest nest = {.pid = pid, .go_fd = go[1]};
    int r = userns_write_maps(pid, map, map);
    if (r < 0) {
        nest_cancel(&nest);
        return r;
    }
    *ret_nest = nest;
    return 0;
}

int nest_finish(struct nest *nest)
{
    int status = -1;
    bool told = write(nest->go_fd, "g", 1) == 1;

    close_fd(&nest->go_fd);
    while (waitpid(nest->pid, &status, 0) < 0 && errno == EINTR)
        continue;
    return told && status == 0 ? 0 : -ECHILD;
}

void nest_cancel(struct nest *nest)
{
    (void)kill(nest->pid, SIGKILL);
    (void)waitpid(nest->pid, NULL, 0);
    close_fd(&nest->go_fd);
}
