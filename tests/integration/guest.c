#include "guest.h"

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/sys.h"
#include "init/group.h"

#include <dirent.h>
#include <linux/sockios.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { GUEST_FD = 3, CGROUP_FD = 4, SILENCE_MS = 150, STRINGS_MAX = 4096, DESCENDANTS_MAX = 512, FAILURES_SHOWN = 6 };

static const char *init_path;
static const char *payload_path;

static uint8_t frame[WIRE_FRAME_MAX];

static _Noreturn void become_init(int link, int cgroup)
{
    static char name[] = "init";
    char *const argv[] = {name, NULL};
    char *const envp[] = {NULL};
    int high_link = fcntl(link, F_DUPFD, 16);
    int high_cgroup = cgroup >= 0 ? fcntl(cgroup, F_DUPFD, 16) : -1;

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    (void)dup2(high_link, GUEST_FD);
    if (high_cgroup >= 0)
        (void)dup2(high_cgroup, CGROUP_FD);
    (void)sys_close_range(high_cgroup >= 0 ? CGROUP_FD + 1 : GUEST_FD + 1, ~0U, 0);
    (void)execve(init_path, argv, envp);
    _exit(127);
}

static int make_cgroup(struct guest *guest)
{
    static int count;
    bool is_unified = access("/sys/fs/cgroup/cgroup.controllers", F_OK) == 0;

    (void)snprintf(guest->cgroup, sizeof guest->cgroup, "/sys/fs/cgroup/%shutch-test-%d-%d",
                   is_unified ? "" : "unified/", getpid(), count++);
    if (mkdir(guest->cgroup, 0755) < 0)
        return -1;
    int fd = open(guest->cgroup, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0)
        ignore_result(fd_write_number(fd, "cgroup.max.descendants", DESCENDANTS_MAX));
    return fd;
}

/* Remove the cgroups of commands. How many could not be. */
static size_t remove_groups(const struct guest *guest)
{
    DIR *folder = guest->cgroup[0] != '\0' ? opendir(guest->cgroup) : NULL;
    const struct dirent *entry;
    size_t count = 0;

    while (folder != NULL && (entry = readdir(folder)) != NULL) {
        if (entry->d_type == DT_DIR && entry->d_name[0] != '.' &&
            unlinkat(dirfd(folder), entry->d_name, AT_REMOVEDIR) < 0)
            count++;
    }
    if (folder != NULL)
        (void)closedir(folder);
    return count;
}

static bool is_empty(int folder, const char *name)
{
    char path[300];
    char text[128];

    (void)snprintf(path, sizeof path, "%s/cgroup.events", name);
    return fd_read_file(folder, path, text, sizeof text) > 0 && strstr(text, "populated 0") != NULL;
}

size_t guest_cgroups(const struct guest *guest)
{
    DIR *folder = guest->cgroup[0] != '\0' ? opendir(guest->cgroup) : NULL;
    const struct dirent *entry;
    size_t empty = 0;
    size_t count = 0;

    while (folder != NULL && (entry = readdir(folder)) != NULL) {
        if (entry->d_type == DT_DIR && entry->d_name[0] != '.')
            (*(is_empty(dirfd(folder), entry->d_name) ? &empty : &count))++;
    }
    if (folder != NULL)
        (void)closedir(folder);
    return empty > GROUPS_SPARE ? count + empty - GROUPS_SPARE : count;
}

static void remove_cgroup(const struct guest *guest)
{
    for (int attempt = 0; attempt < 500 && remove_groups(guest) > 0; attempt++)
        (void)usleep(2000);
    for (int attempt = 0; attempt < 500 && guest->cgroup[0] != '\0' && rmdir(guest->cgroup) < 0 && errno == EBUSY;
         attempt++)
        (void)usleep(2000);
}

