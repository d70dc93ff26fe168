/*
 * Theory of operation. A question for a name that is not allowed is answered at once, and nobody else hears of it. One
 * for a name that is allowed is resolved, unless its real addresses are pinned still: so that a name that does not
 * exist does not seem to, and that the connection that follows goes where the answer was vetted.
 */
#include "airlock/internal.h"

#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum { DATAGRAMS_AT_ONCE = 64, CONTROL_MAX = 64 };

struct question_wait {
    struct sandbox *sandbox;
    struct dns_query query;
    enum dns_code code;
    uint32_t number;
    bool has_number;
    struct resolver_wait *resolution;
    uv_timer_t soon; /* for an answer that needs nobody */
    question_answered *answered;
    void *data;
};

/* Where an answer over UDP goes, from the address that was asked. */
struct datagram {
    struct sandbox *sandbox;
    struct sockaddr_storage peer;
    socklen_t peer_length;
    _Alignas(struct cmsghdr) uint8_t control[CONTROL_MAX];
    size_t control_length;
};

static void free_wait(uv_handle_t *handle)
{
    struct question_wait *wait = handle->data;
    struct sandbox *sandbox = wait->sandbox;

    sandbox->question_count--;
    free(wait);
    sandbox_drop(sandbox);
}

static void answer(struct question_wait *wait)
{
    uint8_t data[DNS_ANSWER_MAX];
    struct address address;
    struct dns_answer text = {.code = wait->code, .ttl = NAMES_TTL_SECONDS};
    bool has_address =
        wait->code == DNS_OK && wait->has_number && (wait->query.type == DNS_A || wait->query.type == DNS_AAAA);

    if (has_address) {
        names_address(wait->number, wait->query.type == DNS_A ? 4 : 6, &address);
        text.address = address.bytes;
    }
    size_t length = dns_build(&wait->query, &text, data);
    if (wait->answered != NULL)
        wait->answered(wait->data, data, length);
    uv_close((uv_handle_t *)&wait->soon, free_wait);
}

static void on_soon(uv_timer_t *timer)
{
    answer(timer->data);
}

static void tell_denied(struct question_wait *wait, enum wire_verdict verdict, const char *rule, const char *why)
{
    struct decision decision = {
        .kind = WIRE_DECISION_DNS, .verdict = verdict, .name = wait->query.name, .rule = rule, .why = why};

    decision_tell(wait->sandbox, &decision);
}

static void on_resolved(void *data, const struct resolution *resolution)
{
    struct question_wait *wait = data;
    struct sandbox *sandbox = wait->sandbox;
    struct address addresses[RESOLVER_ADDRESSES_MAX];
    const char *vetted = NULL;
    char why[400];

    wait->resolution = NULL;
    if (resolution->error < 0) {
        wait->code = resolution->error == -ENOENT ? DNS_NXDOMAIN : DNS_SERVFAIL;
        names_fail(sandbox->names, wait->number);
        (void)snprintf(why, sizeof why, "%s can't be resolved: %s", wait->query.name,
                       resolution->error == -ENOENT ? "there is no such name" : strerror(-resolution->error));
        tell_denied(wait, WIRE_VERDICT_FAILED, "", why);
        answer(wait);
        return;
    }
    size_t count = sandbox_vet(sandbox, 0, resolution->addresses, resolution->count, addresses, &vetted);
    if (count == 0) {
        wait->code = DNS_NXDOMAIN;
        (void)snprintf(why, sizeof why, "%s leads to %s", wait->query.name, vetted);
        tell_denied(wait, WIRE_VERDICT_DENIED, "", why);
    } else {
        names_pin(sandbox->names, wait->number, addresses, count,
                  sandbox_now_ns(sandbox) + (uint64_t)resolution->ttl * 1000000000U);
    }
    answer(wait);
}

