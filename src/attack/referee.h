/*
 * referee: makes one attack, in every kind of sandbox it is meant for, and rules on it: was everything refused, and are
 * host and neighbour unharmed?
 *
 * AS ROOT. Needs nothing of Hutch's but the program `hutch`.
 */
#pragma once

#include "attack/attack.h"
#include "attack/ground.h"
#include "attack/neighbour.h"
#include "attack/tries.h"

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

struct referee {
    const char *hutch; /* the program to be attacked */
    const char *state; /* its --state, NULL: its own default */
    struct ground ground;
    struct neighbour neighbour;
    struct tries tries; /* of the last run */
    struct tries control;
};

_must_use_ int referee_init(struct referee *referee, const char *hutch, const char *own, const char *state,
                            struct error *err);
void referee_release(struct referee *referee);

void referee_judge(struct referee *referee, const struct attack *attack, struct ruling *ret_ruling);
