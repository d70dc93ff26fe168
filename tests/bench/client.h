/*
 * client: a keeper of our own and the client's end of its conversation, in one process and one thread as in `hutch
 * run`, but for any number of sandboxes. Used by bench-many.
 *
 * client_stop() ends every sandbox that is left, also after an error and after a signal.
 */
#pragma once

#include "base/error.h"
#include "keeper/keeper.h"
#include "wire/steps.h"

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct client {
    struct keeper *keeper;
    int client_fd;
    int keeper_end;
    int init_fd;
    int created_fd; /* the guest link of the latest CREATED, until a guest takes it */
    pid_t zygote;
    uint64_t last_id;
    bool times;                    /* ask each creation for its steps_ns */
    size_t live;                   /* made and not yet GONE */
    uint64_t steps_ns[STEP_COUNT]; /* of the latest creation: the keeper's, and from its SETUP the child's */
};

struct guest {
    uint64_t id;
    int fd;
    bool ready; /* init has said HELLO */
};

/* Set by SIGINT and SIGTERM: whatever waits then fails with EINTR. */
extern volatile sig_atomic_t client_interrupted;
void client_catch_signals(void);

_must_use_ int client_start(struct client *client, const char *init, const char *state, struct error *err);
void client_stop(struct client *client);

/* Until CREATED. The child is still setting itself up. */
_must_use_ int client_create(struct client *client, struct guest *ret_guest, struct error *err);

/* Until init's HELLO. */
_must_use_ int client_wait_ready(struct client *client, struct guest *guest, struct error *err);

/* Run `true`, as `hutch run` would, until its EXIT. Init need not have said HELLO before. */
_must_use_ int client_run_true(struct client *client, struct guest *guest, struct error *err);

/* Ask for its end; does not wait for it. */
_must_use_ int client_destroy(struct client *client, struct guest *guest, struct error *err);

/* Until at most so many are live. */
_must_use_ int client_wait_gone(struct client *client, size_t left, struct error *err);
