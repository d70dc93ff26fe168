#include "airlock/internal.h"
#include "airlock/own.h"
#include "base/cleanup.h"
#include "base/fd.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>

enum { ACCEPTS_AT_ONCE = 32, AGAIN_MS = 50, MILLI = 1000 };

static void watch(struct sandbox *sandbox);

uint64_t sandbox_now_ns(const struct sandbox *sandbox)
{
    return uv_now(&sandbox->airlock->loop) * 1000000U;
}

int sandbox_buffer_bytes(const struct sandbox *sandbox)
{
    return sandbox->connection_count <= SANDBOX_BUFFERS_LARGE ? SANDBOX_BUFFER_BYTES : SANDBOX_BUFFER_SMALL_BYTES;
}

int sandbox_new(struct airlock *airlock, uint64_t id, struct sandbox **ret_sandbox, struct error *err)
{
    struct sandbox *sandbox = calloc(1, sizeof *sandbox);

    if (sandbox == NULL)
        return error_set(err, ERROR_SYSTEM, ENOMEM, "taking a sandbox");
    uint32_t start = 0;
    ignore_result(getrandom(&start, sizeof start, GRND_NONBLOCK));
    int r = names_new(SANDBOX_NAMES_MAX, start, &sandbox->names, err);
    if (r < 0) {
        free(sandbox);
        return r;
    }
    sandbox->airlock = airlock;
    sandbox->id = id;
    sandbox->tcp_fd = -1;
    sandbox->udp_fd = -1;
    sandbox->link_fd = -1;
    sandbox->connections_max = SANDBOX_CONNECTIONS_MAX;
    sandbox->connects_per_second = SANDBOX_CONNECTS_PER_SECOND;
    (void)uv_timer_init(&airlock->loop, &sandbox->again);
    sandbox->again.data = sandbox;
    sandbox->references = 1;
    sandbox->next = airlock->sandboxes;
    airlock->sandboxes = sandbox;
    *ret_sandbox = sandbox;
    return 0;
}

struct sandbox *sandbox_find(struct airlock *airlock, uint64_t id)
{
    struct sandbox *sandbox = airlock->sandboxes;

    while (sandbox != NULL && sandbox->id != id)
        sandbox = sandbox->next;
    return sandbox;
}

void sandbox_drop(struct sandbox *sandbox)
{
    if (--sandbox->references > 0)
        return;
    rules_free(sandbox->rules);
    names_free(sandbox->names);
    free(sandbox);
}

static void on_closed(uv_handle_t *handle)
{
    sandbox_drop(handle->data);
}

void sandbox_remove(struct sandbox *sandbox)
{
    struct sandbox **at = &sandbox->airlock->sandboxes;

    while (*at != sandbox)
        at = &(*at)->next;
    *at = sandbox->next;
    sandbox->is_removed = true;
    /* Still needed: a connection that ends tells so. */
    sandbox->references++;
    connections_end(sandbox);
    decision_tell_lost(sandbox);
    if (sandbox->is_plugged) {
        uv_close((uv_handle_t *)&sandbox->tcp, on_closed);
        uv_close((uv_handle_t *)&sandbox->udp, on_closed);
        close_fd(&sandbox->link_fd);
        close_fd(&sandbox->tcp_fd);
        close_fd(&sandbox->udp_fd);
    }
    uv_close((uv_handle_t *)&sandbox->again, on_closed);
    sandbox_drop(sandbox);
}

int sandbox_plug(struct sandbox *sandbox, const int fds[3], struct error *err)
{
    int copy[] = {fds[0], fds[1], fds[2]};

    if (sandbox->is_plugged) {
        fd_close_many(copy, 3);
        return error_set(err, ERROR_PROTOCOL, EEXIST, "plugging in a sandbox twice");
    }
    if (uv_poll_init(&sandbox->airlock->loop, &sandbox->tcp, fds[0]) < 0) {
        fd_close_many(copy, 3);
        return error_set(err, ERROR_SYSTEM, EINVAL, "watching a sandbox's listener");
    }
    sandbox->tcp.data = sandbox;
    sandbox->references++;
    if (uv_poll_init(&sandbox->airlock->loop, &sandbox->udp, fds[1]) < 0) {
        uv_close((uv_handle_t *)&sandbox->tcp, on_closed);
        fd_close_many(copy, 3);
        return error_set(err, ERROR_SYSTEM, EINVAL, "watching a sandbox's resolver");
    }
    sandbox->udp.data = sandbox;
    sandbox->references++;
    sandbox->tcp_fd = fds[0];
    sandbox->udp_fd = fds[1];
    sandbox->link_fd = fds[2];
    /* What is accepted inherits it: set later it would not move the window. */
    (void)setsockopt(sandbox->tcp_fd, SOL_SOCKET, SO_RCVBUF, &(int){SANDBOX_BUFFER_BYTES}, sizeof(int));
    sandbox->is_plugged = true;
    watch(sandbox);
    return 0;
}

