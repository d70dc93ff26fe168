/*
 * gateway: the service itself, once everything was handed over.
 */
#pragma once

#include "gateway/handover.h"

/* Serve until the keeper ends the conversation. The process's exit status. */
int gateway_run(struct handover *handover);
