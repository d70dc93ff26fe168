#include "keeper/reload.h"

#define MS_NS UINT64_C(1000000)

void reload_told(struct reload *reload, uint64_t generation, uint64_t now_ns)
{
    reload->told = generation;
    if (reload->heard != 0)
        reload->until_ns = now_ns + RELOAD_LIMIT_MS * MS_NS;
}

void reload_forget(struct reload *reload)
{
    reload->told = reload->heard = reload->until_ns = 0;
}

bool reload_is_late(struct reload *reload, uint64_t now_ns)
{
    if (reload->until_ns == 0 || now_ns < reload->until_ns)
        return false;
    reload->until_ns = 0;
    return true;
}

int reload_ready(struct reload *reload, uint64_t generation)
{
    if (reload->heard != 0 || generation == 0 || generation != reload->told)
        return -EBADMSG;
    reload->heard = generation;
    return 0;
}

int reload_answered(struct reload *reload, uint64_t generation)
{
    if (reload->heard == 0 || generation <= reload->heard || generation > reload->told)
        return -EBADMSG;
    reload->heard = generation;
    if (generation != reload->told)
        return 0;
    reload->until_ns = 0;
    return 1;
}
