/*
 * boot: all that a daemon needs before its first gateway.
 *
 * AS ROOT. Called once; what it opened the daemon releases, also when it failed.
 */
#pragma once

#include "keeper/daemon_core.h"

_must_use_ int boot(struct daemon *daemon, struct error *err);
