/*
 * host_layer: the root of template `host`: empty folders, links into /usr and a synthetic /etc.
 *
 * AS ROOT. It is built once below the state folder from a fixed list of files of our own and a few public things of
 * the host's /etc (alternatives, certificates, the linker's cache), and built again when those change. Nothing that
 * is not world-readable on the host is copied. Every user holds a shared lock on it; old ones nobody holds are removed.
 */
#pragma once

#include "base/error.h"

/* The layer's folder, locked for as long as the descriptor is open. */
_must_use_ int host_layer_open(int state_fd, int *ret_fd, struct error *err);
