/*
 * net: the airlock of one `hutch run`: starts it, tells it what the sandbox may reach, and keeps what it decided.
 *
 * The airlock is a program of its own beside this one; it ends with this process, and the sandbox's network with it.
 */
#pragma once

#include "cli/options.h"
#include "keeper/service.h"

enum { NET_REFUSALS_MAX = 16 };

struct net_refusal {
    char why[641];
    uint32_t count;
};

struct net {
    int keeper_fd;              /* where the keeper hands over sandboxes */
    int client_fd;              /* where the airlock says what it decided; -1: there is none, or no more */
    struct service_begun begun; /* until it is known whether it runs */
    int pidfd;
    struct net_refusal refusals[NET_REFUSALS_MAX];
    size_t refusal_count;
    uint64_t more; /* refusals that are not listed */
    bool is_ruled;
};

#define NET_EMPTY                                                                                                      \
    {                                                                                                                  \
        .keeper_fd = -1, .client_fd = -1, .begun = {.pidfd = -1, .told_fd = -1}, .pidfd = -1                           \
    }

/* Nothing, with --net none. */
_must_use_ int net_start(struct net *net, const struct run_options *options, uint64_t sandbox, struct error *err);

/* The rules are in force, or this says what is wrong with them. */
_must_use_ int net_wait(struct net *net, struct error *err);

/* Its link can be read. An airlock that has ended is not an error: the sandbox has no network any more. */
_must_use_ int net_hear(struct net *net, struct error *err);

/* What was refused, for somebody whose command failed. */
void net_explain(const struct net *net);

void net_release(struct net *net);
