#include "airlock_world.h"

#include "base/cleanup.h"
#include "base/fd.h"
#include "keeper/airlock_sockets.h"
#include "wire/link.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/wait.h>

static const char *airlock_path;
static uint16_t port;
static uint8_t frame[WIRE_FRAME_MAX];

void set_airlock(const char *path)
{
    airlock_path = path;
}

uint16_t own_port(void)
{
    return port;
}

void bring_up(void)
{
    struct ifreq up = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};

    assert_return_code(unshare(CLONE_NEWNET), errno);
    _cleanup_fd_ int inside = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert_return_code(ioctl(inside, SIOCSIFFLAGS, &up), errno);
}

/* Echoes, sends without an end, or does neither; one connection at a time in a process each. */
static pid_t start_server(void)
{
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof here;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_return_code(bind(listener, (const struct sockaddr *)&here, sizeof here), errno);
    assert_return_code(listen(listener, 64), errno);
    assert_return_code(getsockname(listener, (struct sockaddr *)&here, &length), errno);
    port = ntohs(here.sin_port);
    pid_t pid = fork();
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)signal(SIGCHLD, SIG_IGN);
        for (;;) {
            int fd = accept(listener, NULL, NULL);
            if (fork() == 0) {
                static uint8_t piece[65536];
                (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
                if (recv(fd, piece, 1, MSG_PEEK) == 1 && piece[0] == FLOOD)
                    while (fd_write_all(fd, piece, sizeof piece) == 0)
                        continue;
                if (piece[0] == HOLD)
                    (void)pause();
                for (ssize_t n; (n = read(fd, piece, sizeof piece)) > 0;)
                    ignore_result(fd_write_all(fd, piece, (size_t)n));
                _exit(0);
            }
            (void)close(fd);
        }
    }
    (void)close(listener);
    return pid;
}

/* The same address for every name, but for those that start with one letter: these have no answer. */
static pid_t start_resolver(void)
{
    static const uint8_t record[] = {0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 192, 0, 2, 7};
    enum { FLAGS = 2, ANSWERS = 7, FIRST_LABEL = 12, TYPE_FROM_END = 3 };
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_port = htons(53), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    assert_return_code(bind(fd, (const struct sockaddr *)&here, sizeof here), errno);
    pid_t pid = fork();
    for (; pid == 0;) {
        uint8_t data[512 + sizeof record];
        struct sockaddr_in from;
        socklen_t length = sizeof from;
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        ssize_t n = recvfrom(fd, data, 512, 0, (struct sockaddr *)&from, &length);
        if (n <= FIRST_LABEL || data[FIRST_LABEL] == 1)
            continue;
        bool has_answer = data[n - TYPE_FROM_END] == 1;
        data[FLAGS] = 0x81;
        data[FLAGS + 1] = 0x80;
        data[ANSWERS] = has_answer;
        memcpy(data + n, record, sizeof record);
        ignore_result(
            sendto(fd, data, (size_t)n + (has_answer ? sizeof record : 0), 0, (struct sockaddr *)&from, length));
    }
    (void)close(fd);
    return pid;
}

static pid_t start_airlock(int keeper_end, int client_end)
{
    pid_t pid = fork();

    if (pid == 0) {
        int keeper = fcntl(keeper_end, F_DUPFD, 10);
        int client = fcntl(client_end, F_DUPFD, 10);
        static const char configuration[] = "nameserver 127.0.0.1\n";
        int input[2];
        if (pipe(input) < 0 || write(input[1], configuration, sizeof configuration - 1) < 0 ||
            dup2(keeper, WIRE_KEEPER_FD) < 0 || dup2(client, WIRE_CLIENT_FD) < 0 || dup2(input[0], 0) < 0)
            _exit(1);
        (void)close(input[0]);
        (void)close(input[1]);
        (void)close(keeper);
        (void)close(client);
        (void)execl(airlock_path, "hutch-airlock", NULL);
        _exit(1);
    }
    return pid;
}

/* The machine's namespace with server and airlock, then the sandbox's, in which the test goes on. */
struct world begin(void)
{
    struct world world;
    int keeper[2];
    int client[2];

    bring_up();
    world.resolver = start_resolver();
    world.server = start_server();
    assert_return_code(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, keeper), errno);
    assert_return_code(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, client), errno);
    (void)fcntl(keeper[1], F_SETFL, O_NONBLOCK);
    (void)fcntl(client[1], F_SETFL, O_NONBLOCK);
    /* Room for a few messages only: what is told has to wait now and then. */
    (void)setsockopt(client[1], SOL_SOCKET, SO_SNDBUF, &(int){1}, sizeof(int));
    world.airlock = start_airlock(keeper[1], client[1]);
    (void)close(keeper[1]);
    (void)close(client[1]);
    world.keeper_fd = keeper[0];
    world.client_fd = client[0];
    bring_up();
    assert_int_equal(airlock_sockets_plug(world.keeper_fd, SANDBOX), 0);
    return world;
}

