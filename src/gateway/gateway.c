/*
 * The parts put together. Start: store, credentials, engine, what an earlier gateway left, surface, servers; READY when
 * all of them stand. Each listener has a server of its own, so that a reload can let go of one.
 *
 * End: DRAIN stops the servers, which lets running requests end in the time there is; then the engine ends all
 * sandboxes, DRAINED is said, and when the keeper closes the conversation everything is closed in the opposite order.
 * A conversation that is lost without that closes the same way, and leaves the sandboxes to the next gateway.
 */
#include "gateway/gateway.h"

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/log.h"
#include "gateway/adopt.h"
#include "gateway/engine/engine.h"
#include "gateway/first.h"
#include "gateway/ledger.h"
#include "gateway/net/server.h"
#include "gateway/net/tls.h"
#include "gateway/store/credentials.h"
#include "gateway/store/store.h"
#include "gateway/surface/surface.h"

#include <fcntl.h>
#include <signal.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    RESULT_KEEP_MS = 3600 * 1000,
    RESULT_BYTES_MAX = 256 << 20,
    QUEUE_BYTES_MIN = 16 << 20,
    PRUNE_MS = 3600 * 1000,
    DAY_MS = 86400 * 1000,
    UNABLE_MS = 2000,
    BODIES_AT_ONCE = 4,  /* of the largest size, from all clients of a listener */
    LAST_GRACE_MS = 500, /* for answers that are on their way when the keeper has gone */
};

struct gateway {
    struct handover *handover;
    struct log log;
    uv_loop_t loop;
    struct meter meter;
    struct store *store;
    struct credentials *credentials;
    struct ledger *ledger;
    struct engine *engine;
    struct surface *surface;
    struct tls_context *tls;
    struct listener {
        struct gateway *gateway;
        struct server *server; /* NULL: free */
        char name[HANDOVER_NAME_SIZE];
        bool is_stopping;
    } listeners[2 * HANDOVER_LISTENERS_MAX];
    uv_timer_t prune;
    bool is_draining;
    bool is_drained;
    bool is_lost;
    bool is_unable; /* to start: it waits for the keeper to hear that */
    bool is_closing;
};

static void log_error(const struct gateway *gateway, const char *event, const char *message)
{
    log_event(&gateway->log, LOG_LEVEL_ERROR, event, LOG_TEXT("reason", message));
}

static size_t servers_running(const struct gateway *gateway)
{
    size_t count = 0;

    for (size_t i = 0; i < sizeof gateway->listeners / sizeof *gateway->listeners; i++)
        count += gateway->listeners[i].server != NULL;
    return count;
}

static void servers_are_stopped(struct gateway *gateway);

static void server_stopped(struct server *server, void *user)
{
    struct listener *listener = user;
    struct gateway *gateway = listener->gateway;

    surface_remove_server(gateway->surface, server);
    server_free(server);
    *listener = (struct listener){0};
    if (servers_running(gateway) == 0)
        servers_are_stopped(gateway);
}

static void stop_listener(struct listener *listener, uint64_t grace_ms)
{
    listener->is_stopping = true;
    server_stop(listener->server, grace_ms, server_stopped, listener);
}

static void stop_servers(struct gateway *gateway, uint64_t grace_ms)
{
    surface_end_streams(gateway->surface);
    for (size_t i = 0; i < sizeof gateway->listeners / sizeof *gateway->listeners; i++) {
        if (gateway->listeners[i].server != NULL)
            stop_listener(&gateway->listeners[i], grace_ms);
    }
    if (servers_running(gateway) == 0)
        servers_are_stopped(gateway);
}

static struct server_limits limits_from(const struct config_server *config)
{
    struct server_limits limits = server_limits_default();

    limits.connections_max = config->max_connections;
    limits.headers_bytes = config->max_header_bytes;
    limits.headers_ms = config->header_timeout_seconds * 1000;
    limits.body_silence_ms = config->body_timeout_seconds * 1000;
    limits.write_stall_ms = config->send_timeout_seconds * 1000;
    limits.bodies_bytes = BODIES_AT_ONCE * (size_t)config->max_body_mb << 20;
    limits.idle_ms = config->idle_timeout_seconds * 1000;
    return limits;
}

