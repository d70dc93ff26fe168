/*
 * attack: what `hutch attack` tries. One file per attack, one table of them all (table.h).
 *
 * Used by hutch-attack, which plays both sides. Outside, as root, it makes sandboxes with `hutch run` like any caller,
 * referees (referee.h) and looks at the host. Inside, as the sandboxed command, the same program makes the attempt
 * (attempt.h). Against the service it is a caller instead (visit.h). An attack must be harmless also where it is not
 * refused: it writes to canaries, opens what it would write to, or asks with arguments that the kernel rejects once it
 * has let the caller in.
 */
#pragma once

#include "attack/attempt.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum attack_group {
    ATTACK_KERNEL,
    ATTACK_FILES,
    ATTACK_PROGRAMS,
    ATTACK_NEIGHBOURS,
    ATTACK_RESOURCES,
    ATTACK_CALLERS,
    ATTACK_TRANSFERS,
};

/* In which sandboxes: each is one of its own. */
enum attack_variant {
    AS_NOBODY = 1,
    AS_ROOT = 2,
    WITH_TIGHT = 4, /* nobody, with the filter tight */
    ALL_VARIANTS = 7,
};

/*
 * Where the very same attempt is made to show that it is one: what is refused there too says nothing about a sandbox.
 * The first two are root's, unfiltered: not for what would have the kernel load a module.
 */
enum attack_control {
    CONTROL_NONE,
    CONTROL_APART,   /* in namespaces of its own: mounts, processes, network, IPC, host name, cgroups */
    CONTROL_BESIDE,  /* in the host's, to reach the host's canaries */
    CONTROL_WITHOUT, /* in a sandbox without the attack's options, where all of it must come to its end */
};

enum { ATTACK_OPTIONS_MAX = 10 };

struct ground;

struct attack {
    const char *name;
    const char *tries; /* in a line, for people */
    enum attack_group group;
    enum attack_variant variants; /* 0: all of them */
    enum attack_control control;
    attempt_fn *inside;
    const char *script;                      /* instead of `inside`: script.h */
    const char *options[ATTACK_OPTIONS_MAX]; /* more words for `hutch run`; @ is the ground's folder */

    /* For attacks from outside: a root folder, what changes it meanwhile, how often, and an option that counts. */
    int (*prepare)(const struct ground *ground); /* fills ground->root, which then is --root; 0 or -errno */
    void (*meanwhile)(const struct ground *ground);
    unsigned rounds;          /* 0: once */
    const char *round_option; /* a format with the number of the round */
    const char *command;      /* run this instead of `inside` */

    /* On the service (visit.h): what callers do; `inside` then runs in a sandbox of the daemon's, if they want it to.
     */
    attempt_fn *calls;
    bool as_operator; /* not as nobody, but as whoever runs the daemon */
    bool ends_daemon;

    /* How `hutch run` must end, where that is not well. */
    int status;
    bool may_be_killed;   /* also by the limit of memory */
    const char *limit;    /* the limit that must be the reason, as in `hutch run --json` */
    const char *says;     /* what it must say */
    bool may_not_start;   /* no sandbox, or no command, is a refusal as well */
    uint64_t memory_most; /* the most that the sandbox may have had at any time, 0: not looked at. Some charges, such as
                             those of sockets, the kernel lets over the limit by a little.
                             On the service: by how much the daemon may have grown, 0: as door.c has it. */
    bool streams;         /* output goes through a pipe and is counted instead of collected */
    uint64_t streams_at_least;
};
