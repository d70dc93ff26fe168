/*
 * asking: operations on files, asked of a hutch-init and heard to their end, as the gateway will. The answer is checked
 * as the client's library checks a hostile one.
 */
#pragma once

#include "base/buf.h"
#include "guest.h"
#include "wire/answer.h"

enum { ASKING_USER = 65534, ASKING_LONGEST = 256 << 20, IN_FOLDER_ROOMS = 32 };

struct asked {
    struct answer answer;
    struct buf content; /* of a file that was read, up to ASKING_LONGEST */
    size_t records;
    size_t problems;
    uint32_t last_problem;
    struct wire_entry entry; /* the last one; its name and target are below */
    char name[4097];
    char target[4097];
    struct wire_event event; /* likewise */
    uint64_t written;
    uint64_t heard;
    bool is_broken; /* it said what it may not */
    bool has_ended;
    struct wire_exit exit;
    void (*on_record)(const struct wire_message *record, void *context);
    void *context;
};

/* A question as a command's user, about all there is. */
struct wire_file question(enum wire_file_operation operation, const char *path, uint32_t flags);

/* Ask, without waiting. */
void ask(const struct guest *guest, const struct wire_file *file, struct asked *asked);

/* Take the last message into account: false when it is another channel's or can't be. */
bool asked_hear(const struct guest *guest, uint64_t channel, struct asked *asked);

/* Hear it to its end, with `input` as its standard input. */
bool asked_finish(struct guest *guest, uint64_t channel, const void *input, size_t length, struct asked *asked);

void asked_release(const struct guest *guest, uint64_t channel, struct asked *asked);

/* All of the above: 0 or the errno it ended with, -1 when it did not end as it should. */
int asked_once(struct guest *guest, struct wire_file file, const void *input, size_t length, struct asked *asked);

/* The same for one whose answer does not matter. */
int asked_simply(struct guest *guest, struct wire_file file);

/* guest_main() with a file system of our own, in a mount namespace of our own, at `asking_folder`. */
extern char asking_folder[64];
int asking_main(int argc, char **argv, const struct guest_case *cases, size_t count);

/* The path of a name in it; valid for 31 more calls. */
const char *in_folder(const char *name);

/* From outside, past init: the user's file with this content; has it this content; is the name taken? */
bool asking_write(const char *name, const void *data, size_t length);
bool asking_holds(const char *name, const void *data, size_t length);
bool asking_is_there(const char *name);
