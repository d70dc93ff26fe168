/*
 * certificate: do a certificate and a key go together, and can they be used now?
 *
 * Run by itself, before anybody relies on them: at the daemon's start, on SIGHUP, and by `hutchd --check-config`.
 */
#pragma once

#include "base/error.h"

/* Both PEM. The descriptors stay open. */
_must_use_ int certificate_check(int certificate_fd, int key_fd, struct error *err);
