/*
 * daemon: the root side of the service: reads the configuration through the reader, opens what it names, keeps a
 * gateway running, and holds its sandboxes while there is none.
 *
 * AS ROOT. One thread, one loop.
 */
#pragma once

#include "base/error.h"

#include <stdbool.h>

struct daemon_options {
    const char *config; /* a file that must be there; NULL: the usual one, if it is there */
    const char *state;
    bool is_usual_state;
    const char *listen; /* in place of server.listen; NULL: as configured */
};

/* Until a signal ends it. The exit status; what kept it from starting was said on standard error. */
int daemon_run(const struct daemon_options *options);

/* Say whether the configuration is in order. The exit status. */
int daemon_check(const struct daemon_options *options);
