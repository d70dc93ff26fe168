/*
 * report: what `hutch doctor` found, as a table for people or one JSON object. Pure: writes into a buffer.
 */
#pragma once

#include "base/buf.h"
#include "cli/doctor/check.h"

struct report {
    const struct check *checks;
    const struct finding *findings; /* one per check */
    size_t count;
    const char *version; /* of Hutch */
    const char *kernel;  /* its release */
};

/* Every required check said yes. */
bool report_can_make_sandbox(const struct report *report);

/* 0, -ENOBUFS or -ENOMEM. */
_must_use_ int report_text(const struct report *report, bool colour, struct buf *text);
_must_use_ int report_json(const struct report *report, struct buf *json);
