/*
 * sample: a message of every type, made from the table in messages.h, so that a new one is covered without a new test.
 */
#pragma once

#include "wire/wire.h"

enum sample_size {
    SAMPLE_LEAST, /* numbers are 0, the rest is empty */
    SAMPLE_SMALL, /* every field differs from its neighbours; strings and vectors have a few entries */
    SAMPLE_MOST,  /* every field is as large as it may be */
    SAMPLE_SIZES,
};

struct sample_row {
    const char *name;
    unsigned number;
    unsigned senders;
    unsigned states;
    size_t fds;
};

extern const struct sample_row sample_rows[];
extern const size_t sample_count;

enum { SAMPLE_NONE = -1 };

/*
 * Fill the message of a row. `over` is SAMPLE_NONE or the number of a field that is to be one above its maximum.
 * Returns how many fields it has. Its views point at static memory.
 */
int sample_fill(size_t row, enum sample_size size, int over, struct wire_message *ret_message);

/* May field `index` of a row have a maximum, as strings, bytes and vectors have? */
bool sample_has_maximum(size_t row, int index);
