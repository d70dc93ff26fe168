/*
 * Theory of operation. A word of the kernel's makes suspects of all sandboxes that it may be about: of one (v2), or of
 * one in OOM_GROUPS (v1). Suspects are looked at in passes: v1 speaks before it has killed and counted, so a suspect is
 * looked at again after 5, 15, 35, 75 and 155 ms. Between two passes lies twenty times what the last one took, and
 * until the next one a group that has spoken is not listened to: a tenant that runs out of memory all the time costs
 * the keeper at most a twentieth of its time.
 */
#include "keeper/memory.h"

#include "base/clock.h"
#include "keeper/conversation.h"
#include "keeper/core.h"

#include <sys/epoll.h>

#define MS_NS UINT64_C(1000000)

enum { PASS_MS = 5, SHARE = 20, PASSES = 32 };

void memory_init(struct memory *memory, const struct cgroups *cgroups)
{
    oom_init(&memory->oom, cgroups_memory_fd(cgroups), cgroups_are_hybrid(cgroups));
}

void memory_release(struct memory *memory)
{
    oom_release(&memory->oom);
}

static void listen_to(struct keeper *keeper, int group, bool listens)
{
    struct memory_group *from = &keeper->memory.groups[group];
    struct epoll_event event = {.events = listens ? EPOLLIN : 0, .data.ptr = &from->source};

    (void)epoll_ctl(keeper->epoll_fd, EPOLL_CTL_MOD, oom_fd(&keeper->memory.oom, group), &event);
    from->is_heard = !listens;
}

static int group_ready(struct keeper *keeper, struct source *source)
{
    struct memory *memory = &keeper->memory;

    memory->heard++;
    listen_to(keeper, (int)(SOURCE_OWNER(struct memory_group, source) - memory->groups), false);
    return 1;
}

int memory_watch(struct keeper *keeper, struct sandbox *sandbox, struct error *err)
{
    struct memory *memory = &keeper->memory;
    int watch;
    int r = oom_watch(&memory->oom, sandbox->cgroup, &watch, err);

    if (r < 0)
        return r;
    struct sandbox **bucket = &memory->watched[watch % MEMORY_BUCKETS];
    sandbox->watch = watch;
    sandbox->next_watched = *bucket;
    *bucket = sandbox;
    int number = oom_group_of(&memory->oom, watch);
    struct memory_group *group = &memory->groups[number];
    if (group->is_watched)
        return 0;
    group->source.ready = group_ready;
    r = keeper_watch(keeper, oom_fd(&memory->oom, number), &group->source);
    group->is_watched = r == 0;
    return r < 0 ? error_set(err, ERROR_SYSTEM, -r, "watching for the memory limit") : 0;
}

static void unlink_suspect(struct memory *memory, const struct sandbox *sandbox)
{
    struct sandbox **at = &memory->suspects;

    while (*at != NULL && *at != sandbox)
        at = &(*at)->next_suspect;
    if (*at != NULL)
        *at = sandbox->next_suspect;
}

void memory_forget(struct memory *memory, struct sandbox *sandbox)
{
    if (sandbox->watch < 0)
        return;
    struct sandbox **at = &memory->watched[sandbox->watch % MEMORY_BUCKETS];
    while (*at != sandbox)
        at = &(*at)->next_watched;
    *at = sandbox->next_watched;
    if (sandbox->is_suspect)
        unlink_suspect(memory, sandbox);
    oom_unwatch(&memory->oom, sandbox->watch);
    sandbox->watch = -1;
}

static void suspect(struct memory *memory, struct sandbox *sandbox)
{
    sandbox->passes = 0;
    if (sandbox->is_suspect)
        return;
    sandbox->is_suspect = true;
    sandbox->next_suspect = memory->suspects;
    memory->suspects = sandbox;
}

static void suspect_watched(void *context, int watch)
{
    struct memory *memory = context;

    for (int i = 0; i < MEMORY_BUCKETS; i++) {
        if (watch >= 0 && watch % MEMORY_BUCKETS != i)
            continue;
        for (struct sandbox *sandbox = memory->watched[i]; sandbox != NULL; sandbox = sandbox->next_watched) {
            if (watch < 0 || sandbox->watch == watch)
                suspect(memory, sandbox);
        }
    }
}

static void hear_groups(struct keeper *keeper)
{
    struct memory *memory = &keeper->memory;

    for (int i = 0; i < OOM_GROUPS && memory->heard > 0; i++) {
        if (!memory->groups[i].is_heard)
            continue;
        memory->heard--;
        oom_take(&memory->oom, i, suspect_watched, memory);
        listen_to(keeper, i, true);
    }
}

/* 1 when there was a kill, which was told; 0, or -errno. */
static int look_at(struct keeper *keeper, struct sandbox *sandbox)
{
    /* Later and later: at the passes 0, 1, 3, 7, ... */
    if (((sandbox->passes + 1) & sandbox->passes) != 0 || sandbox->state != SANDBOX_LIVE)
        return 0;
    uint32_t kills = cgroup_oom_kills(keeper->maker.cgroups, sandbox->cgroup);
    if (kills <= sandbox->oom_kills)
        return 0;
    sandbox->oom_kills = kills;
    struct wire_message message = {.type = WIRE_OOM, .oom = {.sandbox = sandbox->id, .kills = kills}};
    int r = sandbox->is_told ? conversation_tell(keeper, &message, NULL, 0) : 0;
    return r < 0 ? r : 1;
}

int memory_look(struct keeper *keeper)
{
    struct memory *memory = &keeper->memory;
    uint64_t start_ns = clock_now_ns();
    int r = 0;

    if ((memory->heard == 0 && memory->suspects == NULL) || start_ns < memory->pass_ns)
        return 0;
    hear_groups(keeper);
    for (struct sandbox **at = &memory->suspects; *at != NULL && r >= 0;) {
        struct sandbox *sandbox = *at;
        r = look_at(keeper, sandbox);
        if (r == 0 && ++sandbox->passes < PASSES) {
            at = &sandbox->next_suspect;
            continue;
        }
        sandbox->is_suspect = false;
        *at = sandbox->next_suspect;
    }
    uint64_t now_ns = clock_now_ns();
    uint64_t pause_ns = (now_ns - start_ns) * SHARE;
    memory->pass_ns = now_ns + (pause_ns > PASS_MS * MS_NS ? pause_ns : PASS_MS * MS_NS);
    return r < 0 ? r : 0;
}

int memory_wait_ms(const struct memory *memory)
{
    uint64_t now_ns = clock_now_ns();

    if (memory->heard == 0 && memory->suspects == NULL)
        return -1;
    return now_ns >= memory->pass_ns ? 0 : (int)((memory->pass_ns - now_ns) / MS_NS) + 1;
}
