#include "cli/net.h"

#include "base/beside.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/fd.h"
#include "wire/link.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

enum { RULED_LIMIT_MS = 10000, NET_MODE_ALLOWLIST = 1, NET_MODE_FULL = 2, SHOWN_MAX = 5, RESTARTS_MAX = 10 };

#define SERVICE_USER "hutch-airlock"

static uint8_t frame[WIRE_FRAME_MAX];

void net_init(struct net *net)
{
    *net = (struct net){.keeper_fd = -1,
                        .plug_fd = -1,
                        .plugs = {-1, -1, -1},
                        .airlock_fd = -1,
                        .client_fd = -1,
                        .begun = {.pidfd = -1, .told_fd = -1},
                        .pidfd = -1};
}

/* A link whose one end is the airlock's. Neither end blocks. */
static int make_link(int ends[2], struct error *err)
{
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) < 0)
        return error_errno(err, "making a link to the airlock");
    return 0;
}

/* The command's terminal is not for the airlock to write to; only a sanitizer has something to say that matters. */
static int open_error(void)
{
#ifdef HUTCH_SANITIZED
    return fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
#else
    return open("/dev/null", O_WRONLY | O_CLOEXEC);
#endif
}

/* Its standard input is how names are resolved on this machine. */
static int start_airlock(struct net *net, int keeper_end, int client_end, struct error *err)
{
    static char name[] = "hutch-airlock";
    char *const argv[] = {name, NULL};
    char *const environment[] = {NULL};
    _cleanup_fd_ int program = -1;
    _cleanup_fd_ int input = open("/etc/resolv.conf", O_RDONLY | O_CLOEXEC);
    _cleanup_fd_ int error = open_error();
    struct service service = {.argv = argv,
                              .environment = environment,
                              .input_fd = input,
                              .error_fd = error,
                              .fds = {keeper_end, client_end},
                              .fd_count = 2,
                              .state_fd = -1,
                              .is_airlock = true};
    int r = beside_open(name, &program, err);

    if (r == 0)
        r = service_find_user(SERVICE_USER, &service.user, err);
    service.program_fd = program;
    return r < 0 ? r : service_begin(&service, &net->begun, err);
}

static int send_rules(const struct net *net, struct error *err)
{
    const struct run_options *options = net->options;
    struct buf allow = buf_init(16384);
    int r = 0;

    for (size_t i = 0; r == 0 && i < options->net_count; i++)
        r = buf_append(&allow, options->net[i], strlen(options->net[i]) + 1);
    if (r < 0) {
        buf_release(&allow);
        return error_set(err, ERROR_LIMIT, 0, "--net: the list is too long");
    }
    struct wire_message message = {
        .type = WIRE_RULES,
        .rules = {.sandbox = net->sandbox,
                  .generation = 1,
                  .mode = options->net_full ? NET_MODE_FULL : NET_MODE_ALLOWLIST,
                  .allow = {.data = (const char *)allow.data,
                            .length = (uint32_t)allow.length,
                            .count = (uint32_t)options->net_count}},
    };
    r = link_send(net->client_fd, &message, NULL, 0);
    buf_release(&allow);
    return r < 0 ? error_set(err, ERROR_SYSTEM, -r, "talking to the airlock") : 0;
}

/* An airlock that knows the rules, and the sockets when there are some. */
static int begin(struct net *net, struct error *err)
{
    struct wire_message plug = {.type = WIRE_PLUG, .plug = {.sandbox = net->sandbox}};
    int keeper[2] = {-1, -1};
    int client[2] = {-1, -1};
    int r = make_link(keeper, err);

    if (r == 0)
        r = make_link(client, err);
    if (r == 0)
        r = start_airlock(net, keeper[1], client[1], err);
    close_fd(&keeper[1]);
    close_fd(&client[1]);
    net->airlock_fd = keeper[0];
    net->client_fd = client[0];
    if (r == 0)
        r = send_rules(net, err);
    if (r == 0 && net->plugs[0] >= 0)
        r = link_send(net->airlock_fd, &plug, net->plugs, NET_PLUG_FDS);
    return r;
}

int net_start(struct net *net, const struct run_options *options, uint64_t sandbox, struct error *err)
{
    int ends[2] = {-1, -1};

    if (!options->net_full && options->net_count == 0)
        return 0;
    net->options = options;
    net->sandbox = sandbox;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return error_errno(err, "making a link for the sandbox's sockets");
    net->keeper_fd = ends[0];
    net->plug_fd = ends[1];
    return begin(net, err);
}

int net_take_plug(struct net *net, struct error *err)
{
    struct wire_message message;
    int fds[FD_PASS_MAX];
    size_t count = 0;
    int r = link_receive(net->plug_fd, WIRE_BY_KEEPER, WIRE_IN_RUNNING, frame, &message, fds, &count);

    if (r <= 0 || message.type != WIRE_PLUG || count != NET_PLUG_FDS || net->plugs[0] >= 0)
        return error_set(err, ERROR_PROTOCOL, r < 0 ? -r : EBADMSG, "hearing of the sandbox's sockets");
    memcpy(net->plugs, fds, sizeof net->plugs);
    /* An airlock that has just ended is noticed elsewhere, and the next one is told. */
    r = link_send(net->airlock_fd, &message, fds, NET_PLUG_FDS);
    return r < 0 && r != -EPIPE ? error_set(err, ERROR_SYSTEM, -r, "handing over the sandbox's sockets") : 0;
}