static int start_listener(struct gateway *gateway, const struct handover_listener *from, struct error *err)
{
    struct listener *listener = gateway->listeners;
    struct server_options options = {.loop = &gateway->loop,
                                     .router = surface_router(gateway->surface),
                                     .limits = limits_from(&gateway->handover->config->server),
                                     .context = gateway->surface,
                                     .before = surface_before,
                                     .refuse = surface_refuse,
                                     .bad = surface_bad,
                                     .done = surface_done};

    while (listener->server != NULL)
        listener++;
    int fd = fcntl(from->fd, F_DUPFD_CLOEXEC, 0);
    if (fd < 0)
        return error_errno(err, "serving %s", from->name);
    int r = server_new(&options, &listener->server, err);
    if (r < 0) {
        (void)close(fd);
        return r;
    }
    listener->gateway = gateway;
    (void)memcpy(listener->name, from->name, sizeof listener->name);
    r = server_listen(listener->server, fd, from->is_unix ? NULL : gateway->tls, err);
    if (r < 0) {
        server_free(listener->server);
        *listener = (struct listener){0};
        return r;
    }
    surface_add_server(gateway->surface, listener->server);
    log_event(&gateway->log, LOG_LEVEL_INFO, "listening", LOG_TEXT("address", listener->name),
              LOG_TEXT("tls", !from->is_unix && gateway->tls != NULL ? "yes" : "no"));
    return 0;
}

static bool is_served(const struct gateway *gateway, const char *name)
{
    for (size_t i = 0; i < sizeof gateway->listeners / sizeof *gateway->listeners; i++) {
        const struct listener *listener = &gateway->listeners[i];
        if (listener->server != NULL && !listener->is_stopping && strcmp(listener->name, name) == 0)
            return true;
    }
    return false;
}

static bool is_wanted(const struct handover *handover, const char *name)
{
    for (size_t i = 0; i < handover->listener_count; i++) {
        if (strcmp(handover->listeners[i].name, name) == 0)
            return true;
    }
    return false;
}

/* Those that the handover names, and no others. */
static int match_listeners(struct gateway *gateway, struct error *err)
{
    const struct handover *handover = gateway->handover;
    int r = 0;

    for (size_t i = 0; i < sizeof gateway->listeners / sizeof *gateway->listeners; i++) {
        struct listener *listener = &gateway->listeners[i];
        if (listener->server != NULL && !listener->is_stopping && !is_wanted(handover, listener->name))
            stop_listener(listener, handover->config->server.drain_seconds * 1000);
    }
    for (size_t i = 0; r == 0 && i < handover->listener_count; i++) {
        if (!is_served(gateway, handover->listeners[i].name))
            r = start_listener(gateway, &handover->listeners[i], err);
    }
    return r;
}

static int load_tls(struct gateway *gateway, struct error *err)
{
    struct tls_context *fresh = NULL;
    struct tls_context *old = gateway->tls;

    if (gateway->handover->certificate_fd < 0)
        return 0;
    /* Whoever checked them before has read them to their end, and so has the gateway before this one. */
    if (lseek(gateway->handover->certificate_fd, 0, SEEK_SET) < 0 || lseek(gateway->handover->key_fd, 0, SEEK_SET) < 0)
        return error_errno(err, "reading the TLS certificate and its key");
    int r = tls_context_new_fds(gateway->handover->certificate_fd, gateway->handover->key_fd, &fresh, err);
    if (r < 0)
        return r;
    for (size_t i = 0; old != NULL && i < sizeof gateway->listeners / sizeof *gateway->listeners; i++) {
        if (gateway->listeners[i].server != NULL)
            server_replace_tls(gateway->listeners[i].server, old, fresh);
    }
    gateway->tls = fresh;
    tls_context_free(old);
    return 0;
}

static void say(struct gateway *gateway, const struct wire_message *message)
{
    int r = engine_tell_keeper(gateway->engine, message);

    if (r < 0)
        log_error(gateway, "telling_keeper", strerror(-r));
}

static int reload(struct gateway *gateway, const struct wire_settings *settings, int *fds, size_t fd_count,
                  struct error *err)
{
    struct config *replaced = NULL;
    int gone[HANDOVER_LISTENERS_MAX];
    size_t gone_count = 0;

