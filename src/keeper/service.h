/*
 * service: starting a program of ours that has nothing to lose: the gateway, the reader of the configuration, the
 * airlock.
 *
 * AS ROOT until the program runs. It runs as the service user: no capability, no_new_privs, its own filter; its own
 * mount namespace with /usr, a few devices and perhaps its state folder; its own network, pid, ipc and uts namespaces,
 * with nothing in them. It is executed by descriptor, so that it may lie where only root can look.
 */
#pragma once

#include "base/error.h"
#include "keeper/cgroup.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { SERVICE_FDS_MAX = 4 };

struct service_user {
    uid_t uid;
    gid_t gid;
};

struct service {
    struct service_user user;
    int program_fd;
    char *const *argv;
    char *const *environment;
    int input_fd;             /* standard input; -1: /dev/null */
    int error_fd;             /* standard error, which must not be the keeper's own */
    int fds[SERVICE_FDS_MAX]; /* what it finds from descriptor 3 on */
    size_t fd_count;
    const struct cgroup_entry *cgroup; /* that it starts in; NULL: the keeper's own */
    int state_fd;                      /* its /state, and the folder it starts in; -1: none */
    unsigned cpu_max;                  /* seconds that it may compute; 0: any number */
    unsigned process_max;              /* processes and threads of its user, when it wants one more; 0: any number */
    bool is_airlock;                   /* it has the machine's network, and a filter of its own */
};

/* The service user's ids. */
_must_use_ int service_find_user(const char *name, struct service_user *ret_user, struct error *err);

/* On success the program is being executed; it ends with the keeper at the latest. */
_must_use_ int service_start(const struct service *service, int *ret_pidfd, struct error *err);

/* The same in two steps, for a caller who has other things to do until the program is being executed. */
struct service_begun {
    const char *name;
    int pidfd;
    int told_fd;
};
_must_use_ int service_begin(const struct service *service, struct service_begun *ret_begun, struct error *err);
_must_use_ int service_finish(struct service_begun *begun, int *ret_pidfd, struct error *err);

/*
 * Wait so long for its end, kill it, should it still run, and wait. Closes the descriptor. The wait status. One whose
 * sockets have closed is about to end, and its own status says more than that it was killed.
 */
int service_end(int *pidfd, int grace_ms);
