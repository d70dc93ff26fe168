#include "keeper/liveness.h"

#define MS_NS UINT64_C(1000000)

/* How many questions fit the limit; and how much longer than for an answer it may take to start: it may have a large
 * database to look through, and thousands of sandboxes to adopt. */
enum { QUESTIONS = 6, START_FACTOR = 10 };

void liveness_start(struct liveness *liveness, uint64_t limit_ms, uint64_t now_ns)
{
    uint64_t limit_ns = limit_ms * MS_NS;

    *liveness = (struct liveness){.limit_ns = limit_ns, .due_ns = now_ns + limit_ns * START_FACTOR};
}

void liveness_ready(struct liveness *liveness, uint64_t now_ns)
{
    liveness->is_ready = true;
    liveness->due_ns = now_ns + liveness->limit_ns / QUESTIONS;
}

void liveness_stop(struct liveness *liveness)
{
    *liveness = (struct liveness){0};
}

enum liveness_verdict liveness_look(struct liveness *liveness, uint64_t now_ns)
{
    if (liveness->limit_ns == 0 || now_ns < liveness->due_ns)
        return LIVENESS_FINE;
    if (!liveness->is_ready || liveness->is_asked)
        return LIVENESS_LATE;
    liveness->is_asked = true;
    liveness->number++;
    liveness->due_ns = now_ns + liveness->limit_ns;
    return LIVENESS_ASK;
}

int liveness_answered(struct liveness *liveness, uint64_t number, uint64_t now_ns)
{
    if (!liveness->is_asked || number != liveness->number)
        return -EBADMSG;
    liveness->is_asked = false;
    liveness->due_ns = now_ns + liveness->limit_ns / QUESTIONS;
    return 0;
}
