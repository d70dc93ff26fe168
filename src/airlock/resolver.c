/*
 * Theory of operation. c-ares says which of its sockets it waits for; each has a uv_poll_t, and a timer calls c-ares
 * while something is under way. A question collects those who wait for it; when it is answered they are called and it
 * goes. c-ares may answer from within the call that asks (no server, no memory), so answers are told from a check
 * handle's next round.
 */
#include "airlock/resolver.h"

#include "airlock/resolv_conf.h"

#include <ares.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>

enum { TICK_MS = 250, TIMEOUT_MS = 2000, TRIES = 2, TTL_MOST = 300, TTL_LEAST = 5 };

struct resolver_wait {
    struct resolver_wait *next;
    resolver_done *done; /* NULL: forgotten */
    void *data;
};

struct question {
    struct question *next;
    struct resolver *resolver;
    struct resolver_wait *waits;
    struct resolution resolution;
    bool is_answered;
    char name[];
};

struct watch {
    uv_poll_t poll;
    struct watch *next;
    struct resolver *resolver;
    ares_socket_t socket;
};

struct resolver {
    ares_channel channel;
    uv_loop_t *loop;
    uv_timer_t tick;
    uv_timer_t tell;
    struct watch *watches;
    struct question *questions;
};

static void on_socket(uv_poll_t *poll, int status, int events)
{
    struct watch *watch = poll->data;
    bool readable = status < 0 || (events & UV_READABLE) != 0;
    bool writable = status < 0 || (events & UV_WRITABLE) != 0;

    ares_process_fd(watch->resolver->channel, readable ? watch->socket : ARES_SOCKET_BAD,
                    writable ? watch->socket : ARES_SOCKET_BAD);
}

static void free_watch(uv_handle_t *handle)
{
    free(handle->data);
}

static void forget_socket(struct resolver *resolver, ares_socket_t socket)
{
    for (struct watch **at = &resolver->watches; *at != NULL; at = &(*at)->next) {
        struct watch *watch = *at;
        if (watch->socket != socket)
            continue;
        *at = watch->next;
        (void)uv_poll_stop(&watch->poll);
        uv_close((uv_handle_t *)&watch->poll, free_watch);
        return;
    }
}

static struct watch *watch_socket(struct resolver *resolver, ares_socket_t socket)
{
    struct watch *watch = resolver->watches;

    while (watch != NULL && watch->socket != socket)
        watch = watch->next;
    if (watch != NULL)
        return watch;
    watch = calloc(1, sizeof *watch);
    if (watch == NULL || uv_poll_init(resolver->loop, &watch->poll, socket) < 0) {
        free(watch);
        return NULL;
    }
    watch->poll.data = watch;
    watch->resolver = resolver;
    watch->socket = socket;
    watch->next = resolver->watches;
    resolver->watches = watch;
    return watch;
}

static void on_state(void *data, ares_socket_t socket, int readable, int writable)
{
    struct resolver *resolver = data;

    if (readable == 0 && writable == 0) {
        forget_socket(resolver, socket);
        return;
    }
    struct watch *watch = watch_socket(resolver, socket);
    if (watch != NULL)
        (void)uv_poll_start(&watch->poll, (readable != 0 ? UV_READABLE : 0) | (writable != 0 ? UV_WRITABLE : 0),
                            on_socket);
}

