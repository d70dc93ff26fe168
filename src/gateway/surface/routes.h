/*
 * routes: every route of the surface, in one table.
 */
#pragma once

#include "gateway/config/config.h"
#include "gateway/net/router.h"

/* The table with the configuration's caps, and its router, which uses it. Both are the caller's. */
_must_use_ int routes_make(const struct config *config, struct route **ret_routes, struct router **ret_router,
                           struct error *err);

/* meta.c */
void meta_healthz(struct request *request);
void meta_openapi(struct request *request);
void meta_health(struct request *request);
void meta_metrics(struct request *request);

/* sandboxes.c */
void sandboxes_create(struct request *request);
void sandboxes_list(struct request *request);
void sandboxes_get(struct request *request);
void sandboxes_delete(struct request *request);
void sandboxes_pause(struct request *request);
void sandboxes_resume(struct request *request);
void sandboxes_usage(struct request *request);

/* tools.c */
void tools_list(struct request *request);
void tools_execute(struct request *request);

/* execs.c */
void execs_create(struct request *request);
void execs_list(struct request *request);
void execs_get(struct request *request);
void execs_delete(struct request *request);
void execs_signal(struct request *request);
void execs_resize(struct request *request);

/* input.c */
void input_post(struct request *request);

/* output.c */
void output_get(struct request *request);

/* files.c */
void files_get(struct request *request);
void files_put(struct request *request);
void files_delete(struct request *request);

/* keys.c */
void keys_create(struct request *request);
void keys_list(struct request *request);
void keys_revoke(struct request *request);

/* logs.c */
void logs_get(struct request *request);

/* events.c */
void events_get(struct request *request);
