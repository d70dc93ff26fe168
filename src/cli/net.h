/*
 * net: the airlock of one `hutch run`: starts it, tells it what the sandbox may reach, and keeps what it decided.
 *
 * The airlock is a program of its own beside this one; it ends with this process, and the sandbox's network with it.
 * Should it end before, another one is started, with the same rules and sockets; what waits in these meanwhile waits.
 */
#pragma once

#include "base/buf.h"
#include "cli/options.h"
#include "keeper/service.h"

enum { NET_REFUSALS_MAX = 16, NET_PLUG_FDS = 3 };

struct net_refusal {
    char why[641];
    uint32_t count;
};

struct net {
    const struct run_options *options;
    uint64_t sandbox;
    int keeper_fd;              /* where the keeper hands over the sandbox's sockets; -1: there is no network */
    int plug_fd;                /* where they come */
    int plugs[NET_PLUG_FDS];    /* kept for the next airlock */
    int airlock_fd;             /* where they go */
    int client_fd;              /* where the airlock says what it decided; -1: there is none, or no more */
    struct service_begun begun; /* until it is known whether it runs */
    int pidfd;
    struct net_refusal refusals[NET_REFUSALS_MAX];
    size_t refusal_count;
    uint64_t more; /* refusals that are not listed */
    uint64_t lost; /* decisions that the airlock could not tell */
    bool is_ruled;
    unsigned restarts;
};

void net_init(struct net *net);
void net_release(struct net *net);

/* Nothing, with --net none. */
_must_use_ int net_start(struct net *net, const struct run_options *options, uint64_t sandbox, struct error *err);

/* The rules are in force, or this says what is wrong with them. */
_must_use_ int net_wait(struct net *net, struct error *err);

/* What there is to be read, from the airlock and of the keeper's. */
_must_use_ int net_hear(struct net *net, struct error *err);
_must_use_ int net_take_plug(struct net *net, struct error *err);

/* What was refused, for somebody whose command failed. */
void net_explain(struct net *net);

/* The same as JSON: an array of objects. */
_must_use_ int net_append_json(struct net *net, struct buf *json);
