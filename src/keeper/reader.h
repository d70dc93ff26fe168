/*
 * reader: has the configuration read by an unprivileged process, and takes its answer.
 *
 * AS ROOT, which looks at no byte of the file. The reader gets the file as standard input, answers with one CONFIG, and
 * says on standard error what is wrong with it. Another such process sees whether a certificate fits its key.
 */
#pragma once

#include "keeper/relay.h"
#include "keeper/service.h"
#include "wire/wire.h"

enum { READER_LIMIT_MS = 10000 };

struct reader {
    int socket; /* readable when it has answered or ended; -1: none is at work */
    int pidfd;
    uint64_t deadline_ns;
    struct relay relay; /* what it says fits the pipe, and is handed on at its end */
};

#define READER_EMPTY ((struct reader){.socket = -1, .pidfd = -1, .relay = RELAY_EMPTY})

/* What it is run with. */
struct reader_plan {
    struct service_user user;
    int program_fd;
    char *const *environment;
    const char *file; /* its name, for messages */
};

/*
 * The bytes of a small file, sealed so that nobody changes them later; -1 for `file_fd` is a file with nothing in it.
 * `what` names it in messages.
 */
_must_use_ int reader_copy_file(int file_fd, const char *what, int *ret_fd, struct error *err);

/* `config_fd` is from reader_copy_file(). */
_must_use_ int reader_start(struct reader *reader, const struct reader_plan *plan, int config_fd, struct error *err);

/*
 * Its answer, once the socket is readable or the time is up; the message's views point into `frame` (WIRE_FRAME_MAX
 * bytes). The reader is gone afterwards. -EINVAL when it found something wrong and has said so.
 */
_must_use_ int reader_take(struct reader *reader, uint8_t *frame, struct wire_message *ret_message, struct error *err);
void reader_end(struct reader *reader);

/* Whether certificate and key go together; waits for the answer. */
_must_use_ int reader_check_certificate(const struct reader_plan *plan, int certificate_fd, int key_fd,
                                        struct error *err);
