#include "gateway/engine/state.h"

enum { NEVER = SANDBOX_STATES };

#define ROW(made, refused, frozen, thawed, halted, restarted, ended, vanished)                                         \
    {                                                                                                                  \
        [STATE_MADE] = (made), [STATE_REFUSED] = (refused), [STATE_FROZEN] = (frozen), [STATE_THAWED] = (thawed),      \
        [STATE_HALTED] = (halted), [STATE_RESTARTED] = (restarted), [STATE_ENDED] = (ended),                           \
        [STATE_VANISHED] = (vanished)                                                                                  \
    }

#define READY SANDBOX_READY
#define PAUSED SANDBOX_PAUSED
#define STOPPED SANDBOX_STOPPED
#define STOPPING SANDBOX_STOPPING
#define GONE SANDBOX_GONE
#define FAILED SANDBOX_FAILED

/* clang-format off */
static const uint8_t table[SANDBOX_STATES][STATE_EVENTS] = {
    /*                         made   refused  frozen  thawed halted   restarted ended     vanished */
    [SANDBOX_CREATING] = ROW(READY, FAILED,  NEVER,  NEVER, NEVER,   NEVER,    STOPPING, FAILED),
    [SANDBOX_READY]    = ROW(NEVER, NEVER,   PAUSED, NEVER, STOPPED, NEVER,    STOPPING, GONE),
    [SANDBOX_PAUSED]   = ROW(NEVER, NEVER,   NEVER,  READY, NEVER,   NEVER,    STOPPING, GONE),
    [SANDBOX_STOPPED]  = ROW(NEVER, NEVER,   NEVER,  NEVER, NEVER,   READY,    STOPPING, GONE),
    [SANDBOX_STOPPING] = ROW(NEVER, GONE,    NEVER,  NEVER, NEVER,   NEVER,    NEVER,    GONE),
    [SANDBOX_GONE]     = ROW(NEVER, NEVER,   NEVER,  NEVER, NEVER,   NEVER,    NEVER,    NEVER),
    [SANDBOX_FAILED]   = ROW(NEVER, NEVER,   NEVER,  NEVER, NEVER,   NEVER,    NEVER,    NEVER),
};
/* clang-format on */

int state_next(enum sandbox_state state, enum state_event event, enum sandbox_state *ret_next)
{
    if (table[state][event] == NEVER)
        return -EINVAL;
    *ret_next = (enum sandbox_state)table[state][event];
    return 0;
}

bool state_is_live(enum sandbox_state state)
{
    return state < SANDBOX_STOPPING;
}

const char *sandbox_state_name(enum sandbox_state state)
{
    static const char *const names[SANDBOX_STATES] = {
        [SANDBOX_CREATING] = "creating", [SANDBOX_READY] = "running",     [SANDBOX_PAUSED] = "paused",
        [SANDBOX_STOPPED] = "stopped",   [SANDBOX_STOPPING] = "stopping", [SANDBOX_GONE] = "gone",
        [SANDBOX_FAILED] = "failed",
    };

    return state < SANDBOX_STATES ? names[state] : "unknown";
}

const char *sandbox_reason_name(enum sandbox_reason reason)
{
    static const char *const names[SANDBOX_REASONS] = {
        [SANDBOX_NO_REASON] = "",      [SANDBOX_DESTROYED] = "destroyed",
        [SANDBOX_IDLE] = "idle",       [SANDBOX_EXPIRED] = "expired",
        [SANDBOX_OOM] = "oom",         [SANDBOX_CRASHED] = "crashed",
        [SANDBOX_DRAINED] = "drained",
    };

    return reason < SANDBOX_REASONS ? names[reason] : "unknown";
}