    int r = handover_update(gateway->handover, settings, fds, fd_count, gone, &gone_count, &replaced, err);
    if (r < 0)
        return r;
    fd_close_many(gone, gone_count); /* the servers have descriptors of their own */
    r = surface_reconfigure(gateway->surface, gateway->handover->config, err);
    if (r == 0) {
        config_free(replaced);
        engine_set_limits(gateway->engine, (uint32_t)gateway->handover->config->sandbox.max_concurrent,
                          (uint32_t)gateway->handover->config->sandbox.max_execs);
        gateway->log.level = (enum log_level)gateway->handover->config->logging_level;
        gateway->log.format = (enum log_format)gateway->handover->config->logging_format;
        r = load_tls(gateway, err);
    }
    if (r == 0)
        r = match_listeners(gateway, err);
    return r == 0 ? surface_fill_pool(gateway->surface, err) : r;
}

static void heard_settings(struct gateway *gateway, const struct wire_settings *settings, int *fds, size_t fd_count)
{
    struct wire_message answer = {.type = WIRE_RELOADED, .reloaded = {.generation = settings->generation}};
    struct error err = {0};

    if (reload(gateway, settings, fds, fd_count, &err) < 0) {
        log_error(gateway, "reload_failed", err.message);
        answer.reloaded.detail = (struct wire_str){err.message, (uint32_t)strlen(err.message)};
    } else {
        answer.reloaded.detail = (struct wire_str){"", 0};
        log_event(&gateway->log, LOG_LEVEL_INFO, "reloaded", LOG_NUMBER("generation", settings->generation));
    }
    say(gateway, &answer);
}

static void heard(void *data, const struct wire_message *message, int *fds, size_t fd_count)
{
    struct gateway *gateway = data;

    switch ((int)message->type) { /* whatever else it says is about sandboxes */
    case WIRE_SETTINGS:
        heard_settings(gateway, &message->settings, fds, fd_count);
        break;
    case WIRE_PING:
        say(gateway, &(struct wire_message){.type = WIRE_PONG, .pong = {.number = message->ping.number}});
        break;
    case WIRE_DRAIN:
        log_event(&gateway->log, LOG_LEVEL_INFO, "draining", LOG_NUMBER("grace_ms", message->drain.grace_ms));
        gateway->is_draining = true;
        stop_servers(gateway, message->drain.grace_ms);
        break;
    default:
        fd_close_many(fds, fd_count);
    }
}

static void store_closed(void *data)
{
    struct gateway *gateway = data;

    uv_stop(&gateway->loop);
}

static void engine_closed(void *data)
{
    struct gateway *gateway = data;

    gateway->engine = NULL;
    credentials_free(gateway->credentials);
    gateway->credentials = NULL;
    store_close(gateway->store, store_closed, gateway);
    gateway->store = NULL;
}

static void drained(void *data)
{
    struct gateway *gateway = data;
    struct wire_message message = {.type = WIRE_DRAINED, .drained = {.left = 0}};

    gateway->is_drained = true;
    say(gateway, &message);
}

static void servers_are_stopped(struct gateway *gateway)
{
    surface_tell_strangers(gateway->surface);
    if (gateway->is_lost && !gateway->is_closing) {
        gateway->is_closing = true;
        engine_close(gateway->engine, engine_closed, gateway);
    } else if (gateway->is_draining && !gateway->is_drained) {
        engine_drain(gateway->engine, drained, gateway);
    }
}

static void lost(void *data)
{
    struct gateway *gateway = data;

    if (gateway->is_lost)
        return;
    gateway->is_lost = true;
    if (gateway->is_unable)
        return;
    log_event(&gateway->log, LOG_LEVEL_INFO, "ending", LOG_TEXT("reason", "the keeper closed the conversation"));
    stop_servers(gateway, LAST_GRACE_MS);
}

static void prune(uv_timer_t *timer)
{
    struct gateway *gateway = timer->data;
    struct timespec now;
    uint64_t days = gateway->handover->config->audit_retention_days;

    if (days == 0 || gateway->store == NULL)
        return;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    int64_t before = (int64_t)now.tv_sec * 1000 - (int64_t)days * DAY_MS;
    struct store_retention retention = {.audit_before_ms = before, .ended_before_ms = before};
    if (store_prune(gateway->store, &retention, NULL, NULL) == NULL)
        log_error(gateway, "pruning", strerror(ENOMEM));
}

