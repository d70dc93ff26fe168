/*
 * own: is it an address of the machine's own? Asks the kernel each time, because they come and go.
 */
#pragma once

#include "airlock/address.h"

/* Also when it can't be found out. */
bool own_has(const struct address *address);
