/*
 * beside: the other programs of Hutch, for those that start them. They lie beside this one, or where an installation
 * puts them, wherever that was put.
 */
#pragma once

#include "base/error.h"

/* An O_PATH descriptor of the program with this name. */
_must_use_ int beside_open(const char *name, int *ret_fd, struct error *err);
