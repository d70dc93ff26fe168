/*
 * confine: what the child gives up before it becomes init.
 *
 * NAMESPACE ROOT of its sandbox. From here on nothing in the sandbox holds CAP_SYS_ADMIN: the read-only flags of
 * mounts that were attached detached are not locked against it.
 */
#pragma once

#include "keeper/spawn.h"

/* Host name, session keyring, core dumps, capabilities, no_new_privs. 0 or -errno. */
_must_use_ int confine_privileges(const struct spawn *spawn, const char **ret_detail);

/* A Landlock domain in which nothing is executed but init and the listed programs; `ret_features` (WIRE_HELLO_*) is
 * what else it does. Needs the new root and no_new_privs. 0 or -errno. */
_must_use_ int confine_programs(const struct spawn *spawn, uint32_t *ret_features, const char **ret_detail);

/* The filter that holds for everything in the sandbox. 0 or -errno. */
_must_use_ int confine_filter(const struct spawn *spawn, const char **ret_detail);
