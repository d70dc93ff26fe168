/*
 * child: the steps between clone and init, taken by the process that becomes PID 1 of the sandbox.
 *
 * NAMESPACE ROOT of its sandbox, with every capability there and none outside. It speaks on the guest link: GO comes
 * in when the id maps are written; SETUP goes out, with the time of each step or with the step that failed.
 */
#pragma once

#include "keeper/spawn.h"

_Noreturn void child_run(const struct spawn *spawn);
