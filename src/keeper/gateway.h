/*
 * gateway: the daemon's gateway: its start, what it says of itself, its end, and the next one.
 *
 * AS ROOT. The gateway is taken to be compromised: one that says what its state does not permit is replaced. Its
 * sandboxes and listeners stay here.
 */
#pragma once

#include "keeper/daemon_core.h"

_must_use_ int gateway_start(struct daemon *daemon, struct error *err);

/* The next one, when its time has come. */
void gateway_restart(struct daemon *daemon);

/* It is over with this one. `why` is NULL when it has ended by itself. */
void gateway_lose(struct daemon *daemon, const char *why);

/* Ask whether it still answers, and replace one that does not. */
void gateway_check(struct daemon *daemon, uint64_t now_ns);

_must_use_ int gateway_send_settings(struct daemon *daemon);

/* For struct keeper_service, with the daemon as context. */
int gateway_heard(void *context, const struct wire_message *message);
