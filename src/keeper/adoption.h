/*
 * adoption: a new gateway is told of every sandbox that lives, in pieces that it has room for.
 *
 * AS ROOT.
 */
#pragma once

#include "keeper/registry.h"

enum adoption { ADOPTION_EXPECTED, ADOPTION_GOES_ON, ADOPTION_DONE };

/* Nobody knows of any sandbox now. */
void adoption_reset(struct registry *registry);

/* Send some more ADOPT, and at the end ADOPTED. 1 when that was it, 0 to go on when there is room again, or -errno. */
_must_use_ int adoption_continue(int socket, struct registry *registry);
