/*
 * group: the cgroup of a command's whole tree of processes, and the few that wait for the next command.
 *
 * INSIDE THE SANDBOX. Making a cgroup and removing it takes the kernel longer than anything else that a short command
 * needs, and both would be waited for; so one that has emptied by itself serves again. Nothing is counted per cgroup (a
 * command's usage is what wait4 says), so nothing of one command is left in it for the next. Owned by init.c; a channel
 * holds the one its command runs in.
 */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { GROUPS_SPARE = 4 };

struct group {
    bool is_there;
    bool is_spent; /* a cgroup that was killed once kills what is cloned into it later, too (Linux 6.18) */
    uint32_t number;
    int events_fd; /* once somebody waits for its end, else -1 */
};

#define GROUP_NONE ((struct group){.events_fd = -1})

struct groups {
    int root_fd; /* init's own cgroup, or -1 where there is none */
    uint32_t made;
    struct group spares[GROUPS_SPARE];
    size_t spare_count;
};

/* Have one ready before a command asks for it. Should that fail, the command that needs it will say so. */
void groups_prepare(struct groups *groups);

/* One for a command. 0 or -errno. */
_must_use_ int groups_take(struct groups *groups, struct group *ret_group);

/* It is empty: for the next command, or to be removed. */
void groups_give_back(struct groups *groups, struct group *group);

/* The folder, for clone3. -errno. */
_must_use_ int group_open(const struct groups *groups, const struct group *group);

/* No process in it that still runs? */
bool group_is_empty(const struct groups *groups, const struct group *group);

/* Open events_fd, which is ready for EPOLLPRI whenever group_is_empty() may have another answer. */
void group_wait(const struct groups *groups, struct group *group);

/* To every process in it: all at once when it is SIGKILL, otherwise one by one. 0 or -errno. */
_must_use_ int group_signal(const struct groups *groups, struct group *group, int signal_number);
