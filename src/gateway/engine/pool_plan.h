/*
 * pool_plan: when the pool makes one more and when it lets one go. Pure: takes figures and the time, gives a decision.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    POOL_REST_MS = 5,          /* between two creations while others work */
    POOL_REST_QUIET_MS = 1,    /* and when nobody does */
    POOL_PATIENCE_MS = 50,     /* how long it lets an exec that has just started go first */
    POOL_RETRY_FIRST_MS = 250, /* after one that failed; doubled each time */
    POOL_RETRY_LAST_MS = 30000,
};

struct pool_plan_class {
    uint32_t min_idle;
    uint32_t max_idle;
    uint32_t idle;
    uint32_t making;
};

struct pool_plan {
    bool is_draining;  /* the gateway ends: nothing is made */
    uint32_t waiting;  /* creations and execs that wait for the keeper or for init */
    uint32_t running;  /* execs */
    bool is_lively;    /* an exec has just started or ended: most are short, and their answers are on the way */
    uint32_t making;   /* of the pool's, all classes */
    uint32_t failures; /* one after the other */
    uint64_t last_ms;  /* when the last one was made, claimed, or failed */
    uint64_t now_ms;
};

enum pool_what { POOL_NOTHING, POOL_MAKE, POOL_END, POOL_WAIT };

struct pool_decision {
    enum pool_what what;
    size_t class;     /* for MAKE and END */
    uint64_t wait_ms; /* for WAIT: look again then */
};

struct pool_decision pool_decide(const struct pool_plan *plan, const struct pool_plan_class *classes, size_t count);
