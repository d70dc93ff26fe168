/*
 * airlock_sockets: a sandbox's way out, made inside its network namespace before anything of the sandbox's runs there.
 *
 * AS ROOT, in the zygote, which is in that namespace. Every address is local: a connection to any of them, on any port,
 * comes to one TCP socket, and every question for a name to one UDP socket; their other ends are in the airlock, on the
 * host's side. So there is no packet that could leave, and no rule on the host that could be missing. Loopback
 * addresses stay the sandbox's own, but for the proxy's port.
 */
#pragma once

#include "base/error.h"

#include <stdint.h>

/* Make them and hand them over (PLUG). 0 or -errno. */
_must_use_ int airlock_sockets_plug(int airlock_fd, uint64_t sandbox);
