/*
 * notify: telling systemd how the daemon is, and that it still is (sd_notify(3), without its library).
 *
 * AS ROOT.
 */
#pragma once

#include <stdint.h>

/* Nothing happens where nobody asked for it ($NOTIFY_SOCKET). */
void notify_send(const char *state);

/* RELOADING=1 with the time that it wants beside it. */
void notify_reloading(void);

/* How often it wants to hear WATCHDOG=1, half of what it allows; 0: not at all. */
uint64_t notify_watchdog_ns(void);
