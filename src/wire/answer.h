/*
 * answer: the client's end of a FILE channel: what its standard output means.
 *
 * Used by whoever asks a sandbox for its files. Pure: takes the bytes of STDOUT and EXIT frames in any pieces, gives
 * records and content. The sandbox is taken to be hostile: what does not belong into the answer to the question that
 * was asked, or a name that could lead out of the folder it was found in, is -EBADMSG.
 *
 *  READ           an ENTRY, then the content
 *  STAT           an ENTRY
 *  WRITE, APPEND  WRITTEN
 *  LIST           ENTRY and PROBLEM, any number of them
 *  REMOVE         PROBLEM, any number of them, when RECURSIVE
 *  WATCH          EVENT: WATCHING, then any number of them; GONE is the last
 *  the others     nothing
 */
#pragma once

#include "wire/wire.h"

enum { ANSWER_RECORD_MAX = 8320 }; /* an entry with the longest name and target */

struct answer {
    enum wire_file_operation operation;
    bool recursive;
    bool gone;             /* a watch said its last word */
    uint64_t records;      /* so far */
    uint64_t content_left; /* that may still come */
    size_t held_length;    /* of a record of which the rest is still to come */
    uint8_t held[ANSWER_RECORD_MAX];
};

/* A piece of an answer: a record, or when its type is WIRE_NOTHING some content. */
struct answer_part {
    struct wire_message record; /* its views live until the next call */
    struct wire_bytes content;
};

void answer_init(struct answer *answer, const struct wire_file *question);

/*
 * The next part from `*data`, which moves behind what was used. 1, 0 when it is used up, or -EBADMSG; after that
 * nothing more is to be taken from it.
 */
_must_use_ int answer_next(struct answer *answer, struct wire_bytes *data, struct answer_part *ret_part);

/* With EXIT, after its last bytes: 0 when it answers the question or says why it could not be, else -EBADMSG. */
_must_use_ int answer_end(const struct answer *answer, const struct wire_exit *exit);

/* A path below a folder: no empty name, no `.`, no `..`, not absolute. */
bool answer_is_below(struct wire_str path);