void end(struct world *world)
{
    int status = 0;

    close_fd(&world->client_fd);
    assert_int_equal(waitpid(world->airlock, &status, 0), world->airlock);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    close_fd(&world->keeper_fd);
    (void)kill(world->server, SIGKILL);
    (void)waitpid(world->server, NULL, 0);
    (void)kill(world->resolver, SIGKILL);
    (void)waitpid(world->resolver, NULL, 0);
}

struct wire_message hear_any(const struct world *world)
{
    struct pollfd ready = {.fd = world->client_fd, .events = POLLIN};
    struct wire_message message = {0};

    assert_int_equal(poll(&ready, 1, WAIT_MS), 1);
    assert_int_equal(link_receive(world->client_fd, WIRE_BY_AIRLOCK, WIRE_IN_RUNNING, frame, &message, NULL, NULL), 1);
    return message;
}

struct wire_message hear(const struct world *world, enum wire_type type)
{
    struct wire_message message = {0};

    do {
        message = hear_any(world);
    } while (message.type != type);
    return message;
}

/* The detail of the answer: "" when they are in force. */
const char *rule(const struct world *world, struct wire_rules rules, const char *allow)
{
    static uint64_t generation;
    struct wire_message message = {.type = WIRE_RULES, .rules = rules};

    message.rules.sandbox = SANDBOX;
    message.rules.generation = ++generation;
    if (allow != NULL)
        message.rules.allow = (struct wire_strv){.data = allow, .length = (uint32_t)strlen(allow) + 1, .count = 1};
    assert_int_equal(link_send(world->client_fd, &message, NULL, 0), 0);
    struct wire_message answer = hear(world, WIRE_RULED);
    assert_int_equal(answer.ruled.generation, generation);
    assert_int_equal(answer.ruled.sandbox, SANDBOX);
    return answer.ruled.detail.text;
}

const char *own_service(void)
{
    static char text[64];

    (void)snprintf(text, sizeof text, "host.hutch:%u", port);
    return text;
}

int dial_proxy(void)
{
    struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons(WIRE_PROXY_PORT), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct timeval limit = {.tv_sec = WAIT_MS / 1000};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    if (connect(fd, (const struct sockaddr *)&to, sizeof to) == 0)
        return fd;
    int r = -errno;
    (void)close(fd);
    return r;
}

/* CONNECT: the connection, and the status that was answered. */
int ask_for(const char *target, unsigned *ret_status)
{
    char text[512] = "";
    int fd = dial_proxy();

    assert_true(fd >= 0);
    int length = snprintf(text, sizeof text, "CONNECT %s HTTP/1.1\r\nHost: x\r\n\r\n", target);
    /* One that is over a limit may be gone by now. */
    ssize_t n = send(fd, text, (size_t)length, MSG_NOSIGNAL);
    n = n == length ? recv(fd, text, sizeof text - 1, 0) : 0;
    text[n > 0 ? n : 0] = '\0';
    *ret_status = n > 12 ? (unsigned)strtoul(text + 9, NULL, 10) : 0;
    return fd;
}

int ask(unsigned *ret_status)
{
    return ask_for(own_service(), ret_status);
}

bool echoes(int fd)
{
    char text[4] = "";

    return send(fd, "\1ab", 3, MSG_NOSIGNAL) == 3 && recv(fd, text, 3, 0) == 3 && memcmp(text, "\1ab", 3) == 0;
}

/* A socket that asks the sandbox's resolver. */
int dial_resolver(void)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(53)};
    struct timeval limit = {.tv_sec = WAIT_MS / 1000};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    assert_int_equal(inet_pton(AF_INET, "198.18.0.2", &to.sin_addr), 1);
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    assert_return_code(connect(fd, (const struct sockaddr *)&to, sizeof to), errno);
    return fd;
}

/* For the A record of NAME.test. */
void send_question(int fd, uint8_t id, const char *name)
{
    uint8_t data[64] = {0, id, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0};
    static const uint8_t rest[] = {4, 't', 'e', 's', 't', 0, 0, 1, 0, 1};
    size_t length = strlen(name);

    data[12] = (uint8_t)length;
    memcpy(data + 13, name, length);
    memcpy(data + 13 + length, rest, sizeof rest);
    assert_true(send(fd, data, 13 + length + sizeof rest, 0) > 0);
}
