#include "gateway/surface/surface.h"

#include "base/clock.h"
#include "gateway/store/batch.h"
#include "gateway/surface/auth.h"
#include "gateway/surface/call.h"
#include "gateway/surface/errors.h"
#include "gateway/surface/routes.h"
#include "gateway/surface/state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ADDRESSES_MAX = 65536, AGENTS_MAX = 16384, MINUTE_MS = 60000, SECOND_MS = 1000, RETRY_SIZE = 16 };

static void policy_release(struct surface_policy *policy)
{
    blocklist_free(policy->standard);
    for (size_t i = 0; policy->profiles != NULL && i < policy->profile_count; i++)
        blocklist_free(policy->profiles[i].list);
    free(policy->profiles);
}

static int compile(const struct config_list *patterns, struct blocklist **ret_list, struct error *err)
{
    struct blocklist *list = NULL;

    int r = blocklist_new(&list, err);
    for (size_t i = 0; r == 0 && i < patterns->count; i++)
        r = blocklist_add(list, patterns->items[i], err);
    if (r < 0) {
        blocklist_free(list);
        return r;
    }
    *ret_list = list;
    return 0;
}

static int policy_init(struct surface_policy *policy, const struct config *config, struct error *err)
{
    struct surface_policy made = {0};

    int r = compile(&config->sandbox.command_blocklist, &made.standard, err);
    if (r < 0)
        return r;
    made.profiles = calloc(config->profile_count + 1, sizeof *made.profiles);
    if (made.profiles == NULL) {
        policy_release(&made);
        return error_set(err, ERROR_SYSTEM, ENOMEM, "reading the profiles");
    }
    made.profile_count = config->profile_count;
    for (size_t i = 0; r == 0 && i < config->profile_count; i++) {
        if (config->profiles[i].command_blocklist.given)
            r = compile(&config->profiles[i].command_blocklist, &made.profiles[i].list, err);
    }
    if (r < 0) {
        policy_release(&made);
        return r;
    }
    *policy = made;
    return 0;
}

const struct blocklist *surface_blocklist(const struct surface *surface, const char *profile)
{
    const struct config *config = surface->options.config;

    for (size_t i = 0; profile != NULL && i < config->profile_count; i++) {
        if (strcmp(config->profiles[i].name, profile) == 0 && surface->policy.profiles[i].list != NULL)
            return surface->policy.profiles[i].list;
    }
    return surface->policy.standard;
}

static int make_rates(struct surface *surface, const struct config *config, struct error *err)
{
    const struct rate_options by_address = {.tokens = (uint32_t)config->limits_per_ip_rate,
                                            .period_ms = SECOND_MS,
                                            .burst = (uint32_t)config->limits_per_ip_burst,
                                            .names_max = ADDRESSES_MAX};
    const struct rate_options by_agent = {
        .tokens = (uint32_t)config->limits_per_agent_per_minute, .period_ms = MINUTE_MS, .names_max = AGENTS_MAX};
    struct rate *addresses = NULL;
    struct rate *agents = NULL;

    int r = rate_new(&by_address, &addresses, err);
    if (r == 0)
        r = rate_new(&by_agent, &agents, err);
    if (r < 0) {
        rate_free(addresses);
        return r;
    }
    rate_free(surface->by_address);
    rate_free(surface->by_agent);
    surface->by_address = addresses;
    surface->by_agent = agents;
    return 0;
}

int surface_reconfigure(struct surface *surface, const struct config *config, struct error *err)
{
    struct surface_policy policy = {0};

    int r = policy_init(&policy, config, err);
    if (r < 0)
        return r;
    r = make_rates(surface, config, err);
    if (r < 0) {
        policy_release(&policy);
        return r;
    }
    policy_release(&surface->policy);
    surface->policy = policy;
    surface->options.config = config;
    return 0;
}