bool guest_start(struct guest *guest, bool with_cgroup)
{
    int ends[2];

    *guest = (struct guest){.fd = -1, .pid = -1, .state = WIRE_IN_STARTING};
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return false;
    _cleanup_fd_ int cgroup = with_cgroup ? make_cgroup(guest) : -1;
    struct clone_args args = {.flags = CLONE_NEWPID, .exit_signal = SIGCHLD};
    guest->pid = sys_clone3(&args);
    if (guest->pid == 0)
        become_init(ends[1], cgroup);
    (void)close(ends[1]);
    guest->fd = ends[0];
    if (guest->pid < 0 || (with_cgroup && cgroup < 0) || !guest_expect(guest, WIRE_HELLO))
        return false;
    guest->state = WIRE_IN_RUNNING;
    return true;
}

int guest_wait(struct guest *guest)
{
    int status = 0;

    for (int waited_ms = 0; waited_ms < GUEST_WAIT_MS; waited_ms += 2) {
        if (waitpid(guest->pid, &status, WNOHANG) == guest->pid) {
            guest->pid = -1;
            return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        }
        (void)usleep(2000);
    }
    return -1;
}

void guest_end(struct guest *guest)
{
    close_fd(&guest->fd);
    if (guest->pid > 0 && guest_wait(guest) < 0) {
        (void)kill(guest->pid, SIGKILL);
        (void)waitpid(guest->pid, NULL, 0);
    }
    remove_cgroup(guest);
}

/* A link that has ended is found out by who receives. */
void guest_send(const struct guest *guest, const struct wire_message *message)
{
    ignore_result(link_send(guest->fd, message, NULL, 0));
}

void guest_send_raw(const struct guest *guest, const void *data, size_t length)
{
    ignore_result(send(guest->fd, data, length, MSG_NOSIGNAL));
}

void guest_exec(const struct guest *guest, uint64_t channel, uint32_t flags, uint64_t cap, const char *const *words)
{
    char strings[STRINGS_MAX];
    size_t length = (size_t)snprintf(strings, sizeof strings, "%s", payload_path) + 1;
    uint32_t argc = 1;

    for (; *words != NULL && length < sizeof strings; words++, argc++)
        length += (size_t)snprintf(strings + length, sizeof strings - length, "%s", *words) + 1;
    struct wire_message message = {
        .type = WIRE_EXEC,
        .exec = {.channel = channel,
                 .flags = flags,
                 .filter = WIRE_FILTER_STANDARD,
                 .stdout_cap = cap,
                 .stderr_cap = cap,
                 .folder = wire_str("/"),
                 .argc = argc,
                 .strings = {.data = (const uint8_t *)strings, .length = (uint32_t)length}},
    };
    guest_send(guest, &message);
}

void guest_ack(const struct guest *guest, uint64_t channel, uint64_t stdout_offset, uint64_t stderr_offset)
{
    guest_send(guest, &(struct wire_message){.type = WIRE_ACK, .ack = {channel, stdout_offset, stderr_offset}});
}

void guest_resume(const struct guest *guest, uint64_t channel, uint64_t stdout_offset, uint64_t stderr_offset)
{
    guest_send(guest, &(struct wire_message){.type = WIRE_RESUME,
                                             .resume = {channel, stdout_offset, stderr_offset, GUEST_START}});
}

void guest_signal(const struct guest *guest, uint64_t channel, uint32_t number, enum wire_scope scope)
{
    guest_send(guest, &(struct wire_message){.type = WIRE_SIGNAL, .signal = {channel, number, (uint8_t)scope}});
}

void guest_release(const struct guest *guest, uint64_t channel)
{
    guest_send(guest, &(struct wire_message){.type = WIRE_RELEASE, .release = {channel}});
}

void guest_stdin(const struct guest *guest, uint64_t channel, uint64_t offset, const void *data, size_t length,
                 bool end)
{
    struct wire_message message = {
        .type = WIRE_STDIN,
        .stdin_data = {
            .channel = channel, .offset = offset, .end = end, .data = {.data = data, .length = (uint32_t)length}}};

    guest_send(guest, &message);
}

bool guest_has_read(const struct guest *guest)
{
    int unread = 1;

    for (int waited_ms = 0; waited_ms < GUEST_WAIT_MS; waited_ms += 2) {
        if (ioctl(guest->fd, SIOCOUTQ, &unread) < 0 || unread == 0)
            return unread == 0;
        (void)usleep(2000);
    }
    return false;
}

