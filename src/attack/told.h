/*
 * told: the few things the referee wants to know from what `hutch run --json` printed. Pure.
 */
#pragma once

#include "base/buf.h"

#include <stdbool.h>

struct told {
    bool has_limit;
    char limit[24];
    uint64_t memory_peak_bytes;
    struct buf out; /* the command's output; released with told_release() */
};

/* 0, -EBADMSG when it is not such an object, -ENOBUFS, -ENOMEM. */
_must_use_ int told_parse(const char *json, size_t length, struct told *ret_told);
void told_release(struct told *told);
