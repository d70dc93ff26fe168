/*
 * ruling: what the referee says of one attack. Pure.
 */
#pragma once

#include <stdint.h>

/* From good to bad: of several, the last is the ruling. */
enum verdict {
    VERDICT_NONE,
    VERDICT_ABSENT, /* there is no such thing on this machine, in a sandbox or outside of it */
    VERDICT_REFUSED,
    VERDICT_UNTRIED, /* the attempt could not be made: nothing is known */
    VERDICT_THROUGH,
};

struct ruling {
    enum verdict verdict;
    uint64_t took_ns;
    unsigned tries;   /* how many attempts, in all sandboxes */
    char detail[400]; /* what got through, what is absent */
};

/* A ruling only gets worse. */
void ruling_add(struct ruling *ruling, enum verdict verdict, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