/* audit.database_path, below the folder that we are in. The folders above it are made. */
static int split_path(char *path, const char **ret_folder, const char **ret_name, struct error *err)
{
    char *last = strrchr(path, '/');

    *ret_folder = last != NULL ? path : ".";
    *ret_name = last != NULL ? last + 1 : path;
    for (char *slash = path; last != NULL && (slash = strchr(slash, '/')) != NULL; *slash++ = '/') {
        *slash = '\0';
        if (mkdir(path, 0700) < 0 && errno != EEXIST)
            return error_errno(err, "making the folder %s for the database", path);
        if (slash == last)
            return 0;
    }
    return 0;
}

static void tell_lost_spools(const struct gateway *gateway)
{
    struct store_stats stats;

    store_get_stats(gateway->store, &stats);
    if (stats.spools_lost > 0)
        log_event(&gateway->log, LOG_LEVEL_WARN, "spools_lost", LOG_NUMBER("count", stats.spools_lost),
                  LOG_TEXT("reason", "no space to record them, or not to be read: output of so many execs has a gap"));
}

/* An eighth of what gateway.memory_mb permits: its parts are counted in these. */
static uint64_t memory_part(const struct gateway *gateway)
{
    return (gateway->handover->config->gateway.memory_mb << 20) / 8;
}

static size_t queue_bytes(const struct gateway *gateway)
{
    uint64_t part = memory_part(gateway);

    return part < QUEUE_BYTES_MIN ? QUEUE_BYTES_MIN : part < STORE_QUEUE_BYTES ? (size_t)part : STORE_QUEUE_BYTES;
}

static int open_store(struct gateway *gateway, struct error *err)
{
    const struct config *config = gateway->handover->config;
    _cleanup_free_ char *path = strdup(config->audit_database_path);
    struct store_options options = {.sync = config->audit_sync == CONFIG_SYNC_ALWAYS ? STORE_SYNC_ALWAYS
                                                                                     : STORE_SYNC_INTERVAL,
                                    .boot = gateway->handover->boot,
                                    .queue_bytes = queue_bytes(gateway)};

    if (path == NULL)
        return error_set(err, ERROR_SYSTEM, ENOMEM, "opening the store");
    int r = split_path(path, &options.folder, &options.name, err);
    if (r == 0)
        r = store_open(&options, &gateway->loop, &gateway->store, err);
    if (r == 0)
        tell_lost_spools(gateway);
    if (r == 0)
        r = credentials_new(gateway->store, &gateway->credentials, err);
    if (r == 0)
        r = first_credentials(gateway->handover, gateway->store, gateway->credentials, &gateway->loop, err);
    return r;
}

static int start_engine(struct gateway *gateway, struct error *err)
{
    const struct config *config = gateway->handover->config;
    uint64_t part = memory_part(gateway);
    struct engine_options options = {.loop = &gateway->loop,
                                     .sandboxes_max = (uint32_t)config->sandbox.max_concurrent,
                                     .execs_max = (uint32_t)config->sandbox.max_execs,
                                     .result_keep_ms = RESULT_KEEP_MS,
                                     .ring_bytes_max = 3 * part,
                                     .result_bytes_max = part < RESULT_BYTES_MAX ? part : RESULT_BYTES_MAX,
                                     .lost = lost,
                                     .heard = heard,
                                     .data = gateway};

    int r = first_count_start(gateway->store, &gateway->loop, &options.start, err);
    if (r == 0)
        r = ledger_new(gateway->store, &gateway->loop, &gateway->handover->seal, &gateway->ledger, err);
    if (r < 0)
        return r;
    options.recorder = ledger_recorder(gateway->ledger);
    options.keeper_fd = TAKE_FD(gateway->handover->keeper_fd);
    r = engine_new(&options, &gateway->engine, err);
    if (r == 0)
        ledger_set_engine(gateway->ledger, gateway->engine);
    return r;
}

