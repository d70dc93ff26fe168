/*
 * handover: what the keeper gives the gateway at its start, and what changes later.
 *
 * Used once by main.c before there is a loop: the conversation's first messages are read here, blocking. Later SETTINGS
 * come over the same socket to whoever reads it then, who hands them to handover_update(). The handover owns its
 * descriptors; a listener keeps its descriptor for as long as the configuration names it.
 */
#pragma once

#include "gateway/config/config.h"
#include "gateway/seal.h"
#include "wire/wire.h"

enum { HANDOVER_LISTENERS_MAX = WIRE_LISTENERS_MAX + 1, HANDOVER_NAME_SIZE = 64 };

struct handover_listener {
    int fd; /* listening, non-blocking */
    bool is_unix;
    char name[HANDOVER_NAME_SIZE]; /* as in the configuration: 127.0.0.1:8080; `unix` for the unix socket */
};

/* A sandbox that an earlier gateway had made. */
struct handover_sandbox {
    uint64_t sandbox;
    uint32_t uid_first;
    int guest_fd; /* whoever takes it over sets it to -1 */
};

/* First credentials: only for a store that has none. Each NULL when it was not given. */
struct handover_presets {
    char *admin_password;
    char *api_key;
};

struct handover {
    int keeper_fd; /* SOCK_SEQPACKET, blocking until the loop has it */
    uint64_t generation;
    uint64_t boot; /* which start of the machine this is */
    struct config *config;
    int certificate_fd; /* PEM, -1 without TLS; the pair matches */
    int key_fd;
    struct handover_presets presets;
    struct seal seal; /* with the daemon's key, or a new one when there is none */
    struct handover_listener listeners[HANDOVER_LISTENERS_MAX];
    size_t listener_count;
    struct handover_sandbox *sandboxes;
    size_t sandbox_count;
};

#define HANDOVER_EMPTY ((struct handover){.keeper_fd = -1, .certificate_fd = -1, .key_fd = -1})

/* Say ATTACH and take everything up to ADOPTED. `keeper_fd` becomes the handover's. */
_must_use_ int handover_take(int keeper_fd, struct handover *ret_handover, struct error *err);
void handover_release(struct handover *handover);

/*
 * Later SETTINGS, with their descriptors, which are taken over in any case. On success the fields are the new ones:
 * what is new among the listeners is to be served, and `gone` (room for HANDOVER_LISTENERS_MAX) has the descriptors of
 * those that are not wanted any more, to be closed by the caller when he has let go of them; a configuration that was
 * replaced is given back too. On failure nothing has changed, and the caller says RELOADED with the error.
 */
_must_use_ int handover_update(struct handover *handover, const struct wire_settings *settings, int *fds,
                               size_t fd_count, int *gone, size_t *ret_gone_count, struct config **ret_replaced,
                               struct error *err);

/* Forget the first credentials: they are in the store now. */
void handover_forget_presets(struct handover *handover);

/* To the keeper, before or without a loop. 0 or -errno. */
_must_use_ int handover_say_ready(const struct handover *handover);
_must_use_ int handover_say_unable(const struct handover *handover, const char *why);
_must_use_ int handover_say_reloaded(const struct handover *handover, const char *problem); /* "" when it was done */

/* May this be served? `has_stored`: the store has a credential from before. What is wrong is for handover_say_unable().
 */
_must_use_ int handover_check_credentials(const struct handover *handover, bool has_stored, struct error *err);
