/*
 * budget: memory for the output of execs that run, or that somebody still reads.
 *
 * Pure. Each exec has a share from its start on. One part of the budget is for the least that an exec needs, so that
 * nobody's large output keeps another from starting; the rest is for whatever is wanted beyond, of which nobody gets
 * more than a quarter of what is left.
 */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

struct budget {
    uint64_t least_max;
    uint64_t least;
    uint64_t extra_max;
    uint64_t extra;
};

struct budget_share {
    uint64_t least;
    uint64_t extra;
};

/* 0: without limit. */
void budget_init(struct budget *budget, uint64_t bytes);

/* At least `least` of `wanted`, if that is less: 0 or -ENOBUFS. */
_must_use_ int budget_take(struct budget *budget, uint64_t wanted, uint64_t least, struct budget_share *ret_share);

/* What an exec had under an earlier gateway, as far as it is there. It always gets the least. */
struct budget_share budget_take_again(struct budget *budget, uint64_t wanted, uint64_t least);

/* It is in use already: whoever comes next gets less. */
struct budget_share budget_note(struct budget *budget, uint64_t bytes);

void budget_give_back(struct budget *budget, struct budget_share *share);
