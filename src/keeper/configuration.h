/*
 * configuration: the daemon's file and environment, and having them read.
 *
 * AS ROOT, which looks at no byte of them. One reading at a time: started, waited for by whoever polls the reader's
 * socket, taken. What was read is in `file_fd` until somebody takes it.
 */
#pragma once

#include "keeper/environment.h"
#include "keeper/reader.h"
#include "wire/wire.h"

struct configuration {
    bool is_needed; /* the file was named by a person: it must be there */
    bool is_absent; /* it was not there: all defaults */
    int program_fd;
    char listen[2048];
    struct environment environment;
    struct reader_plan plan;
    struct reader reader;
    int file_fd; /* the bytes that the reader is at, or has read; -1 */
    uint8_t frame[WIRE_FRAME_MAX];
};

/* `file`, NULL for the usual one; `listen` goes before server.listen unless it is NULL. Release it in any case. */
_must_use_ int configuration_init(struct configuration *configuration, const char *file, const char *listen,
                                  struct error *err);
void configuration_release(struct configuration *configuration);

/* The program may have been replaced on disk; take what is there now. */
void configuration_refresh(struct configuration *configuration);

_must_use_ int configuration_start(struct configuration *configuration, struct error *err);

/* The answer, whose views live until the next reading. On failure there is no `file_fd` either. */
_must_use_ int configuration_take(struct configuration *configuration, struct wire_config *ret_config,
                                  struct error *err);

/* Start, wait and take. */
_must_use_ int configuration_read(struct configuration *configuration, struct wire_config *ret_config,
                                  struct error *err);
