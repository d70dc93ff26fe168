/*
 * template: what a sandbox's root is made of, as detached mounts.
 *
 * AS ROOT. Looks at a folder of unknown origin only through openat2() without symlinks; reads no file of it.
 */
#pragma once

#include "keeper/policy_layer.h"
#include "keeper/spawn.h"

/* The host's own /usr over the host layer. */
_must_use_ int template_open_host(int host_layer_fd, struct spawn *spawn, struct error *err);

/* A folder with a root file system in it. */
_must_use_ int template_open_folder(int folder_fd, struct spawn *spawn, struct error *err);

/* What takes the unlisted programs of the host's /usr away. The programs stay the policy's. */
_must_use_ int template_open_policy(const struct policy *policy, struct spawn *spawn, struct error *err);

/* Closes what these opened. */
void template_close(struct spawn *spawn);
