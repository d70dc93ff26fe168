/*
 * referee: makes one attack, in every kind of sandbox it is meant for, and rules on it: was everything refused, and are
 * host and neighbour unharmed?
 *
 * AS ROOT. Needs nothing of Hutch's but the program `hutch`, and `hutchd` for attacks on the service (visit.h).
 */
#pragma once

#include "attack/attack.h"
#include "attack/door.h"
#include "attack/ground.h"
#include "attack/neighbour.h"
#include "attack/ruling.h"
#include "attack/tries.h"

struct referee {
    const char *hutch; /* the program to be attacked */
    const char *state; /* its --state, NULL: its own default */
    struct ground ground;
    struct neighbour neighbour;
    struct door door;   /* open from the first attack on the service on */
    struct tries tries; /* of the last run */
    struct tries control;
};

_must_use_ int referee_init(struct referee *referee, const char *hutch, const char *own, const char *state,
                            struct error *err);
void referee_release(struct referee *referee);

/* What is left of an attack, and what it did to the host. */
void referee_judge_surroundings(struct referee *referee, struct ruling *ruling);

void referee_judge(struct referee *referee, const struct attack *attack, struct ruling *ret_ruling);
