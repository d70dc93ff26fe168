/*
 * stand_in: a gateway for the tests of hutchd, with the real one's start and hand-over. What it does then is chosen by
 * HUTCH_TEST_MODE; what it saw it writes to /state/report, a command's output to /state/output.
 */
#include "base/cleanup.h"
#include "base/fd.h"
#include "gateway/gateway.h"
#include "wire/link.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { TCP_AO_FIRST = 38, TCP_AO_LAST = 43 }; /* Linux 6.7; libc has no names for them yet */
enum { SANDBOX = 7, CHANNEL = 1, NOBODY = 65534, OTHER_VERSION = WIRE_VERSION + 1, ATTACH_LENGTH = 12 };

#define MIB (UINT64_C(1) << 20)

static uint8_t frame[WIRE_FRAME_MAX];

static void report(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void report(const char *format, ...)
{
    char line[512];
    va_list args;
    _cleanup_fd_ int fd = open("/state/report", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

    va_start(args, format);
    int n = vsnprintf(line, sizeof line - 1, format, args);
    va_end(args);
    line[n++] = '\n';
    if (fd >= 0)
        ignore_result(write(fd, line, (size_t)n));
}

static const char *mode(void)
{
    const char *text = getenv("HUTCH_TEST_MODE");

    return text != NULL ? text : "idle";
}

/* Before main() attaches in our own version. */
__attribute__((constructor)) static void speak_other_version(int argc, char **argv)
{
    static const uint8_t other[ATTACH_LENGTH] = {ATTACH_LENGTH, 0, 0, 0, OTHER_VERSION, WIRE_ATTACH};

    if (argc < 2 || strcmp(argv[1], "--serve") != 0 || strcmp(mode(), "version") != 0)
        return;
    ignore_result(send(WIRE_KEEPER_FD, other, sizeof other, 0));
    (void)sleep(5);
    _exit(0);
}

/* A checker that is never done, and never silent. */
__attribute__((constructor)) static void check_for_ever(int argc, char **argv)
{
    if (argc < 2 || strcmp(argv[1], "--check-certificate") != 0 || strcmp(mode(), "drip") != 0)
        return;
    for (;;) {
        ignore_result(write(WIRE_KEEPER_FD, "x", 1));
        (void)usleep(100000);
    }
}

static int receive(int fd, enum wire_sender sender, struct wire_message *message, int *fds, size_t *fd_count)
{
    int r =
        link_receive(fd, sender, (enum wire_state)(WIRE_IN_STARTING | WIRE_IN_RUNNING), frame, message, fds, fd_count);

    if (r <= 0)
        _exit(r == 0 ? 0 : 1);
    return r;
}

static void answer(int keeper_fd, const struct wire_ping *ping)
{
    struct wire_message pong = {.type = WIRE_PONG, .pong = {.number = ping->number}};

    ignore_result(link_send(keeper_fd, &pong, NULL, 0));
}

/* While it waits for a guest, it answers the keeper; whatever else that says is not for now. */
static void wait_for_guest(int guest)
{
    struct pollfd ready[] = {{.fd = guest, .events = POLLIN}, {.fd = WIRE_KEEPER_FD, .events = POLLIN}};

    while (poll(ready, 2, -1) > 0 && ready[1].revents != 0) {
        struct wire_message message;
        int fds[FD_PASS_MAX];
        size_t fd_count = 0;
        receive(WIRE_KEEPER_FD, WIRE_BY_KEEPER, &message, fds, &fd_count);
        if (message.type == WIRE_PING)
            answer(WIRE_KEEPER_FD, &message.ping);
        fd_close_many(fds, fd_count);
    }
}

static int hear(int fd, enum wire_sender sender, struct wire_message *message, int *fds, size_t *fd_count)
{
    int r;

    if (sender == WIRE_BY_GUEST)
        wait_for_guest(fd);
    while ((r = receive(fd, sender, message, fds, fd_count)) > 0 && message->type == WIRE_PING)
        answer(fd, &message->ping);
    return r;
}

/* The guest link, or -1 with a line in the report. */
static int create(const struct handover *handover, struct wire_create *more, const int *fds, size_t fd_count)
{
    struct wire_message message = {.type = WIRE_CREATE, .create = *more};
    int received[FD_PASS_MAX];
    size_t count = 0;

    if (message.create.sandbox == 0)
        message.create.sandbox = SANDBOX;
    if (message.create.memory_bytes == 0)
        message.create.memory_bytes = 256 * MIB;
    if (message.create.disk_bytes == 0)
        message.create.disk_bytes = 16 * MIB;
    message.create.disk_inodes = 4096;
    message.create.processes = 64;
    message.create.hostname = wire_str("sandbox");
    message.create.user = NOBODY;
    int r = link_send(handover->keeper_fd, &message, fds, fd_count);
    if (r == -EPERM && fd_count > 0) { /* SO_PASSRIGHTS */
        report("refused by the kernel: named here, not handed over");
        return -1;
    }
    if (r < 0)
        _exit(1);
    hear(handover->keeper_fd, WIRE_BY_KEEPER, &message, received, &count);
    if (message.type == WIRE_CREATED)
        return received[0];
    report("refused %s", message.refused.detail.text);
    return -1;
}

static void execute(int guest, const char *script)
{
    char strings[1024];
    int n = snprintf(strings, sizeof strings, "/bin/sh%c-c%c%s%cPATH=/usr/bin:/bin", 0, 0, script, 0);
    struct wire_message message;

    do
        hear(guest, WIRE_BY_GUEST, &message, NULL, NULL);
    while (message.type != WIRE_HELLO);
    message = (struct wire_message){
        .type = WIRE_EXEC,
        .exec = {.channel = CHANNEL,
                 .filter = WIRE_FILTER_STANDARD,
                 .uid = NOBODY,
                 .gid = NOBODY,
                 .file_bytes = 64 * MIB,
                 .open_files = 256,
                 .folder = wire_str("/workspace"),
                 .argc = 3,
                 .envc = 1,
                 .strings = {(const uint8_t *)strings, (uint32_t)n + 1}},
    };
    if (link_send(guest, &message, NULL, 0) < 0)
        _exit(1);
}

/*
 * What was under way before RESUME comes first, and then once more; the gateway before us may have read the beginning
 * of it. So what is beyond is not taken, and what is known already is left out.
 */
static void record(int fd, uint64_t *offset, uint64_t at, struct wire_bytes data)
{
    uint64_t known = at < *offset ? *offset - at : 0;

    if (at > *offset || known >= data.length)
        return;
    if (fd_write_all(fd, data.data + known, data.length - (size_t)known) < 0)
        _exit(1);
    *offset += data.length - known;
}

/* Until the command's end; each piece is acknowledged when it is written. */
static void follow(int guest, bool resumes)
{
    int fd = open("/state/output", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    struct stat st;
    struct wire_message message;

    if (fd < 0 || fstat(fd, &st) < 0)
        _exit(1);
    uint64_t offset = (uint64_t)st.st_size;
    if (resumes) {
        message = (struct wire_message){.type = WIRE_RESUME, .resume = {CHANNEL, offset, 0, 0}};
        report("resume %llu", (unsigned long long)offset);
        if (link_send(guest, &message, NULL, 0) < 0)
            _exit(1);
    }
    for (;;) {
        hear(guest, WIRE_BY_GUEST, &message, NULL, NULL);
        if (message.type == WIRE_EXIT && message.exit.stdout_offset <= offset) {
            record(fd, &offset, message.exit.stdout_offset, message.exit.stdout_tail);
            report("exit %u", message.exit.value);
            (void)close(fd);
            return;
        }
        if (message.type != WIRE_STDOUT)
            continue;
        record(fd, &offset, message.stdout_data.offset, message.stdout_data.data);
        struct wire_message ack = {.type = WIRE_ACK, .ack = {CHANNEL, offset, 0}};
        if (link_send(guest, &ack, NULL, 0) < 0)
            _exit(1);
    }
}

static void run_exec(struct handover *handover)
{
    const char *script = getenv("HUTCH_TEST_SCRIPT");
    struct wire_create plain = {0};
    bool resumes = handover->sandbox_count > 0;
    int guest = resumes ? handover->sandboxes[0].guest_fd : create(handover, &plain, NULL, 0);

    if (resumes)
        report("adopted %llu", (unsigned long long)handover->sandboxes[0].sandbox);
    else
        execute(guest, script != NULL ? script : "true");
    follow(guest, resumes);
}

/* More than are told of at once. */
static void run_many(struct handover *handover)
{
    const char *text = getenv("HUTCH_TEST_SANDBOXES");
    uint64_t count = text != NULL ? strtoull(text, NULL, 10) : 1;

    for (uint64_t i = 0; handover->sandbox_count == 0 && i < count; i++) {
        struct wire_create plain = {.sandbox = SANDBOX + i};
        (void)create(handover, &plain, NULL, 0);
    }
    for (size_t i = 0; i < handover->sandbox_count; i++) {
        struct wire_message message = {.type = WIRE_DESTROY, .destroy = {handover->sandboxes[i].sandbox}};
        if (link_send(handover->keeper_fd, &message, NULL, 0) < 0)
            _exit(1);
    }
}

static void run_shares(struct handover *handover)
{
    static const char dirs[] = "/data";
    static const char shares[] = "data\0sub";
    static const char out[] = "data\0../..";
    static const char missing[] = "other\0sub";
    static const uint8_t writable[8] = {WIRE_DIR_WRITABLE};
    struct wire_create with = {.dirs = {dirs, sizeof dirs, 1}, .dir_flags = {writable, 1}};
    int folder = open("/state", O_PATH | O_DIRECTORY | O_CLOEXEC);

    with.shares = (struct wire_strv){out, sizeof out, 2};
    (void)create(handover, &with, NULL, 0);
    with.shares = (struct wire_strv){missing, sizeof missing, 2};
    (void)create(handover, &with, NULL, 0);
    with.shares = (struct wire_strv){NULL, 0, 0};
    (void)create(handover, &with, &folder, 1);
    with.shares = (struct wire_strv){shares, sizeof shares, 2};
    int guest = create(handover, &with, NULL, 0);
    if (guest < 0)
        return;
    execute(guest, "cat /data/given; echo made > /data/made");
    follow(guest, false);
}

static unsigned long long now_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (unsigned long long)now.tv_sec * 1000000000ULL + (unsigned long long)now.tv_nsec;
}

/* A sandbox that has read a large file of the host ends; how soon can the next one be made? */
static void run_reclaim(struct handover *handover)
{
    static const char dirs[] = "/data";
    static const char shares[] = "data\0";
    static const uint8_t read_only[8] = {0};
    struct wire_create with = {.memory_bytes = 2048 * MIB,
                               .dirs = {dirs, sizeof dirs, 1},
                               .dir_flags = {read_only, 1},
                               .shares = {shares, sizeof shares, 2}};
    struct wire_create next = {.sandbox = SANDBOX + 1};
    struct wire_message message = {.type = WIRE_DESTROY, .destroy = {SANDBOX}};
    int guest = create(handover, &with, NULL, 0);

    if (guest < 0)
        return;
    execute(guest, "cat /data/large >/dev/null");
    follow(guest, false);
    if (link_send(handover->keeper_fd, &message, NULL, 0) < 0)
        _exit(1);
    hear(handover->keeper_fd, WIRE_BY_KEEPER, &message, NULL, NULL);
    report("heard %s", wire_name(message.type));
    if (create(handover, &next, NULL, 0) >= 0)
        report("created %llu", now_ns());
}

/* One of many runs out of memory all the time. */
static void run_oom(struct handover *handover)
{
    const char *text = getenv("HUTCH_TEST_SANDBOXES");
    uint64_t count = text != NULL ? strtoull(text, NULL, 10) : 1;
    struct wire_create small = {.memory_bytes = 16 * MIB, .disk_bytes = MIB};
    int guest = create(handover, &small, NULL, 0);

    for (uint64_t i = 1; i < count; i++) {
        struct wire_create plain = {.sandbox = SANDBOX + i};
        (void)create(handover, &plain, NULL, 0);
    }
    if (guest >= 0)
        execute(guest, "while :; do tail /dev/zero; done");
}

/* Larger than is permitted; and many at once. */
static void run_disks(struct handover *handover)
{
    enum { COUNT = 40 };
    struct wire_create large = {.flags = WIRE_CREATE_IMAGE, .disk_bytes = 65 * MIB};
    size_t made = 0;

    (void)create(handover, &large, NULL, 0);
    for (uint64_t i = 0; i < COUNT; i++) {
        struct wire_message message = {.type = WIRE_CREATE,
                                       .create = {.sandbox = SANDBOX + i,
                                                  .flags = WIRE_CREATE_IMAGE,
                                                  .memory_bytes = 64 * MIB,
                                                  .disk_bytes = (8 + i) * MIB,
                                                  .disk_inodes = 4096,
                                                  .processes = 64,
                                                  .hostname = wire_str("sandbox")}};
        if (link_send(handover->keeper_fd, &message, NULL, 0) < 0)
            _exit(1);
    }
    for (size_t i = 0; i < COUNT; i++) {
        struct wire_message message;
        int fds[FD_PASS_MAX];
        size_t fd_count = 0;
        hear(handover->keeper_fd, WIRE_BY_KEEPER, &message, fds, &fd_count);
        made += message.type == WIRE_CREATED;
    }
    report("made %zu", made);
}

static const char *outcome(long r)
{
    return r >= 0 ? "done" : strerrorname_np(errno);
}

/* A listener with a key answers nobody who has none. What is allowed is what the real gateway sets. */
static void run_deny_options(int listener)
{
    struct linger linger = {1, 1000};
    struct tcp_md5sig key = {.tcpm_flags = TCP_MD5SIG_FLAG_PREFIX, .tcpm_keylen = 4, .tcpm_key = "key"};
    int none = 0;

    key.tcpm_addr.ss_family = AF_INET;
    report("linger %s", outcome(setsockopt(listener, SOL_SOCKET, SO_LINGER, &linger, sizeof linger)));
    report("filter %s", outcome(setsockopt(listener, SOL_SOCKET, SO_DETACH_FILTER, &none, sizeof none)));
    report("buffer %s", outcome(setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &none, sizeof none)));
    report("ttl %s", outcome(setsockopt(listener, IPPROTO_IP, IP_MINTTL, &none, sizeof none)));
    report("md5 %s", outcome(setsockopt(listener, IPPROTO_TCP, TCP_MD5SIG, &key, sizeof key)));
    report("md5-ext %s", outcome(setsockopt(listener, IPPROTO_TCP, TCP_MD5SIG_EXT, &key, sizeof key)));
    for (int option = TCP_AO_FIRST; option <= TCP_AO_LAST; option++)
        report("ao-%d %s", option, outcome(setsockopt(listener, IPPROTO_TCP, option, &none, sizeof none)));
    report("nodelay %s", outcome(setsockopt(listener, IPPROTO_TCP, TCP_NODELAY, &none, sizeof none)));
}

/* What a gateway that was taken over would try. */
static void run_deny(const struct handover *handover)
{
    int listener = handover->listeners[0].fd;
    struct sockaddr_in there = {.sin_family = AF_INET, .sin_port = htons(1), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

    run_deny_options(listener);
    report("fastopen %s",
           outcome(sendto(listener, "x", 1, MSG_FASTOPEN, (const struct sockaddr *)&there, sizeof there)));
    report("socket %s", outcome(socket(AF_INET, SOCK_STREAM, 0)));
    report("netlink %s", outcome(socket(AF_NETLINK, SOCK_RAW, 0)));
    report("fork %s", outcome(fork()));
    report("execve %s", outcome(execl("/usr/bin/id", "id", (char *)NULL)));
    report("passwd %s", outcome(open("/etc/passwd", O_RDONLY)));
    report("proc %s", outcome(open("/proc/self/status", O_RDONLY)));
    report("usr %s", outcome(open("/usr/hutch-test", O_WRONLY | O_CREAT, 0600)));
    report("root %s", outcome(open("/hutch-test", O_WRONLY | O_CREAT, 0600)));
    report("setuid %s", outcome(setuid(0)));
    report("ptrace %s", outcome(syscall(SYS_ptrace, 16, 1, 0, 0)));
    report("unshare %s", outcome(syscall(SYS_unshare, 0x10000000)));
    report("code %s",
           mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED
               ? outcome(-1)
               : "done");
    report("chown %s", outcome(chown("/state/report", 0, 0)));
    report("state %s", outcome(open("/state/own", O_WRONLY | O_CREAT, 0600)));
    report("environment %s", getenv("HUTCH_ADMIN_PASSWORD") == NULL ? "clean" : "password");
}

/* More than a pipe holds, so that it has to be read meanwhile. */
static void run_noisy(void)
{
    enum { COUNT = 100000 };
    static char flood[COUNT + 1];

    report("read %s", outcome(read(STDERR_FILENO, flood, 1)));
    report("truncate %s", outcome(ftruncate(STDERR_FILENO, 0)));
    report("shutdown %s", outcome(shutdown(STDERR_FILENO, SHUT_RDWR)));
    memset(flood, 'y', COUNT);
    flood[COUNT] = '\n';
    (void)fprintf(stderr, "red \x1b[31m\n");
    (void)fprintf(stderr, "time=0 level=info program=hutchd event=imitated\n");
    ignore_result(fd_write_all(STDERR_FILENO, flood, sizeof flood));
    (void)fprintf(stderr, "last word");
}

/* So that whoever comes next hears nothing. */
static void run_deaf(const struct handover *handover)
{
    for (size_t i = 0; i < handover->listener_count; i++)
        report("shutdown %s", outcome(shutdown(handover->listeners[i].fd, SHUT_RDWR)));
}

/* The settings took it away, but it is still here. */
static void listen_again(const struct handover *handover)
{
    int filter = 0;

    for (size_t i = 0; i < handover->listener_count; i++) {
        (void)setsockopt(handover->listeners[i].fd, SOL_SOCKET, SO_DETACH_FILTER, &filter, sizeof filter);
        report("listen %s %s", handover->listeners[i].name, outcome(listen(handover->listeners[i].fd, SANDBOX)));
    }
}

static void run_drain(struct handover *handover)
{
    struct wire_message message;

    for (;;) {
        int fds[FD_PASS_MAX];
        size_t fd_count = 0;
        hear(handover->keeper_fd, WIRE_BY_KEEPER, &message, fds, &fd_count);
        report("heard %s", wire_name(message.type));
        if (message.type == WIRE_SETTINGS && strcmp(mode(), "keep") == 0)
            listen_again(handover);
        if (message.type == WIRE_SETTINGS && strcmp(mode(), "stubborn") != 0) {
            message =
                (struct wire_message){.type = WIRE_RELOADED, .reloaded = {.generation = message.settings.generation}};
            ignore_result(link_send(handover->keeper_fd, &message, NULL, 0));
        }
        if (message.type == WIRE_DRAIN && strcmp(mode(), "stubborn") != 0) {
            message = (struct wire_message){.type = WIRE_DRAINED};
            ignore_result(link_send(handover->keeper_fd, &message, NULL, 0));
        }
    }
}

int gateway_run(struct handover *handover)
{
    struct wire_message ready = {.type = WIRE_READY};

    report("start adopted=%zu listeners=%zu password=%s key=%s", handover->sandbox_count, handover->listener_count,
           handover->presets.admin_password != NULL ? handover->presets.admin_password : "-",
           handover->presets.api_key != NULL ? handover->presets.api_key : "-");
    if (strcmp(mode(), "crash") == 0)
        return 3;
    while (strcmp(mode(), "slow") == 0 && access("/state/go", F_OK) < 0)
        (void)usleep(10000);
    if (handover_say_ready(handover) < 0)
        return 1;
    if (strcmp(mode(), "exec") == 0)
        run_exec(handover);
    if (strcmp(mode(), "many") == 0)
        run_many(handover);
    if (strcmp(mode(), "shares") == 0)
        run_shares(handover);
    if (strcmp(mode(), "reclaim") == 0)
        run_reclaim(handover);
    if (strcmp(mode(), "oom") == 0)
        run_oom(handover);
    if (strcmp(mode(), "disks") == 0)
        run_disks(handover);
    if (strcmp(mode(), "deny") == 0)
        run_deny(handover);
    if (strcmp(mode(), "noisy") == 0)
        run_noisy();
    if (strcmp(mode(), "deaf") == 0 && access("/state/deaf", F_OK) < 0) {
        run_deaf(handover);
        (void)close(open("/state/deaf", O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
        return 3;
    }
    if (strcmp(mode(), "violate") == 0) {
        ready.type = WIRE_ATTACH;
        ignore_result(link_send(handover->keeper_fd, &ready, NULL, 0));
    }
    if (strcmp(mode(), "invent") == 0) {
        ready = (struct wire_message){.type = WIRE_RELOADED, .reloaded = {.generation = 1}};
        ignore_result(link_send(handover->keeper_fd, &ready, NULL, 0));
    }
    if (strcmp(mode(), "greedy") == 0 && access("/state/greedy", F_OK) < 0) {
        (void)close(open("/state/greedy", O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
        for (size_t i = 0; i < 1024; i++)
            memset(malloc(MIB), 1, MIB);
        report("not killed");
    }
    if (strcmp(mode(), "linger") == 0) {
        close_fd(&handover->keeper_fd);
        (void)sleep(30);
    }
    report("done");
    run_drain(handover);
    return 0;
}
