/*
 * tenant: a sandbox of the daemon's that an attempt makes, and what it does in it.
 */
#pragma once

#include "attack/caller.h"

enum { TENANT_PATH_SIZE = 8192 };

struct tenant {
    const char *key;
    char id[64]; /* of the sandbox, "": there is none */
    char exec[64];
};

/* A key of this scope; false when there is none to be had. `seconds` 0: it does not expire. */
_must_use_ bool tenant_make_key(const char *scope, unsigned seconds, char *ret_key, size_t size, char *ret_id,
                                size_t id_size);

/* A sandbox with these settings, or NULL for the usual ones. False when it can't be made, which is said. */
_must_use_ bool tenant_move_in(struct tenant *tenant, struct attempt *attempt, const char *key, const char *settings);
void tenant_move_out(struct tenant *tenant);

/* "/api/v1/sandboxes/ID" and what follows. */
const char *tenant_path(const struct tenant *tenant, const char *rest, char path[TENANT_PATH_SIZE]);

/* Run a shell's command to its end; the status of the answer. */
int tenant_shell(const struct tenant *tenant, const char *command, struct reply *ret_reply);

/* A tool with arguments that are JSON already; the status of the answer. */
int tenant_tool(const struct tenant *tenant, const char *tool, const char *arguments, struct reply *ret_reply);

/* Start a command that goes on; its id is then in tenant->exec. */
_must_use_ bool tenant_start(struct tenant *tenant, struct attempt *attempt, const char *command);

/* Bring this program in and have it make the attempt `name` inside, until the sandbox ends. */
_must_use_ bool tenant_start_inside(struct tenant *tenant, struct attempt *attempt, const char *name);
/* What that does first: the caller waits for it. */
void tenant_say_ready(void);
