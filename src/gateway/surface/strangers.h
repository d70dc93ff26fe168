/*
 * strangers: refusals of callers who are not known, on their way into the audit log.
 *
 * Every refusal gets there, but whoever has no credential must not be able to fill the log. Of each address the first
 * STRANGERS_EACH of an interval are records of their own; the rest is counted by reason, and at the end of the interval
 * one record says how many there were. Addresses beyond STRANGERS_MAX share one count. So an interval leaves at most
 * STRANGERS_MAX * (STRANGERS_EACH + 1) + 1 records, whatever is sent from wherever. The last record of its own says
 * that what follows is counted: should the gateway be killed before the interval ends, that is left of the count.
 *
 * Used by surface.c. Pure: it reads no clock; whoever has it says when an interval ends. IPv6 addresses of one network
 * (/64) are one address: a single machine has that many.
 */
#pragma once

#include "gateway/net/peer.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { STRANGERS_EACH = 8, STRANGERS_MAX = 128, STRANGERS_INTERVAL_MS = 60000, STRANGERS_REASONS = 16 };
enum { STRANGERS_NAME_SIZE = INET6_ADDRSTRLEN + 4 };

struct stranger {
    char address[STRANGERS_NAME_SIZE]; /* "others" for the one that is shared */
    uint64_t seen;                     /* in this interval */
    uint64_t counted;                  /* of these, that have no record of their own */
    uint64_t reasons[STRANGERS_REASONS];
};

struct strangers {
    struct stranger each[STRANGERS_MAX];
    size_t count;
    struct stranger others;
};

enum strangers_verdict {
    STRANGERS_RECORD,      /* it gets a record */
    STRANGERS_RECORD_LAST, /* and the next of this address do not */
    STRANGERS_COUNTED,     /* it is in the record that comes at the end of the interval */
};

/* `reason` is the code of the answer. */
enum strangers_verdict strangers_note(struct strangers *strangers, const struct peer *peer, const char *reason);

/* The next of those who have something counted: start with NULL; NULL after the last. */
const struct stranger *strangers_next(const struct strangers *strangers, const struct stranger *current);

/* What would be counted for one refusal. */
struct stranger strangers_one(const struct peer *peer, const char *reason);

/* Counted in an interval that has ended, and not recorded then: it is in the record of this one. */
void strangers_count_again(struct strangers *strangers, const struct stranger *stranger);

/* Another interval. */
void strangers_clear(struct strangers *strangers);

/* The codes that are counted apart; the last one stands for all others. */
const char *strangers_reason(size_t index);
