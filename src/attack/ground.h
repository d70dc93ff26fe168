/*
 * ground: what the attacks are made on: a folder with canaries, canaries among the host's processes, sockets and shared
 * memory, and the host's own state, looked at before and after each attack.
 *
 * AS ROOT. Whoever owns a ground removes all of it with ground_release().
 */
#pragma once

#include "base/buf.h"

#include <stdbool.h>
#include <sys/types.h>

enum { GROUND_PATH_SIZE = 160, GROUND_VARIABLES = 5, GROUND_HARM_SIZE = 200 };

struct ground {
    char folder[GROUND_PATH_SIZE];
    char canary[GROUND_PATH_SIZE];  /* a folder in it that nobody touches, with the file "secret" */
    char shared[GROUND_PATH_SIZE];  /* a folder that an attack may show with --dir, as @/shared */
    char root[GROUND_PATH_SIZE];    /* the root folder of an attack that needs one of its own */
    char program[GROUND_PATH_SIZE]; /* the folder with this program's copy */
    char variables[GROUND_VARIABLES][GROUND_PATH_SIZE + 32]; /* HUTCH_ATTACK_...: the canaries' names */
    int tcp_fd;
    int abstract_fd;
    int leaked_fd;               /* on the canary's folder, not closed when programs start */
    int shared_memory;           /* a System V segment, -1: none */
    pid_t shared_memory_pid;     /* who had it last */
    pid_t process;               /* waits, and is not to be ended, stopped or woken */
    struct buf before;           /* the state of the host at the start */
    const char *programs[2];     /* files that must not change: hutch, hutch-attack */
    char init[GROUND_PATH_SIZE]; /* and hutch-init, which lies beside the latter */
};

#define GROUND_EMPTY ((struct ground){.tcp_fd = -1, .abstract_fd = -1, .leaked_fd = -1, .shared_memory = -1})

/* `hutch` and `own` are the programs. */
_must_use_ int ground_init(struct ground *ground, const char *hutch, const char *own, struct error *err);
void ground_release(struct ground *ground);

/* What a control did to the canaries that are there to be reached is no harm. */
void ground_forgive(struct ground *ground);

/* Is everything as it was? False with what is not. */
bool ground_is_unharmed(struct ground *ground, char ret_harm[GROUND_HARM_SIZE]);

/* An empty folder at ground->root with the folders that every root needs, and this program; 0 or -errno. */
_must_use_ int ground_make_root(const struct ground *ground);
void ground_remove_root(const struct ground *ground);

/* Below ground->root. 0 or -errno. */
_must_use_ int ground_replace_with_symlink(const struct ground *ground, const char *path, const char *target);
/* A folder of the root, and a symlink to the canary's folder, that change places again and again. */
_must_use_ int ground_prepare_swap(const struct ground *ground, const char *target);
void ground_swap(const struct ground *ground, const char *target);
_must_use_ int ground_copy_program(const struct ground *ground, const char *path, mode_t mode);
