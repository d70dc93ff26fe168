/*
 * session: one sandbox with one command in it, from the client's side of the conversation with keeper and init.
 *
 * Does no waiting of its own once the sandbox is asked for: run.c polls the descriptors and calls the handlers. Init is
 * taken to be hostile: what it sends must be permitted, in order and within the window, or the sandbox is ended.
 */
#pragma once

#include "cli/net.h"
#include "cli/options.h"
#include "cli/result.h"
#include "cli/sink.h"
#include "cli/transfer.h"

enum session_state {
    SESSION_STARTING, /* the sandbox is being made; the command may already be on its way to it */
    SESSION_RUNNING,
    SESSION_ENDED, /* the command ended, or never will */
};

struct session {
    struct run_options *options;
    struct keeper *keeper;
    struct net net;
    int client_fd; /* our end of the conversation with the keeper */
    int keeper_end;
    int init_fd;
    int guest_fd;
    enum session_state state;
    int wait_status; /* of init, once it is gone */
    bool gone;       /* the keeper has removed everything */
    struct sink sinks[2];
    struct transfer *transfer; /* the file that is on its way, or NULL */
    bool has_stdin;
    uint64_t stdin_sent;
    uint64_t stdin_taken;
    struct result result;
    uint32_t failed_step;
    uint64_t start_ns;
};

void session_init(struct session *session, struct run_options *options, uint64_t start_ns);
void session_release(struct session *session);

/* Make the sandbox and send it the command, unless files go first. */
_must_use_ int session_start(struct session *session, struct error *err);
_must_use_ int session_execute(struct session *session, struct error *err);

/* A message of the transfer. */
_must_use_ int session_send(struct session *session, const struct wire_message *message, struct error *err);

/* One message from init, and one from the keeper. */
_must_use_ int session_handle_guest(struct session *session, struct error *err);
_must_use_ int session_handle_keeper(struct session *session, struct error *err);

/* Standard input: how much may be sent now, and sending it; no bytes mean the end. */
size_t session_stdin_room(const struct session *session);
_must_use_ int session_send_stdin(struct session *session, const void *data, size_t length, struct error *err);

_must_use_ int session_signal(struct session *session, int signal_number, enum wire_scope scope, struct error *err);

/* The terminal inside: it has this size now; the one outside is gone, or as good as gone. */
_must_use_ int session_resize(struct session *session, uint16_t rows, uint16_t columns, struct error *err);
_must_use_ int session_hang_up(struct session *session, struct error *err);

/* Acknowledge what was written; tell the command about readers that have gone. */
_must_use_ int session_acknowledge(struct session *session, struct error *err);

/* Take the last measurements, if they matter. */
_must_use_ int session_measure(struct session *session, struct error *err);

/* The last call before the process exits: have the sandbox ended and removed, without waiting for that. */
void session_leave(struct session *session);
