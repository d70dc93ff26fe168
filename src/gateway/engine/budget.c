#include "gateway/engine/budget.h"

enum { EXTRA_PART = 3, AT_ONCE_PART = 4 };

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

void budget_init(struct budget *budget, uint64_t bytes)
{
    if (bytes == 0)
        bytes = UINT64_MAX;
    *budget = (struct budget){.least_max = bytes - bytes / EXTRA_PART, .extra_max = bytes / EXTRA_PART};
}

static uint64_t extra_left(const struct budget *budget)
{
    return budget->extra < budget->extra_max ? budget->extra_max - budget->extra : 0;
}

static struct budget_share take(struct budget *budget, uint64_t least, uint64_t extra)
{
    budget->least += least;
    budget->extra += extra;
    return (struct budget_share){.least = least, .extra = extra};
}

int budget_take(struct budget *budget, uint64_t wanted, uint64_t least, struct budget_share *ret_share)
{
    least = smaller(wanted, least);
    if (budget->least >= budget->least_max || least > budget->least_max - budget->least)
        return -ENOBUFS;
    *ret_share = take(budget, least, smaller(wanted - least, extra_left(budget) / AT_ONCE_PART));
    return 0;
}

struct budget_share budget_take_again(struct budget *budget, uint64_t wanted, uint64_t least)
{
    least = smaller(wanted, least);
    return take(budget, least, smaller(wanted - least, extra_left(budget)));
}

struct budget_share budget_note(struct budget *budget, uint64_t bytes)
{
    return take(budget, 0, bytes);
}

void budget_give_back(struct budget *budget, struct budget_share *share)
{
    budget->least -= share->least;
    budget->extra -= share->extra;
    *share = (struct budget_share){0};
}
