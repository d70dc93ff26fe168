#include "gateway/surface/routes.h"

#include "gateway/surface/call.h"

#include <stdlib.h>
#include <string.h>

enum { SMALL = 64 << 10 };
#define CONFIGURED ((uint64_t)32 << 20) /* server.max_body_mb takes its place */
#define UNLIMITED UINT64_MAX            /* the sandbox's disk is the limit */

#define ACTION(name) (&(const struct call_kind){name})
#define SANDBOX "/api/v1/sandboxes/{id:sb}"
#define EXEC "/api/v1/execs/{eid:ex}"

static const struct route table[] = {
    {METHOD_GET, "/healthz", ROUTE_NO_BODY, 0, meta_healthz, CALL_OPEN, 0, ACTION("healthz")},
    {METHOD_GET, "/openapi.yaml", ROUTE_NO_BODY, 0, meta_openapi, CALL_OPEN, 0, ACTION("openapi")},
    {METHOD_GET, "/health", ROUTE_NO_BODY, 0, meta_health, CALL_READ, 0, ACTION("health")},
    {METHOD_GET, "/metrics", ROUTE_NO_BODY, 0, meta_metrics, CALL_READ, 0, ACTION("metrics")},

    {METHOD_POST, "/api/v1/sandboxes", ROUTE_JSON, CONFIGURED, sandboxes_create, CALL_TOUCH, 0,
     ACTION("sandbox.create")},
    {METHOD_GET, "/api/v1/sandboxes", ROUTE_NO_BODY, 0, sandboxes_list, CALL_SEE, 0, ACTION("sandbox.list")},
    {METHOD_GET, SANDBOX, ROUTE_NO_BODY, 0, sandboxes_get, CALL_SEE, 0, ACTION("sandbox.get")},
    {METHOD_DELETE, SANDBOX, ROUTE_NO_BODY, 0, sandboxes_delete, CALL_TOUCH, 0, ACTION("sandbox.destroy")},
    {METHOD_POST, SANDBOX "/pause", ROUTE_JSON, SMALL, sandboxes_pause, CALL_TOUCH, 0, ACTION("sandbox.pause")},
    {METHOD_POST, SANDBOX "/resume", ROUTE_JSON, SMALL, sandboxes_resume, CALL_TOUCH, 0, ACTION("sandbox.resume")},
    {METHOD_GET, SANDBOX "/usage", ROUTE_NO_BODY, 0, sandboxes_usage, CALL_SEE, 0, ACTION("sandbox.usage")},
    {METHOD_GET, SANDBOX "/logs", ROUTE_NO_BODY, 0, logs_get, CALL_SEE, 0, ACTION("sandbox.logs")},

    {METHOD_GET, "/api/v1/tools", ROUTE_NO_BODY, 0, tools_list, CALL_SEE, 0, ACTION("tool.list")},
    {METHOD_POST, SANDBOX "/tools/execute", ROUTE_JSON, CONFIGURED, tools_execute, CALL_TOUCH, 0,
     ACTION("tool.execute")},

    {METHOD_GET, SANDBOX "/files/{path}", ROUTE_NO_BODY, 0, files_get, CALL_SEE, 0, ACTION("file.read")},
    {METHOD_PUT, SANDBOX "/files/{path}", ROUTE_STREAM, UNLIMITED, files_put, CALL_TOUCH, 0, ACTION("file.write")},
    {METHOD_DELETE, SANDBOX "/files/{path}", ROUTE_NO_BODY, 0, files_delete, CALL_TOUCH, 0, ACTION("file.remove")},

    {METHOD_POST, SANDBOX "/execs", ROUTE_JSON, CONFIGURED, execs_create, CALL_TOUCH, 0, ACTION("exec.create")},
    {METHOD_GET, SANDBOX "/execs", ROUTE_NO_BODY, 0, execs_list, CALL_SEE, 0, ACTION("exec.list")},
    {METHOD_GET, EXEC, ROUTE_NO_BODY, 0, execs_get, CALL_SEE, 0, ACTION("exec.get")},
    {METHOD_DELETE, EXEC, ROUTE_NO_BODY, 0, execs_delete, CALL_TOUCH, 0, ACTION("exec.kill")},
    {METHOD_GET, EXEC "/output", ROUTE_NO_BODY, 0, output_get, CALL_SEE, 0, ACTION("exec.output")},
    {METHOD_POST, EXEC "/stdin", ROUTE_STREAM, UNLIMITED, input_post, CALL_TOUCH, 0, ACTION("exec.stdin")},
    {METHOD_POST, EXEC "/signal", ROUTE_JSON, SMALL, execs_signal, CALL_TOUCH, 0, ACTION("exec.signal")},
    {METHOD_POST, EXEC "/resize", ROUTE_JSON, SMALL, execs_resize, CALL_TOUCH, 0, ACTION("exec.resize")},

    {METHOD_POST, "/api/v1/keys", ROUTE_JSON, SMALL, keys_create, CALL_ADMIN, 0, ACTION("key.create")},
    {METHOD_GET, "/api/v1/keys", ROUTE_NO_BODY, 0, keys_list, CALL_ADMIN, 0, ACTION("key.list")},
    {METHOD_DELETE, "/api/v1/keys/{kid:name}", ROUTE_NO_BODY, 0, keys_revoke, CALL_ADMIN, 0, ACTION("key.revoke")},

    {METHOD_GET, "/api/v1/events", ROUTE_NO_BODY, 0, events_get, CALL_SEE, 0, ACTION("events")},
};
static const size_t table_count = sizeof table / sizeof *table;

int routes_make(const struct config *config, struct route **ret_routes, struct router **ret_router, struct error *err)
{
    struct route *routes = malloc(sizeof table);

    if (routes == NULL)
        return error_set(err, ERROR_SYSTEM, ENOMEM, "making the routes");
    memcpy(routes, table, sizeof table);
    for (size_t i = 0; i < table_count; i++) {
        if (routes[i].body_cap == CONFIGURED)
            routes[i].body_cap = config->server.max_body_mb << 20;
    }
    int r = router_new((const struct route *const[]){routes}, &table_count, 1, ret_router, err);
    if (r < 0) {
        free(routes);
        return r;
    }
    *ret_routes = routes;
    return 0;
}