int surface_new(const struct surface_options *options, struct surface **ret_surface, struct error *err)
{
    struct surface *surface = calloc(1, sizeof *surface);

    if (surface == NULL)
        return error_set(err, ERROR_SYSTEM, ENOMEM, "making the surface");
    surface->options = *options;
    surface->start_ns = clock_now_ns();
    int r = surface_reconfigure(surface, options->config, err);
    if (r == 0)
        r = routes_make(options->config, &surface->routes, &surface->router, err);
    if (r < 0) {
        surface_free(surface);
        return r;
    }
    /* Last: a handle of the loop's can't just be freed again. */
    ignore_result(uv_timer_init(options->loop, &surface->interval)); /* never fails */
    uv_unref((uv_handle_t *)&surface->interval);
    surface->interval.data = surface;
    *ret_surface = surface;
    return 0;
}

void surface_free(struct surface *surface)
{
    if (surface == NULL)
        return;
    router_free(surface->router);
    free(surface->routes);
    rate_free(surface->by_address);
    rate_free(surface->by_agent);
    policy_release(&surface->policy);
    free(surface);
}

static void replace_server(struct surface *surface, const struct server *from, const struct server *to)
{
    for (size_t i = 0; i < SURFACE_SERVERS_MAX; i++) {
        if (surface->servers[i] == from) {
            surface->servers[i] = to;
            return;
        }
    }
}

void surface_add_server(struct surface *surface, const struct server *server)
{
    replace_server(surface, NULL, server);
}

void surface_remove_server(struct surface *surface, const struct server *server)
{
    replace_server(surface, server, NULL);
}

void surface_add_stream(struct surface *surface, struct surface_stream *stream)
{
    stream->next = surface->streams;
    stream->place = &surface->streams;
    if (stream->next != NULL)
        stream->next->place = &stream->next;
    surface->streams = stream;
}

void surface_remove_stream(struct surface_stream *stream)
{
    *stream->place = stream->next;
    if (stream->next != NULL)
        stream->next->place = stream->place;
}

void surface_end_streams(struct surface *surface)
{
    while (surface->streams != NULL)
        surface->streams->end(surface->streams);
}

const struct router *surface_router(const struct surface *surface)
{
    return surface->router;
}

static int64_t wall_ms(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * SECOND_MS + now.tv_nsec / 1000000;
}

static enum before refuse(struct request *request, unsigned status, const char *code, const char *message)
{
    surface_refuse(request, status, code, message);
    return BEFORE_ANSWERED;
}

static enum before limit(struct request *request, uint32_t retry_ms, const char *message)
{
    struct surface *surface = request->context;
    char seconds[RETRY_SIZE];

    surface->counts.limited++;
    (void)snprintf(seconds, sizeof seconds, "%u", retry_ms / SECOND_MS + 1);
    ignore_result(request_set_header(request, "Retry-After", seconds)); /* advice */
    (void)snprintf(call_of(request)->retry_seconds, sizeof call_of(request)->retry_seconds, "%s", seconds);
    return refuse(request, 429, "too_many", message);
}

/* Lets a page that is allowed read the answer, and a browser ask before. */
static void allow_page(struct request *request)
{
    const char *wanted = request_header(request, "access-control-request-headers");

    ignore_result(request_set_header(request, "Access-Control-Allow-Origin", request_header(request, "origin")));
    ignore_result(request_set_header(request, "Vary", "Origin"));
    if (request->method != METHOD_OPTIONS)
        return;
    ignore_result(request_set_header(request, "Access-Control-Allow-Methods", "GET, POST, PUT, DELETE"));
    if (wanted != NULL)
        ignore_result(request_set_header(request, "Access-Control-Allow-Headers", wanted));
}

/* Whoever it is: may a request like this come at all? */
static enum before check_sender(struct request *request)
{
    struct surface *surface = request->context;
    const struct config *config = surface->options.config;