static void on_tick(uv_timer_t *timer)
{
    struct resolver *resolver = timer->data;

    ares_process_fd(resolver->channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
    if (resolver->questions == NULL)
        (void)uv_timer_stop(timer);
}

static void on_tell(uv_timer_t *timer);

int resolver_new(uv_loop_t *loop, const char *configuration, struct resolver **ret_resolver, struct error *err)
{
    static char lookups[] = "b"; /* DNS, not this machine's hosts file */
    char servers[1024];
    struct resolver *resolver = calloc(1, sizeof *resolver);
    struct ares_options options = {.timeout = TIMEOUT_MS,
                                   .tries = TRIES,
                                   .lookups = lookups,
                                   .sock_state_cb = on_state,
                                   .sock_state_cb_data = resolver,
                                   .flags = ARES_FLAG_NOSEARCH | ARES_FLAG_NOALIASES};

    resolv_conf_servers(configuration, servers, sizeof servers);
    int status = resolver == NULL ? ARES_ENOMEM : ares_library_init(ARES_LIB_INIT_ALL);
    if (status == ARES_SUCCESS)
        status = ares_init_options(&resolver->channel, &options,
                                   ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_LOOKUPS | ARES_OPT_SOCK_STATE_CB |
                                       ARES_OPT_FLAGS);
    if (status == ARES_SUCCESS && servers[0] != '\0')
        status = ares_set_servers_ports_csv(resolver->channel, servers);
    if (status != ARES_SUCCESS) {
        free(resolver);
        return error_set(err, ERROR_SYSTEM, 0, "starting the resolver: %s", ares_strerror(status));
    }
    resolver->loop = loop;
    (void)uv_timer_init(loop, &resolver->tick);
    (void)uv_timer_init(loop, &resolver->tell);
    resolver->tick.data = resolver;
    resolver->tell.data = resolver;
    *ret_resolver = resolver;
    return 0;
}

static bool take_address(const struct ares_addrinfo_node *node, struct address *ret_address)
{
    struct sockaddr_storage from = {0};
    uint16_t port = 0;

    if (node->ai_addrlen > sizeof from)
        return false;
    memcpy(&from, node->ai_addr, node->ai_addrlen);
    /* A mapped address in an AAAA record is vetted as what it is. */
    if (from.ss_family == AF_INET6) {
        ret_address->family = 6;
        memcpy(ret_address->bytes, ((const uint8_t *)&from) + 8, 16);
        return true;
    }
    return address_from_socket(&from, ret_address, &port) == 0;
}

/* Some of each family, in turns, IPv6 first (RFC 8305, 4). */
static void take_addresses(const struct ares_addrinfo *info, struct resolution *resolution)
{
    struct address found[2][RESOLVER_ADDRESSES_MAX];
    size_t counts[2] = {0};

    resolution->ttl = TTL_MOST;
    for (const struct ares_addrinfo_node *node = info->nodes; node != NULL; node = node->ai_next) {
        struct address address = {0};
        if (!take_address(node, &address))
            continue;
        size_t family = address.family == 6 ? 0 : 1;
        if (counts[family] < RESOLVER_ADDRESSES_MAX)
            found[family][counts[family]++] = address;
        if (node->ai_ttl >= 0 && (uint32_t)node->ai_ttl < resolution->ttl)
            resolution->ttl = (uint32_t)node->ai_ttl;
    }
    if (resolution->ttl < TTL_LEAST)
        resolution->ttl = TTL_LEAST;
    for (size_t i = 0; i < RESOLVER_ADDRESSES_MAX; i++) {
        for (size_t family = 0; family < 2; family++) {
            if (i < counts[family] && resolution->count < RESOLVER_ADDRESSES_MAX)
                resolution->addresses[resolution->count++] = found[family][i];
        }
    }
}

static int error_of(int status)
{
    switch (status) {
    case ARES_ENOTFOUND:
    case ARES_ENODATA:
        return -ENOENT;
    case ARES_ETIMEOUT:
        return -ETIMEDOUT;
    case ARES_ENOMEM:
        return -ENOMEM;
    case ARES_ECONNREFUSED:
        return -ECONNREFUSED;
    default:
        return -EIO;
    }
}

static void on_answer(void *data, int status, int timeouts, struct ares_addrinfo *info)
{
    struct question *question = data;

    (void)timeouts;
    if (status == ARES_SUCCESS && info != NULL)
        take_addresses(info, &question->resolution);
    question->resolution.error = status != ARES_SUCCESS            ? error_of(status)
                                 : question->resolution.count == 0 ? -ENOENT
                                                                   : 0;
    ares_freeaddrinfo(info);
    question->is_answered = true;
    (void)uv_timer_start(&question->resolver->tell, on_tell, 0, 0);
}

static void on_tell(uv_timer_t *timer)
{
    struct resolver *resolver = timer->data;

    for (struct question **at = &resolver->questions; *at != NULL;) {
        struct question *question = *at;
        if (!question->is_answered) {
            at = &question->next;
            continue;
        }
        /* Out of the list first: who is called may ask for the same name again. */
        *at = question->next;
        for (struct resolver_wait *wait = question->waits; wait != NULL; wait = question->waits) {
            question->waits = wait->next;
            if (wait->done != NULL)
                wait->done(wait->data, &question->resolution);
            free(wait);
        }
        free(question);
        at = &resolver->questions;
    }
}

static struct question *find_question(struct resolver *resolver, const char *name)
{
    struct question *question = resolver->questions;

    while (question != NULL && (question->is_answered || strcmp(question->name, name) != 0))
        question = question->next;
    return question;
}

static struct question *ask(struct resolver *resolver, const char *name)
{
    static const struct ares_addrinfo_hints hints = {.ai_flags = ARES_AI_NOSORT, .ai_family = AF_UNSPEC};
    size_t length = strlen(name);
    struct question *question = calloc(1, sizeof *question + length + 1);

    if (question == NULL)
        return NULL;
    memcpy(question->name, name, length + 1);
    question->resolver = resolver;
    question->next = resolver->questions;
    resolver->questions = question;
    (void)uv_timer_start(&resolver->tick, on_tick, TICK_MS, TICK_MS);
    ares_getaddrinfo(resolver->channel, name, NULL, &hints, on_answer, question);
    return question;
}

struct resolver_wait *resolver_ask(struct resolver *resolver, const char *name, resolver_done *done, void *data)
{
    struct resolver_wait *wait = calloc(1, sizeof *wait);
    struct question *question = wait != NULL ? find_question(resolver, name) : NULL;

    if (wait != NULL && question == NULL)
        question = ask(resolver, name);
    if (question == NULL) {
        free(wait);
        return NULL;
    }
    *wait = (struct resolver_wait){.next = question->waits, .done = done, .data = data};
    question->waits = wait;
    return wait;
}

void resolver_forget(struct resolver_wait *wait)
{
    if (wait != NULL)
        wait->done = NULL;
}
