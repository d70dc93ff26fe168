/*
 * renew: what a daemon serves with, opened from a configuration, and put into the place of what was there before.
 *
 * AS ROOT. A new configuration is read and opened beside the old one, and takes its place only when all of it is good.
 */
#pragma once

#include "keeper/daemon_core.h"

/* What a configuration names; `before` is NULL at the start, else what is in force. */
_must_use_ int renew_open(struct daemon *daemon, struct settings *settings, const struct wire_config *config,
                          const struct settings *before, struct error *err);

/* daemon->settings are new: everybody here goes by them. */
void renew_put_in_force(struct daemon *daemon);

/* Have the configuration read again; and when the reader has answered or its time is up. */
void renew_start(struct daemon *daemon);
void renew_finish(struct daemon *daemon);

/* It is over; "" when it went well. */
void renew_end(struct daemon *daemon, const char *problem);
