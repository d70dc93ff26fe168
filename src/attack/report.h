/*
 * report: what `hutch attack` found, as a table for people or one JSON object. Pure: writes into a buffer.
 */
#pragma once

#include "attack/referee.h"
#include "base/buf.h"

struct report {
    const struct attack *const *attacks;
    const struct ruling *rulings; /* one per attack; VERDICT_NONE: was not asked for */
    size_t count;
    const char *version; /* of Hutch */
    const char *kernel;  /* its release */
};

/* Everything that was asked for was refused, or is not there at all. */
bool report_is_good(const struct report *report);

/* One row, with a heading when its group differs from that of `last`. NULL: it is the first one. */
_must_use_ int report_row(const struct report *report, size_t i, const struct attack *last, bool colour,
                          struct buf *text);
_must_use_ int report_summary(const struct report *report, bool colour, struct buf *text);

_must_use_ int report_json(const struct report *report, struct buf *json);

/* The attacks alone: names and what they try. */
_must_use_ int report_list(const struct report *report, struct buf *text);
