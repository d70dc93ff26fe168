/*
 * policy_layer: the layer over /usr that takes away every program that was not listed.
 *
 * AS ROOT, in a helper of the keeper's: the first time it looks through all of /usr. Layers are kept below the state
 * folder, one per list of programs and state of /usr, and are locked while a sandbox uses them: what takes a program
 * away must not be removed below it.
 */
#pragma once

#include "base/buf.h"
#include "wire/steps.h"
#include "wire/wire.h"

struct policy {
    int layer_fd;        /* the layer's root, locked for as long as any copy of this descriptor is open */
    struct buf programs; /* what may be executed: paths relative to /usr, each ending in NUL */
};

#define POLICY_EMPTY ((struct policy){.layer_fd = -1})

void policy_release(struct policy *policy);

/* As a message carries them; a view. */
struct wire_strv policy_programs(const struct policy *policy);

/* For these names. On failure `ret_step` says whether it was their fault (STEP_REQUEST) or the layer's. */
_must_use_ int policy_prepare(int state_fd, struct wire_strv names, struct policy *ret_policy, enum step *ret_step,
                              struct error *err);