    if (request->peer->kind != PEER_TCP)
        return BEFORE_GO_ON;
    struct rate_verdict verdict =
        rate_take(surface->by_address, request->peer->address, strlen(request->peer->address), clock_now_ns());
    if (!verdict.allowed)
        return limit(request, verdict.retry_ms, "too many requests from this address");
    if (!auth_host_is_ours(config, request->host)) {
        surface->counts.foreign++;
        return refuse(request, 421, "host_not_allowed", "this host is not served here; see server.hosts");
    }
    enum auth_origin origin = auth_origin(config, &request->headers, request->host);
    if (origin == AUTH_FOREIGN_PAGE) {
        surface->counts.foreign++;
        return refuse(request, 403, "origin_not_allowed",
                      "web pages of this origin may not call; see "
                      "server.cors_origins");
    }
    if (origin == AUTH_ALLOWED_PAGE)
        allow_page(request);
    return BEFORE_GO_ON;
}

static bool may(const struct principal *principal, enum call_access access)
{
    switch (access) {
    case CALL_OPEN:
    case CALL_SEE:
        return true;
    case CALL_TOUCH:
        return principal->scope != STORE_SCOPE_READ;
    case CALL_READ:
        return principal->scope != STORE_SCOPE_RUN;
    case CALL_ADMIN:
        return principal->scope == STORE_SCOPE_ADMIN;
    }
    return false;
}

/* X-Agent is a label unless the key is bound to one. */
static int take_agent(struct call *call)
{
    const char *label = request_header(call->request, "x-agent");

    if (label == NULL || *label == '\0')
        label = call->principal.agent;
    if (strlen(label) >= sizeof call->agent)
        return -EINVAL;
    for (const char *at = label; *at != '\0'; at++) {
        if ((unsigned char)*at < ' ' || (unsigned char)*at > '~')
            return -EINVAL;
    }
    if (*call->principal.agent != '\0' && strcmp(label, call->principal.agent) != 0)
        return -EACCES;
    (void)snprintf(call->agent, sizeof call->agent, "%s", label);
    return 0;
}

/* BEFORE_GO_ON, or it was answered, here and below. */
static enum before check_rate(struct call *call)
{
    struct surface *surface = call->surface;
    const char *name = *call->agent != '\0' ? call->agent : call->principal.id;
    struct rate_verdict verdict = rate_take(surface->by_agent, name, strlen(name), clock_now_ns());

    if (verdict.allowed)
        return BEFORE_GO_ON;
    surface->counts.limited++;
    call_refuse(call, 429, "too_many", "too many calls of this agent; try again in %u ms", verdict.retry_ms);
    return BEFORE_ANSWERED;
}

static enum before admit(struct call *call)
{
    struct surface *surface = call->surface;

    int r = take_agent(call);
    if (r == -EINVAL) {
        call_refuse(call, 400, "invalid_request", "X-Agent: must be at most %d printable characters",
                    CREDENTIALS_NAME_MAX);
        return BEFORE_ANSWERED;
    }
    if (r == -EACCES || !may(&call->principal, call->request->route->scope)) {
        surface->counts.forbidden++;
        call_refuse(call, 403, "forbidden",
                    r == -EACCES ? "this key belongs to another agent" : "this key's scope does not allow that");
        return BEFORE_ANSWERED;
    }
    return check_rate(call);
}

static void refuse_stranger(struct call *call)
{
    call->surface->counts.unauthenticated++;
    if (request_set_header(call->request, "WWW-Authenticate", "Bearer realm=\"hutch\", Basic realm=\"hutch\"") < 0)
        call_refuse_memory(call);
    else
        call_refuse(call, 401, "unauthenticated",
                    "send a key as Authorization: Bearer or X-API-Key, or the password by HTTP Basic as user admin");
}

static void password_checked(void *data, int result)
{
    struct call *call = data;

    if (result < 0) {
        refuse_stranger(call);
        return;
    }
    principal_be_admin(&call->principal);
    if (admit(call) == BEFORE_GO_ON)
        request_proceed(call->request);
}