/* Is it a question that has an answer only when its name does? */
static void begin(struct question_wait *wait)
{
    struct sandbox *sandbox = wait->sandbox;
    struct address pins[NAMES_PINS_MAX];
    struct goal goal = {0};
    char why[640];

    if (wait->code != DNS_OK)
        return;
    (void)snprintf(goal.name, sizeof goal.name, "%s", wait->query.name);
    struct rules_verdict verdict = sandbox_judge(sandbox, &goal, why, sizeof why);
    if (!wait->query.is_host || !verdict.allowed) {
        wait->code = DNS_NXDOMAIN;
        tell_denied(wait, WIRE_VERDICT_DENIED, verdict.rule, wait->query.is_host ? why : "it is no name of a host");
        return;
    }
    if (names_assign(sandbox->names, goal.name, sandbox_now_ns(sandbox), &wait->number) < 0) {
        wait->code = DNS_SERVFAIL;
        tell_denied(wait, WIRE_VERDICT_DENIED, "", "this sandbox uses as many names at once as it may");
        return;
    }
    wait->has_number = true;
    if (strcmp(goal.name, RULES_HOST) == 0 ||
        names_pinned(sandbox->names, wait->number, sandbox_now_ns(sandbox), pins) > 0)
        return;
    wait->resolution = resolver_ask(sandbox->airlock->resolver, goal.name, on_resolved, wait);
    if (wait->resolution == NULL)
        wait->code = DNS_SERVFAIL;
}

struct question_wait *question_ask(struct sandbox *sandbox, const uint8_t *data, size_t length,
                                   question_answered *answered, void *data_of_caller)
{
    struct question_wait *wait = sandbox->question_count < SANDBOX_QUESTIONS_MAX ? calloc(1, sizeof *wait) : NULL;
    int code = wait != NULL ? dns_parse(data, length, &wait->query) : -ENOMEM;

    if (code < 0) {
        free(wait);
        return NULL;
    }
    wait->sandbox = sandbox;
    wait->code = (enum dns_code)code;
    wait->answered = answered;
    wait->data = data_of_caller;
    (void)uv_timer_init(&sandbox->airlock->loop, &wait->soon);
    wait->soon.data = wait;
    sandbox->references++;
    sandbox->question_count++;
    begin(wait);
    if (wait->resolution == NULL)
        (void)uv_timer_start(&wait->soon, on_soon, 0, 0);
    return wait;
}

void question_forget(struct question_wait *wait)
{
    if (wait != NULL)
        wait->answered = NULL;
}

static void send_datagram(void *data, const uint8_t *answer_data, size_t length)
{
    struct datagram *datagram = data;
    struct iovec part = {.iov_base = (void *)(uintptr_t)answer_data, .iov_len = length};
    struct msghdr message = {.msg_name = &datagram->peer,
                             .msg_namelen = datagram->peer_length,
                             .msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = datagram->control,
                             .msg_controllen = datagram->control_length};

    /* Lost, as datagrams may be: the client asks again. */
    ignore_result(sendmsg(datagram->sandbox->udp_fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT));
    free(datagram);
}

/* At once, so that the client does not wait for an answer that will not come. */
static void answer_too_many(struct datagram *datagram, const uint8_t *data, size_t length)
{
    uint8_t answer_data[DNS_ANSWER_MAX];
    struct dns_query query;
    struct dns_answer text = {.code = DNS_SERVFAIL};

    if (dns_parse(data, length, &query) < 0)
        free(datagram);
    else
        send_datagram(datagram, answer_data, dns_build(&query, &text, answer_data));
}

/* 1: one was read. */
static int read_datagram(struct sandbox *sandbox)
{
    uint8_t data[DNS_QUERY_MAX];
    struct datagram *datagram = calloc(1, sizeof *datagram);
    struct iovec part = {.iov_base = data, .iov_len = sizeof data};

    if (datagram == NULL)
        return 0;
    struct msghdr message = {.msg_name = &datagram->peer,
                             .msg_namelen = sizeof datagram->peer,
                             .msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = datagram->control,
                             .msg_controllen = sizeof datagram->control};
    ssize_t n = recvmsg(sandbox->udp_fd, &message, MSG_DONTWAIT);
    datagram->sandbox = sandbox;
    datagram->peer_length = message.msg_namelen;
    datagram->control_length = message.msg_controllen;
    bool is_whole = n > 0 && (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) == 0;
    if (is_whole && sandbox->question_count >= SANDBOX_QUESTIONS_MAX)
        answer_too_many(datagram, data, (size_t)n);
    else if (!is_whole || question_ask(sandbox, data, (size_t)n, send_datagram, datagram) == NULL)
        free(datagram);
    return n >= 0;
}

void questions_read(struct sandbox *sandbox)
{
    for (int i = 0; i < DATAGRAMS_AT_ONCE && read_datagram(sandbox) > 0; i++)
        continue;
}
