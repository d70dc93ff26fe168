/*
 * source: something the keeper's loop waits for, with what to do when it is ready. Embedded in what it belongs to.
 */
#pragma once

#include <stddef.h>

struct keeper;

struct source {
    /* 1 to go on, 0 when the client has gone, or -errno. */
    int (*ready)(struct keeper *keeper, struct source *source);
};

/* What a source is embedded in. */
#define SOURCE_OWNER(type, source) ((type *)(void *)((char *)(source)-offsetof(type, source)))
