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

enum { RULED_LIMIT_MS = 10000, NET_MODE_ALLOWLIST = 1, NET_MODE_FULL = 2, SHOWN_MAX = 5 };

#define SERVICE_USER "hutch-airlock"

static uint8_t frame[WIRE_FRAME_MAX];

/* Two links; the airlock's ends do not block. */
static int make_links(int keeper[2], int client[2], struct error *err)
{
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, keeper) < 0 ||
        socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, client) < 0 ||
        fcntl(keeper[1], F_SETFL, O_NONBLOCK) < 0 || fcntl(client[1], F_SETFL, O_NONBLOCK) < 0 ||
        fcntl(client[0], F_SETFL, O_NONBLOCK) < 0)
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

static int send_rules(const struct net *net, const struct run_options *options, uint64_t sandbox, struct error *err)
{
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
        .rules = {.sandbox = sandbox,
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

int net_start(struct net *net, const struct run_options *options, uint64_t sandbox, struct error *err)
{
    int keeper[2] = {-1, -1};
    int client[2] = {-1, -1};

    if (!options->net_full && options->net_count == 0)
        return 0;
    int r = make_links(keeper, client, err);
    if (r == 0)
        r = start_airlock(net, keeper[1], client[1], err);
    close_fd(&keeper[1]);
    close_fd(&client[1]);
    net->keeper_fd = keeper[0];
    net->client_fd = client[0];
    return r < 0 ? r : send_rules(net, options, sandbox, err);
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

int net_hear(struct net *net, struct error *err)
{
    struct wire_message message;
    int r = link_receive(net->client_fd, WIRE_BY_AIRLOCK, WIRE_IN_RUNNING, frame, &message, NULL, NULL);

    if (r == -EAGAIN)
        return 0;
    if (r <= 0) {
        close_fd(&net->client_fd);
        add_refusal(net, "the airlock has ended, and with it all connections");
        return 0;
    }
    if (message.type == WIRE_RULED) {
        net->is_ruled = true;
        if (message.ruled.detail.length > 0)
            return error_set(err, ERROR_INVALID, 0, "--net: %s", message.ruled.detail.text);
    } else if (message.type == WIRE_DECISION) {
        net->more += message.decision.lost;
        if (message.decision.verdict != WIRE_VERDICT_ALLOWED)
            add_refusal(net, message.decision.why.text);
    }
    return 0;
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
    if (r == 0 && net->keeper_fd >= 0 && !net->is_ruled)
        return error_set(err, ERROR_SYSTEM, 0, "the airlock ended before it had started");
    return r;
}

void net_explain(const struct net *net)
{
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
}

void net_release(struct net *net)
{
    close_fd(&net->keeper_fd);
    close_fd(&net->client_fd);
    close_fd(&net->begun.told_fd);
    (void)service_end(&net->begun.pidfd, 0);
    (void)service_end(&net->pidfd, 0);
}
