/*
 * child: the steps between clone and init, taken by the process that becomes PID 1 of the sandbox.
 *
 * NAMESPACE ROOT of its sandbox, with every capability there and none outside. It waits until the
 * zygote has written its id maps, and says SETUP on the guest link, with the time of each step or the one that failed.
 */
#pragma once

#include "keeper/spawn.h"

/*
 * `go_fd`: a byte comes when the id maps and idmapped layers are in place, and another when the network is; its end
 * means that they never will be.
 */
_Noreturn void child_run(const struct spawn *spawn, int go_fd);