void sandbox_set_rules(struct sandbox *sandbox, struct rules *rules)
{
    struct rules *old = sandbox->rules;

    sandbox->rules = rules;
    if (old != NULL)
        connections_check(sandbox);
    rules_free(old);
    watch(sandbox);
}

bool bucket_take(struct bucket *bucket, uint64_t now_ms, uint32_t per_second, uint32_t most)
{
    bucket->milli += (now_ms - bucket->counted_ms) * per_second;
    bucket->counted_ms = now_ms;
    if (bucket->milli > (uint64_t)most * MILLI)
        bucket->milli = (uint64_t)most * MILLI;
    if (bucket->milli < MILLI)
        return false;
    bucket->milli -= MILLI;
    return true;
}

static bool take_token(struct sandbox *sandbox)
{
    return bucket_take(&sandbox->connects, uv_now(&sandbox->airlock->loop), sandbox->connects_per_second,
                       sandbox->connects_per_second);
}

static void on_again(uv_timer_t *timer)
{
    watch(timer->data);
}

/* Others wait in the listener's queue, which is as long as it is. */
static void pause_accepting(struct sandbox *sandbox)
{
    (void)uv_poll_stop(&sandbox->tcp);
    (void)uv_timer_start(&sandbox->again, on_again, AGAIN_MS, 0);
}

static void refuse_for_limit(struct sandbox *sandbox, int fd)
{
    struct decision decision = {.kind = WIRE_DECISION_CONNECT,
                                .verdict = WIRE_VERDICT_DENIED,
                                .name = "",
                                .rule = "",
                                .why = "this sandbox has as many connections as it may have"};
    struct linger at_once = {.l_onoff = 1};

    (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    (void)close(fd);
    decision_tell(sandbox, &decision);
}

static void on_tcp(uv_poll_t *poll, int status, int events)
{
    struct sandbox *sandbox = poll->data;

    (void)events;
    for (int i = 0; i < ACCEPTS_AT_ONCE && !sandbox->is_removed; i++) {
        if (status < 0 || !take_token(sandbox)) {
            pause_accepting(sandbox);
            return;
        }
        int fd = accept4(sandbox->tcp_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0) {
            sandbox->connects.milli += MILLI;
            if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)
                pause_accepting(sandbox);
            return;
        }
        if (sandbox->connection_count >= sandbox->connections_max)
            refuse_for_limit(sandbox, fd);
        else
            connection_start(sandbox, fd);
    }
}

static void on_udp(uv_poll_t *poll, int status, int events)
{
    struct sandbox *sandbox = poll->data;

    (void)events;
    if (status == 0)
        questions_read(sandbox);
}

static void watch(struct sandbox *sandbox)
{
    if (!sandbox->is_plugged || sandbox->is_removed || sandbox->rules == NULL)
        return;
    (void)uv_poll_start(&sandbox->tcp, UV_READABLE, on_tcp);
    (void)uv_poll_start(&sandbox->udp, UV_READABLE, on_udp);
}

struct rules_verdict sandbox_judge(const struct sandbox *sandbox, const struct goal *goal, char *why, size_t size)
{
    struct rules_verdict verdict = goal->is_address ? rules_check_address(sandbox->rules, &goal->address, goal->port)
                                                    : rules_check_name(sandbox->rules, goal->name, goal->port);

    if (goal->is_address && verdict.reason != RULES_LOCAL && own_has(&goal->address))
        verdict = (struct rules_verdict){.reason = RULES_MACHINE, .rule = ""};
    rules_explain(&verdict, goal->name, goal->port, why, size);
    return verdict;
}

/* Why nobody is led there, or NULL. */
static const char *vet(const struct sandbox *sandbox, uint16_t port, const struct address *address)
{
    struct rules_verdict verdict = rules_check_address(sandbox->rules, address, port);

    if (own_has(address))
        return "an address of this machine";
    if (!verdict.allowed && verdict.reason == RULES_MATCHED)
        return "an address that a rule denies";
    return verdict.allowed ? NULL : address_vet(address);
}

static const char *vet_all(const struct sandbox *sandbox, uint16_t port, const struct address *address)
{
    const char *what = vet(sandbox, port, address);
    struct address inner;

    return what == NULL && address_unwrap(address, &inner) ? vet(sandbox, port, &inner) : what;
}

size_t sandbox_vet(const struct sandbox *sandbox, uint16_t port, const struct address *found, size_t count,
                   struct address *ret_addresses, const char **ret_vetted)
{
    size_t kept = 0;

    for (size_t i = 0; i < count; i++) {
        const char *what = vet_all(sandbox, port, &found[i]);
        if (what == NULL)
            ret_addresses[kept++] = found[i];
        else
            *ret_vetted = what;
    }
    return kept;
}
