/*
 * daemon_core: a daemon's inside, shared by daemon.c (its loop and its end), boot.c (its start), gateway.c (the
 * gateway) and renew.c (a new configuration).
 *
 * AS ROOT. Nobody else includes this.
 */
#pragma once

#include "base/log.h"
#include "keeper/configuration.h"
#include "keeper/daemon.h"
#include "keeper/enclosure.h"
#include "keeper/keeper.h"
#include "keeper/liveness.h"
#include "keeper/relay.h"
#include "keeper/reload.h"
#include "keeper/settings.h"
#include "keeper/supervisor.h"

#define MS_NS UINT64_C(1000000)

enum phase { PHASE_RUNNING, PHASE_DRAINING, PHASE_ENDED };

struct daemon {
    const struct daemon_options *options;
    struct log log;
    enum phase phase;
    int status;
    uint64_t drain_until_ns;
    uint64_t watchdog_ns; /* between two words to it; 0: none */
    uint64_t watchdog_due_ns;
    int state_fd;
    int lock_fd;
    int gateway_state_fd;
    int init_fd;
    int presets_fd;
    int signal_fd;
    int zygote_fd;
    int zygote_pidfd;
    int zygote_watch_fd;
    char unix_path[LISTENER_PATH_SIZE];
    struct configuration configuration;
    struct keeper_service service;
    struct keeper *keeper;
    struct supervisor supervisor;
    struct enclosure enclosure; /* the gateway's */
    struct liveness liveness;
    struct settings settings;
    struct reload reload;
    struct relay relay; /* the gateway's standard error */
};

/* End, with a reason that is logged. */
void daemon_give_up(struct daemon *daemon, const char *why);
