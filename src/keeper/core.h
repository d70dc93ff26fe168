/*
 * core: a keeper's inside, shared by keeper.c (its life, and the ends of its sandboxes) and conversation.c (its
 * client).
 *
 * AS ROOT. Nobody else includes this.
 */
#pragma once

#include "keeper/adoption.h"
#include "keeper/instance.h"
#include "keeper/jobs.h"
#include "keeper/keeper.h"
#include "keeper/memory.h"
#include "keeper/registry.h"
#include "keeper/sandbox.h"
#include "keeper/source.h"
#include "wire/wire.h"

struct keeper {
    struct source client;
    struct memory memory;
    struct instance instance;
    struct sandbox_maker maker;
    const struct keeper_service *service;
    const struct folders *folders;
    uint64_t disk_max_bytes; /* 0: any */
    int client_fd;           /* -1 while there is none */
    enum adoption adoption;
    int epoll_fd;
    int zygote_pidfd;
    bool single;
    bool ordered;          /* the zygote cleans up after us */
    struct sandbox *dying; /* dead, but something of them is still busy */
    struct registry registry;
    struct jobs jobs;
    uint8_t frame[WIRE_FRAME_MAX];
};

_must_use_ int keeper_watch(struct keeper *keeper, int fd, struct source *source);

/* A new sandbox's end, and want of memory in it. */
_must_use_ int keeper_watch_sandbox(struct keeper *keeper, struct sandbox *sandbox, struct error *err);

/* End it and wait until nothing is left. False when something was still there after two seconds. */
bool keeper_end_now(struct keeper *keeper, struct sandbox *sandbox);
void keeper_forget(struct keeper *keeper, struct sandbox *sandbox);

/* It is the keeper's until it is removed, which frees it. Those that may are started by keeper_start_jobs(). */
void keeper_add_job(struct keeper *keeper, struct job *job);
void keeper_remove_job(struct keeper *keeper, struct job *job);
_must_use_ int keeper_start_jobs(struct keeper *keeper);

/* A sandbox has given its memory back: remove what is left of it. */
_must_use_ int keeper_remove_sandbox(struct keeper *keeper, struct sandbox *sandbox);
