/*
 * check: what `hutch doctor` looks at. One table of checks, each with a probe that really tries the thing.
 *
 * A probe runs in a process of its own (attempt.h), may leave its namespaces, mounts and descriptors to that process's
 * end, and says what it found with finding_yes() or finding_no().
 */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum check_group {
    CHECK_NEEDED, /* without it no sandbox can be made */
    CHECK_OPTION, /* without it some option, or some part of the daemon, is missing */
    CHECK_AROUND, /* limits and surroundings */
};

enum { CHECK_NEEDS_MAX = 4 };

enum finding_state { FINDING_UNKNOWN, FINDING_YES, FINDING_NO };

/* In memory that the process of the probe shares with its caller. */
struct finding {
    enum finding_state state;
    char found[400];
    char mend[240]; /* instead of the check's own, where it depends on what was found */
};

struct probe {
    const struct check *check;
    const char *state; /* the state folder */
    struct finding *finding;
};

struct check {
    const char *name;
    enum check_group group;
    void (*probe)(struct probe *probe);
    const char *argument;               /* the probe's own, where several checks share one */
    const char *needs[CHECK_NEEDS_MAX]; /* checks before it, without which there is nothing to try */
    const char *meaning;                /* of a no */
    const char *mend;
    uint32_t limit_ms; /* 0: the usual */
};

extern const struct check checks[];
extern const size_t check_count;

static inline bool check_is_required(const struct check *check)
{
    return check->group == CHECK_NEEDED;
}

void finding_yes(struct probe *probe, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* `err` is a positive errno, whose text is appended, or 0. */
void finding_no(struct probe *probe, int err, const char *format, ...) __attribute__((format(printf, 3, 4)));

void finding_mend(struct probe *probe, const char *format, ...) __attribute__((format(printf, 2, 3)));
