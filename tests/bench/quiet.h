/*
 * quiet: wait until nothing else wants a CPU, be it what the last measurement left behind or a stranger. Other load
 * hurts what consists of many processes more than what consists of few: no ratio is true under it. There is a limit to
 * this patience; the busy ones among the moments that were waited for say how far the figures may be trusted.
 */
#pragma once

#include <stddef.h>

struct quiet {
    int stat_fd;
    unsigned patience_ms; /* what is left of it */
    size_t moments;
    size_t busy;
};

void quiet_init(struct quiet *quiet);
void quiet_release(struct quiet *quiet);

/* Quiet is what looks so `looks` times, `look_ms` apart. */
enum { QUIET_LOOKS = 10, QUIET_LOOK_MS = 2 };
void quiet_wait(struct quiet *quiet, unsigned looks, unsigned look_ms);

/* 0 to 1. */
double quiet_busy(const struct quiet *quiet);
