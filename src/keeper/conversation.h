/*
 * conversation: what a keeper's client asks for, and what it is told.
 *
 * AS ROOT. The client is taken to be compromised: what its state does not permit ends the conversation.
 */
#pragma once

#include "keeper/job.h"
#include "keeper/source.h"
#include "wire/wire.h"

/* To the client, if there is one. 0 or -errno. */
_must_use_ int conversation_tell(struct keeper *keeper, const struct wire_message *message, const int *fds,
                                 size_t fd_count);

/* For the sources of the client's socket and of a job's helper. */
_must_use_ int conversation_ready(struct keeper *keeper, struct source *source);
_must_use_ int conversation_job_ready(struct keeper *keeper, struct source *source);

/* A job of a CREATE could not be started. */
_must_use_ int conversation_refuse_job(struct keeper *keeper, const struct job *job, const struct error *why);
