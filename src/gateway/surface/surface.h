/*
 * surface: the front door /api/v1: what callers say in HTTP and JSON, translated to engine and store and back.
 *
 * Used by gateway.c, in the loop's thread. It owns nothing of a sandbox's: what must be known again after a restart of
 * the gateway travels with the sandbox (`extra`, profile.h). One surface serves any number of servers.
 */
#pragma once

#include "base/log.h"
#include "gateway/config/config.h"
#include "gateway/engine/engine.h"
#include "gateway/net/meter.h"
#include "gateway/net/server.h"
#include "gateway/store/credentials.h"
#include "gateway/store/store.h"

struct surface;

struct surface_options {
    uv_loop_t *loop;
    struct engine *engine;
    struct store *store;
    struct credentials *credentials;
    const struct config *config;
    struct meter *meter;
    const struct log *log;
};

/* What is given must outlive it. The error says which pattern of a blocklist does not compile. */
_must_use_ int surface_new(const struct surface_options *options, struct surface **ret_surface, struct error *err);
void surface_free(struct surface *surface);

/* Another configuration from now on; on failure the old one stays. */
_must_use_ int surface_reconfigure(struct surface *surface, const struct config *config, struct error *err);

enum { SURFACE_SERVERS_MAX = 64 };

/* Where /metrics finds what servers count. */
void surface_add_server(struct surface *surface, const struct server *server);
void surface_remove_server(struct surface *surface, const struct server *server);

/* End the streams that would never end by themselves, before the servers are stopped. */
void surface_end_streams(struct surface *surface);

const struct router *surface_router(const struct surface *surface);

/* Record the refusals that were only counted so far, before the store is closed. */
void surface_tell_strangers(struct surface *surface);

/* For struct server_options, whose context is the surface. */
enum before surface_before(struct request *request);
void surface_bad(void *context, const struct peer *peer, unsigned status, const char *message);
void surface_refuse(struct request *request, unsigned status, const char *code, const char *message);
void surface_done(const struct request *request, unsigned status, uint64_t bytes_sent, uint64_t duration_ns);

/* Tell the pool what to keep ready: what the configuration's defaults make. */
_must_use_ int surface_fill_pool(struct surface *surface, struct error *err);
