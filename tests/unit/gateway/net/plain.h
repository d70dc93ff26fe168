/*
 * plain: a server without TLS that a test starts, asks and ends. Included by the tests of server and connection.
 */
#pragma once

#include "serve.h"

#define HOST "Host: h\r\n"
#define CLOSE HOST "Connection: close\r\n"

static char text[SERVE_TEXT];

static struct serve *start(struct server_limits limits)
{
    struct serve *serve = calloc(1, sizeof *serve);

    assert_non_null(serve);
    serve->limits = limits;
    serve->stop_within_ms = 5000;
    serve_start(serve);
    return serve;
}

static struct serve *start_default(void)
{
    return start((struct server_limits){.tick_ms = 20});
}

static void end(struct serve *serve)
{
    serve_end(serve);
    free(serve);
}
