/*
 * prepared: what a helper made for a sandbox before it can be made itself; each part may be missing.
 *
 * AS ROOT.
 */
#pragma once

#include "keeper/disk.h"
#include "keeper/policy_layer.h"

struct prepared {
    struct disk disk;
    struct policy policy;
};

#define PREPARED_EMPTY ((struct prepared){DISK_EMPTY, POLICY_EMPTY})

static inline void prepared_release(struct prepared *prepared)
{
    disk_release(&prepared->disk);
    policy_release(&prepared->policy);
}