/* The same words are told once, with how often. */
static void add_refusal(struct net *net, const char *why)
{
    for (size_t i = 0; i < net->refusal_count; i++) {
        if (strcmp(net->refusals[i].why, why) == 0) {
            net->refusals[i].count++;
            return;
        }
    }
    if (net->refusal_count == NET_REFUSALS_MAX) {
        net->more++;
        return;
    }
    struct net_refusal *refusal = &net->refusals[net->refusal_count++];
    (void)snprintf(refusal->why, sizeof refusal->why, "%s", why);
    refusal->count = 1;
}

/* The airlock is not trusted: what it says goes to a terminal. */
static void make_plain(char *text)
{
    for (; *text != '\0'; text++) {
        if ((unsigned char)*text < ' ' || (unsigned char)*text >= 0x7f)
            *text = '?';
    }
}

static void stop(struct net *net)
{
    close_fd(&net->airlock_fd);
    close_fd(&net->client_fd);
    close_fd(&net->begun.told_fd);
    (void)service_end(&net->begun.pidfd, 0);
    (void)service_end(&net->pidfd, 0);
}

/* All its connections have ended with it. One that does not come back leaves the sandbox without a network. */
static void restart(struct net *net)
{
    struct error err = {0};

    stop(net);
    add_refusal(net, "the airlock has ended, and with it all connections");
    int r = net->restarts++ < RESTARTS_MAX ? begin(net, &err) : -EAGAIN;
    if (r == 0)
        r = service_finish(&net->begun, &net->pidfd, &err);
    if (r == 0)
        return;
    stop(net);
    /* Nobody will ever read from these: who connects is told so. */
    fd_close_many(net->plugs, NET_PLUG_FDS);
    add_refusal(net, err.message[0] != '\0' ? err.message : "the airlock ends again and again");
}

static int take_ruled(struct net *net, const struct wire_ruled *ruled, struct error *err)
{
    char detail[513];

    net->is_ruled = true;
    if (ruled->detail.length == 0)
        return 0;
    (void)snprintf(detail, sizeof detail, "%s", ruled->detail.text);
    make_plain(detail);
    return error_set(err, ERROR_INVALID, 0, "--net: %s", detail);
}

static void take_decision(struct net *net, const struct wire_decision *decision)
{
    char why[sizeof net->refusals->why];

    net->lost += decision->lost;
    if (decision->verdict == WIRE_VERDICT_ALLOWED)
        return;
    (void)snprintf(why, sizeof why, "%s", decision->why.text);
    make_plain(why);
    add_refusal(net, why);
}

int net_hear(struct net *net, struct error *err)
{
    struct wire_message message;
    int r = link_receive(net->client_fd, WIRE_BY_AIRLOCK, WIRE_IN_RUNNING, frame, &message, NULL, NULL);

    if (r == -EAGAIN)
        return 0;
    if (r <= 0 && !net->is_ruled)
        return error_set(err, ERROR_SYSTEM, r < 0 ? -r : 0, "the airlock ended before it had started");
    if (r <= 0)
        restart(net);
    else if (message.type == WIRE_RULED)
        return take_ruled(net, &message.ruled, err);
    else if (message.type == WIRE_DECISION)
        take_decision(net, &message.decision);
    return 0;
}

/* What was decided while the command ended. */
static void drain(struct net *net)
{
    struct wire_message message;

    while (net->client_fd >= 0 &&
           link_receive(net->client_fd, WIRE_BY_AIRLOCK, WIRE_IN_RUNNING, frame, &message, NULL, NULL) > 0) {
        if (message.type == WIRE_DECISION)
            take_decision(net, &message.decision);
    }
}

int net_wait(struct net *net, struct error *err)
{
    struct pollfd ready = {.fd = net->client_fd, .events = POLLIN};
    int r = net->begun.told_fd >= 0 ? service_finish(&net->begun, &net->pidfd, err) : 0;

    while (r == 0 && net->client_fd >= 0 && !net->is_ruled) {
        int n = poll(&ready, 1, RULED_LIMIT_MS);
        if (n == 0)
            return error_set(err, ERROR_SYSTEM, ETIMEDOUT, "waiting for the airlock");
        if (n > 0)
            r = net_hear(net, err);
    }
    return r;
}

void net_explain(struct net *net)
{
    drain(net);
    uint64_t more = net->more;
    for (size_t i = 0; i < net->refusal_count; i++) {
        if (i >= SHOWN_MAX)
            more += net->refusals[i].count;
        else if (net->refusals[i].count > 1)
            (void)fprintf(stderr, "hutch: network: %s (%u times)\n", net->refusals[i].why, net->refusals[i].count);
        else
            (void)fprintf(stderr, "hutch: network: %s\n", net->refusals[i].why);
    }
    if (more > 0)
        (void)fprintf(stderr, "hutch: network: %llu more refusals\n", (unsigned long long)more);
    /* Most of them were refusals, but that is not known. */
    if (net->lost > 0)
        (void)fprintf(stderr, "hutch: network: %llu more decisions\n", (unsigned long long)net->lost);
}

int net_append_json(struct net *net, struct buf *json)
{
    drain(net);
    int r = buf_printf(json, "[");
    for (size_t i = 0; r == 0 && i < net->refusal_count; i++) {
        const struct net_refusal *refusal = &net->refusals[i];
        r = buf_printf(json, "%s{\"refused\":", i > 0 ? "," : "");
        if (r == 0)
            r = buf_append_json(json, refusal->why, strlen(refusal->why));
        if (r == 0)
            r = buf_printf(json, ",\"times\":%u}", refusal->count);
    }
    return r < 0 ? r : buf_printf(json, "]");
}

void net_release(struct net *net)
{
    stop(net);
    close_fd(&net->keeper_fd);
    close_fd(&net->plug_fd);
    fd_close_many(net->plugs, NET_PLUG_FDS);
}