static int adopt(struct gateway *gateway, struct error *err)
{
    struct adoption adoption = {.loop = &gateway->loop,
                                .store = gateway->store,
                                .engine = gateway->engine,
                                .ledger = gateway->ledger,
                                .handover = gateway->handover};

    int r = adopt_all(&adoption, err);
    if (r == 0)
        log_event(&gateway->log, LOG_LEVEL_INFO, "adopted", LOG_NUMBER("sandboxes", adoption.sandboxes),
                  LOG_NUMBER("execs", adoption.execs), LOG_NUMBER("lost", adoption.lost));
    return r;
}

static int start_surface(struct gateway *gateway, struct error *err)
{
    const struct surface_options options = {.loop = &gateway->loop,
                                            .engine = gateway->engine,
                                            .store = gateway->store,
                                            .credentials = gateway->credentials,
                                            .config = gateway->handover->config,
                                            .meter = &gateway->meter,
                                            .log = &gateway->log};

    int r = surface_new(&options, &gateway->surface, err);
    if (r == 0)
        r = surface_fill_pool(gateway->surface, err);
    if (r == 0)
        r = load_tls(gateway, err);
    if (r == 0)
        r = match_listeners(gateway, err);
    return r;
}

static int start(struct gateway *gateway, struct error *err)
{
    int r = open_store(gateway, err);

    if (r == 0)
        r = start_engine(gateway, err);
    if (r == 0)
        r = adopt(gateway, err);
    if (r < 0)
        return r;
    engine_go(gateway->engine);
    r = start_surface(gateway, err);
    if (r < 0)
        return r;
    gateway->prune.data = gateway;
    (void)uv_timer_init(&gateway->loop, &gateway->prune);
    (void)uv_timer_start(&gateway->prune, prune, PRUNE_MS, PRUNE_MS);
    say(gateway, &(struct wire_message){.type = WIRE_READY, .ready = {.generation = gateway->handover->generation}});
    return 0;
}

static void give_up(uv_timer_t *timer)
{
    struct gateway *gateway = timer->data;

    gateway->is_lost = true;
}

/* Before READY the daemon ends with these words: starting again would not help. */
static void say_unable(struct gateway *gateway, const struct error *err)
{
    struct wire_message message = {.type = WIRE_UNABLE,
                                   .unable = {.detail = {err->message, (uint32_t)strlen(err->message)}}};

    log_error(gateway, "unable", err->message);
    if (gateway->engine != NULL) {
        say(gateway, &message);
        gateway->is_unable = true;
        (void)uv_timer_init(&gateway->loop, &gateway->prune);
        (void)uv_timer_start(&gateway->prune, give_up, UNABLE_MS, 0);
        gateway->prune.data = gateway;
        while (!gateway->is_lost)
            (void)uv_run(&gateway->loop, UV_RUN_ONCE);
    } else if (gateway->handover->keeper_fd >= 0) {
        ignore_result(handover_say_unable(gateway->handover, err->message)); /* it ends all the same */
    }
}

static int serve(struct gateway *gateway)
{
    const struct config *config = gateway->handover->config;
    struct error err = {0};

    gateway->log = (struct log){.fd = STDERR_FILENO,
                                .level = (enum log_level)config->logging_level,
                                .format = (enum log_format)config->logging_format,
                                .program = "hutch-gateway"};
    int r = uv_loop_init(&gateway->loop) < 0 || sodium_init() < 0
                ? error_set(&err, ERROR_SYSTEM, ENOMEM, "making the event loop")
                : meter_start(&gateway->meter, &gateway->loop, &err);
    if (r == 0)
        r = start(gateway, &err);
    if (r < 0) {
        say_unable(gateway, &err);
        return 1;
    }
    log_event(&gateway->log, LOG_LEVEL_INFO, "started", LOG_NUMBER("listeners", gateway->handover->listener_count));
    (void)uv_run(&gateway->loop, UV_RUN_DEFAULT);
    surface_free(gateway->surface);
    ledger_free(gateway->ledger);
    tls_context_free(gateway->tls);
    return 0;
}

/* What handles the loop still has are its own: nothing runs any more, and the process ends. */
int gateway_run(struct handover *handover)
{
    struct gateway *gateway = calloc(1, sizeof *gateway);

    if (gateway == NULL)
        return 1;
    gateway->handover = handover;
    int status = serve(gateway);
    free(gateway);
    return status;
}