static enum before check_password(struct call *call, const struct auth_claim *claim)
{
    int r = credentials_check_password(call->surface->options.credentials, claim->secret, claim->length, wall_ms(),
                                       password_checked, call);

    switch (r) {
    case 0:
        principal_be_admin(&call->principal);
        return admit(call);
    case -EINPROGRESS:
        return BEFORE_LATER;
    case -EBUSY:
        call_refuse(call, 503, "unavailable", "too many passwords are being checked; try again, or use a key");
        return BEFORE_ANSWERED;
    default:
        refuse_stranger(call);
        return BEFORE_ANSWERED;
    }
}

static bool is_trusted(const struct call *call)
{
    const struct peer *peer = call->request->peer;

    return (peer->kind == PEER_UNIX && peer->uid == 0) || call->surface->options.config->server.auth == CONFIG_AUTH_OFF;
}

static bool is_open(const struct call *call)
{
    enum call_access access = call->request->route->scope;

    return access == CALL_OPEN || (access == CALL_READ && call->surface->options.config->server.open_metrics != 0);
}

static enum before identify(struct call *call)
{
    struct credentials *credentials = call->surface->options.credentials;
    struct auth_claim claim;

    if (is_open(call))
        return BEFORE_GO_ON;
    if (is_trusted(call)) {
        principal_be_admin(&call->principal);
        return admit(call);
    }
    auth_read(&call->request->headers, &claim);
    if (claim.kind == AUTH_PASSWORD) {
        enum before before = check_password(call, &claim);
        auth_forget(&claim);
        return before;
    }
    int r = claim.kind != AUTH_KEY
                ? -EACCES
                : credentials_check_key(credentials, claim.secret, claim.length, wall_ms(), &call->principal);
    auth_forget(&claim);
    if (r == 0)
        return admit(call);
    refuse_stranger(call);
    return BEFORE_ANSWERED;
}

/* There is nothing at this path. Who asked is of use to the record alone, so no password is checked for it. */
static enum before recognise(struct call *call)
{
    struct auth_claim claim;

    if (is_trusted(call)) {
        principal_be_admin(&call->principal);
        return BEFORE_GO_ON;
    }
    auth_read(&call->request->headers, &claim);
    int r = claim.kind != AUTH_KEY ? -EACCES
                                   : credentials_check_key(call->surface->options.credentials, claim.secret,
                                                           claim.length, wall_ms(), &call->principal);
    auth_forget(&claim);
    if (r < 0)
        return BEFORE_GO_ON;
    ignore_result(take_agent(call)); /* a label that can't be one is left out */
    return check_rate(call);
}

enum before surface_before(struct request *request)
{
    struct call *call = call_make(request, request->context);

    if (call == NULL) {
        call_answer_error(request, 503, "unavailable", "there is not enough memory for this request");
        return BEFORE_ANSWERED;
    }
    enum before before = check_sender(request);
    if (before != BEFORE_GO_ON)
        return before;
    return request->route != NULL ? identify(call) : recognise(call);
}

void surface_refuse(struct request *request, unsigned status, const char *code, const char *message)
{
    struct call *call = call_of(request) != NULL ? call_of(request) : call_make(request, request->context);

    if (call != NULL)
        call_refuse(call, status, code, "%s", message);
    else
        call_answer_error(request, status, code, message);
}

void surface_done(const struct request *request, unsigned status, uint64_t bytes_sent, uint64_t duration_ns)
{
    struct surface *surface = request->context;
    const struct log *log = surface->options.log;
    size_t class = status / 100;

    surface->counts.answers[class < 6 ? class : 5]++;
    surface->counts.duration_ns += duration_ns;
    log_event(log, LOG_LEVEL_DEBUG, "request", LOG_TEXT("method", http_method_name(request->method)),
              LOG_TEXT("target", request->raw_target), LOG_NUMBER("status", status), LOG_NUMBER("bytes", bytes_sent),
              LOG_NUMBER("us", duration_ns / 1000), LOG_TEXT("request_id", request->id));
}