bool guest_receive_within(struct guest *guest, int ms)
{
    struct pollfd ready = {.fd = guest->fd, .events = POLLIN};

    return poll(&ready, 1, ms) == 1 &&
           link_receive(guest->fd, WIRE_BY_GUEST, guest->state, frame, &guest->message, NULL, NULL) == 1;
}

bool guest_expect(struct guest *guest, enum wire_type type)
{
    return guest_receive_within(guest, GUEST_WAIT_MS) && guest->message.type == type;
}

bool guest_is_silent(struct guest *guest)
{
    return !guest_receive_within(guest, SILENCE_MS) && kill(guest->pid, 0) == 0 &&
           waitpid(guest->pid, NULL, WNOHANG) == 0;
}

bool guest_is_alive(struct guest *guest, uint64_t channel)
{
    guest_exec(guest, channel, WIRE_EXEC_COLLECT, 0, (const char *const[]){"exit", "42", NULL});
    bool is_alive = guest_expect(guest, WIRE_EXIT) && guest->message.exit.channel == channel &&
                    guest->message.exit.kind == WIRE_EXIT_CODE && guest->message.exit.value == 42;
    guest_release(guest, channel);
    return is_alive;
}

static bool hear_bytes(struct guest_heard *heard, size_t stream, uint64_t offset, struct wire_bytes data)
{
    if (offset != heard->next[stream])
        return false;
    for (uint32_t i = 0; i < data.length; i++)
        heard->sum[stream] += data.data[i] * (heard->next[stream] + i + 1);
    heard->next[stream] += data.length;
    return true;
}

bool guest_hear(const struct guest *guest, uint64_t channel, struct guest_heard *heard)
{
    const struct wire_message *message = &guest->message;

    if (message->ack.channel != channel)
        return false;
    switch ((int)message->type) {
    case WIRE_STDOUT:
        return hear_bytes(heard, 0, message->stdout_data.offset, message->stdout_data.data);
    case WIRE_STDERR:
        return hear_bytes(heard, 1, message->stderr_data.offset, message->stderr_data.data);
    case WIRE_EXIT:
        heard->ended = true;
        heard->exit = message->exit;
        return hear_bytes(heard, 0, message->exit.stdout_offset, message->exit.stdout_tail) &&
               hear_bytes(heard, 1, message->exit.stderr_offset, message->exit.stderr_tail);
    case WIRE_TAKEN:
    case WIRE_RESUMED:
        return true;
    default:
        return false;
    }
}

bool guest_hear_all(struct guest *guest, uint64_t channel, struct guest_heard *heard)
{
    while (!heard->ended) {
        if (!guest_receive_within(guest, GUEST_WAIT_MS) || !guest_hear(guest, channel, heard))
            return false;
        guest_ack(guest, channel, heard->next[0], heard->next[1]);
    }
    return true;
}

bool guest_ended_with(const struct guest_heard *heard, enum wire_exit_kind kind, uint32_t value)
{
    return heard->ended && heard->exit.kind == kind && heard->exit.value == value;
}

const char *guest_payload(void)
{
    return payload_path;
}

static int failures; /* of this case */

bool guest_check(bool holds, const char *what, int line)
{
    if (!holds && ++failures <= FAILURES_SHOWN)
        printf("# line %d: %s\n", line, what);
    return holds;
}

bool guest_case_failed(void)
{
    return failures > 0;
}

int guest_main(int argc, char **argv, const struct guest_case *cases, size_t count)
{
    int status = 0;

    if (argc < 3 || geteuid() != 0) {
        (void)fprintf(stderr, "usage: %s HUTCH-INIT PAYLOAD, as root\n", argv[0]);
        return 2;
    }
    init_path = argv[1];
    payload_path = argv[2];
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    for (size_t i = 0; i < count; i++) {
        struct guest guest;
        failures = 0;
        if (CHECK(guest_start(&guest, true)))
            cases[i].run(&guest);
        guest_end(&guest);
        printf("%s %zu - %s\n", failures > 0 ? "not ok" : "ok", i + 1, cases[i].name);
        status = failures > 0 ? 1 : status;
    }
    printf("1..%zu\n", count);
    return status;
}
