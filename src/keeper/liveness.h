/*
 * liveness: whether a gateway still answers. It is asked a few times within the time that an answer may take, one
 * question after the other; one that never becomes ready is late, too.
 *
 * AS ROOT. Pure: says when to ask and when to give up, and reads no clock.
 */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

enum liveness_verdict { LIVENESS_FINE, LIVENESS_ASK, LIVENESS_LATE };

struct liveness {
    uint64_t limit_ns; /* for one answer; 0: nothing is watched */
    uint64_t due_ns;   /* when the verdict changes by itself */
    uint64_t number;   /* of the last question */
    bool is_ready;
    bool is_asked; /* and has not answered */
};

/* One was started; it becomes ready; it is no more. */
void liveness_start(struct liveness *liveness, uint64_t limit_ms, uint64_t now_ns);
void liveness_ready(struct liveness *liveness, uint64_t now_ns);
void liveness_stop(struct liveness *liveness);

/* With LIVENESS_ASK the question of this number is due, and counts as asked. */
enum liveness_verdict liveness_look(struct liveness *liveness, uint64_t now_ns);

/* 0, or -EBADMSG when this was not asked. */
_must_use_ int liveness_answered(struct liveness *liveness, uint64_t number, uint64_t now_ns);
