/*
 * transfer: one file on its way into the sandbox (--put) or out of it (--get).
 *
 * Does no waiting: run.c sends what transfer_next() gives and hands over what init says. Both sides are guarded: on the
 * caller's no symlink is followed and nothing but a file is read or replaced, and that only by a whole one; of the
 * sandbox's answer no more is taken than was asked for, and no bit of its mode that outside would be more than a
 * permission.
 */
#pragma once

#include "cli/options.h"
#include "wire/answer.h"

struct transfer {
    const struct option_copy *copy;
    const char *option; /* --put or --get, for messages */
    bool is_put;
    char temporary[32]; /* what it is called until it is whole */
    bool has_name;      /* what came out has taken its place */
    int fd;             /* the caller's file; one that comes out has a name of its own in `folder` until it is whole */
    int folder;
    const char *name; /* in it, in the end */
    uint64_t limit;   /* the most that may come out */
    uint64_t size;    /* to be sent, or announced */
    uint64_t sent;    /* read from the caller's file */
    uint64_t taken;   /* by the sandbox */
    bool is_sent;     /* to its end */
    uint64_t heard;   /* of the answer */
    uint64_t acked;   /* of that */
    uint64_t written; /* to the caller's file */
    uint32_t mode;    /* of the file that came out */
    int error;        /* on the caller's side: an errno */
    bool ended;
    struct wire_file question;
    struct wire_exit exit;
    struct answer answer;
};

/* Open the caller's side and phrase the question. The owner calls transfer_release(), also after an error. */
_must_use_ int transfer_open(struct transfer *transfer, const struct run_options *options,
                             const struct option_copy *copy, bool is_put, uint64_t channel, struct error *err);
void transfer_release(struct transfer *transfer);

/* The next message to send, if there is one. */
bool transfer_next(struct transfer *transfer, struct wire_message *ret_message);

/* A message of its channel. -EBADMSG when init may not send it. */
_must_use_ int transfer_hear(struct transfer *transfer, const struct wire_message *message);

/* It has ended, or never will: put the file in its place, or say why not. */
_must_use_ int transfer_finish(struct transfer *transfer, struct error *err);
