/*
 * keeper: the one way to make a sandbox.
 *
 * AS ROOT. A keeper holds a conversation with one client over SOCK_SEQPACKET: the gateway in a daemon, the command
 * line in `hutch run`, where both sit in the same process on a socket pair. The client is taken to be compromised: a
 * message that its state does not permit ends the conversation.
 *
 * In a daemon the keeper outlives its clients: it keeps a copy of every guest link, and hands them to the next one that
 * attaches. Words of the service (READY, DRAINED and the like) it hands on to its owner.
 *
 * One thread, no blocking but for the clone of a sandbox. The owner polls keeper_fd() and calls keeper_dispatch() when
 * it is readable, and after keeper_wait_ms() at the latest.
 */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct keeper;
struct cgroups;
struct folders;
struct wire_message;

/* What a daemon has that `hutch run` has not. */
struct keeper_service {
    /* ATTACH, READY, UNABLE, RELOADED, DRAINED or PONG came. 0, or -errno to end the conversation. */
    int (*heard)(void *context, const struct wire_message *message);
    void *context;
};

struct keeper_options {
    const char *state; /* folder for layers; made when missing */
    int init_fd;       /* the program that becomes PID 1; stays the caller's */
    int client_fd;     /* the keeper's end of the conversation; stays the caller's; -1 in a daemon */
    int zygote_fd;     /* from zygote_start(); becomes the keeper's */
    int zygote_pidfd;  /* the same */
    int airlock_fd;    /* where the airlock hears of sandboxes; stays the caller's; -1: none */
    bool single;       /* for one sandbox, see keeper_may_leave() */
    uint32_t id_first;
    uint32_t id_last;
    const struct keeper_service *service; /* NULL but in a daemon; stays the caller's */
    const struct folders *folders;        /* the same */
};

enum { KEEPER_ID_FIRST = 0x10000000, KEEPER_ID_LAST = 0x6fffffff };

_must_use_ int keeper_new(const struct keeper_options *options, struct keeper **ret_keeper, struct error *err);

/* Ends and removes every sandbox that is left, then itself. */
void keeper_free(struct keeper *keeper);

/*
 * For a caller whose only sandbox has done its work and who ends now. When this is true it may exit without
 * keeper_free(): the zygote ends and removes the sandbox, and holds what was held until nothing is left.
 */
bool keeper_may_leave(struct keeper *keeper);

int keeper_fd(const struct keeper *keeper);
int keeper_wait_ms(const struct keeper *keeper);

/* A daemon's next client, whose first word must be ATTACH; and its end. The descriptor stays the caller's. */
_must_use_ int keeper_attach(struct keeper *keeper, int client_fd, struct error *err);
void keeper_detach(struct keeper *keeper);

/* Say something to the client that is not the keeper's own to say. 0 or -errno. */
_must_use_ int keeper_tell(struct keeper *keeper, const struct wire_message *message, const int *fds, size_t fd_count);

/* From the next CREATE on. They stay the caller's. */
void keeper_set_folders(struct keeper *keeper, const struct folders *folders);

/* The largest disk of a sandbox, from the next CREATE on; 0: as large as images can be. */
void keeper_set_disk_max(struct keeper *keeper, uint64_t bytes);

/* For what else the owner keeps: its cgroups carry the instance's id, too. */
struct cgroups *keeper_cgroups(const struct keeper *keeper);
const char *keeper_instance_id(const struct keeper *keeper);

/* How many sandboxes there are. */
size_t keeper_count(const struct keeper *keeper);

/*
 * 1 to go on, 0 when the client has gone, -EBADMSG when it sent what is not permitted, -EPROTONOSUPPORT when it speaks
 * another version, or another -errno.
 */
_must_use_ int keeper_dispatch(struct keeper *keeper, struct error *err);
