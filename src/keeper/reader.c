#include "keeper/reader.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/sys.h"
#include "wire/link.h"

#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define MS_NS UINT64_C(1000000)

enum { CONFIG_BYTES_MAX = 131072, CPU_SECONDS = 10, PROCESSES_MAX = 4, END_MS = 1000 };

int reader_copy_file(int file_fd, const char *what, int *ret_fd, struct error *err)
{
    static char text[CONFIG_BYTES_MAX + 1]; /* too much for the stack, and there is one thread */
    _cleanup_fd_ int fd = memfd_create("hutch", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    if (fd < 0)
        return error_errno(err, "reading %s", what);
    ssize_t n = file_fd >= 0 ? fd_read_all(file_fd, text, sizeof text) : 0;
    int r = n < 0 ? (int)n : n > CONFIG_BYTES_MAX ? -EFBIG : fd_write_all(fd, text, (size_t)n);
    explicit_bzero(text, sizeof text); /* it may be a key */
    if (r == -EFBIG)
        return error_set(err, ERROR_INVALID, EFBIG, "%s is larger than %d KiB", what, CONFIG_BYTES_MAX / 1024);
    if (r < 0)
        return error_set(err, ERROR_SYSTEM, -r, "reading %s", what);
    if (lseek(fd, 0, SEEK_SET) < 0 ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) < 0)
        return error_errno(err, "sealing %s", what);
    *ret_fd = TAKE_FD(fd);
    return 0;
}

int reader_start(struct reader *reader, const struct reader_plan *plan, int config_fd, struct error *err)
{
    static char program[] = "hutch-gateway";
    static char verb[] = "--read-config";
    /* Nobody writes to it; execve only forgot the const. */
    char *argv[] = {program, verb, (char *)(uintptr_t)plan->file, NULL};
    _cleanup_fd_ int error_fd = -1;
    int ends[2];

    /* From its start: others may have read it before. */
    if (lseek(config_fd, 0, SEEK_SET) < 0 || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return error_errno(err, "starting the reader");
    int r = relay_open(&reader->relay, "config", STDERR_FILENO, &error_fd, err);
    struct service service = {
        .user = plan->user,
        .program_fd = plan->program_fd,
        .argv = argv,
        .environment = plan->environment,
        .input_fd = config_fd,
        .error_fd = error_fd,
        .fds = {ends[1]},
        .fd_count = 1,
        .state_fd = -1,
        .cpu_max = CPU_SECONDS,
        .process_max = PROCESSES_MAX,
    };
    if (r == 0)
        r = service_start(&service, &reader->pidfd, err);
    (void)close(ends[1]);
    if (r < 0) {
        (void)close(ends[0]);
        close_fd(&error_fd);
        relay_finish(&reader->relay);
        return r;
    }
    reader->socket = ends[0];
    reader->deadline_ns = clock_now_ns() + READER_LIMIT_MS * MS_NS;
    return 0;
}

void reader_end(struct reader *reader)
{
    close_fd(&reader->socket);
    (void)service_end(&reader->pidfd, 0);
    relay_finish(&reader->relay);
}

int reader_take(struct reader *reader, uint8_t *frame, struct wire_message *ret_message, struct error *err)
{
    struct pollfd answer = {.fd = reader->socket, .events = POLLIN};
    int r = 0;

    if (poll(&answer, 1, 0) < 1)
        r = error_set(err, ERROR_SYSTEM, ETIMEDOUT, "waiting for the reader of the configuration");
    else
        r = link_receive(reader->socket, WIRE_BY_READER, WIRE_IN_STARTING, frame, ret_message, NULL, NULL);
    close_fd(&reader->socket);
    /* One that has ended without an answer has said why. */
    bool ended = r == 0;
    int status = service_end(&reader->pidfd, ended ? END_MS : 0);
    relay_finish(&reader->relay);
    if (r > 0)
        return 0;
    if (ended && WIFEXITED(status))
        return error_set(err, ERROR_INVALID, 0, "the configuration is not in order; see above");
    if (ended)
        return error_set(err, ERROR_SYSTEM, EPIPE, "the reader of the configuration was ended by signal %d",
                         WTERMSIG(status));
    return err->message[0] != '\0' ? r : error_set(err, ERROR_PROTOCOL, -r, "hearing from the reader");
}

/* What it says on a pipe, and its status. */
static int hear_verdict(int fd, int *pidfd, struct error *err)
{
    char text[ERROR_MESSAGE_MAX - 64];
    struct pollfd ready = {.fd = fd, .events = POLLIN};
    uint64_t until_ns = clock_now_ns() + READER_LIMIT_MS * MS_NS;
    uint64_t now_ns = 0;
    size_t have = 0;

    /* One limit for all of it: who sends a byte now and then gains nothing. */
    while (have < sizeof text - 1 && (now_ns = clock_now_ns()) < until_ns) {
        if (poll(&ready, 1, (int)((until_ns - now_ns) / MS_NS) + 1) < 1)
            continue;
        ssize_t n = read(fd, text + have, sizeof text - 1 - have);
        if (n <= 0)
            break;
        have += (size_t)n;
    }
    text[have] = '\0';
    bool good = service_end(pidfd, END_MS) == 0;
    text[strcspn(text, "\n")] = '\0';
    if (now_ns >= until_ns)
        return error_set(err, ERROR_SYSTEM, ETIMEDOUT, "checking the certificate");
    return good ? 0
                : error_set(err, ERROR_INVALID, 0, "%s",
                            have > 0 ? text : "checking the certificate: the checker ended without a word");
}

int reader_check_certificate(const struct reader_plan *plan, int certificate_fd, int key_fd, struct error *err)
{
    static char program[] = "hutch-gateway";
    static char verb[] = "--check-certificate";
    char *argv[] = {program, verb, NULL};
    struct relay relay = RELAY_EMPTY;
    _cleanup_fd_ int error_fd = -1;
    int pidfd = -1;
    int ends[2];

    if (lseek(certificate_fd, 0, SEEK_SET) < 0 || lseek(key_fd, 0, SEEK_SET) < 0)
        return error_errno(err, "reading the certificate");
    if (pipe2(ends, O_CLOEXEC) < 0)
        return error_errno(err, "checking the certificate");
    int r = relay_open(&relay, "certificate", STDERR_FILENO, &error_fd, err);
    struct service service = {
        .user = plan->user,
        .program_fd = plan->program_fd,
        .argv = argv,
        .environment = plan->environment,
        .input_fd = -1,
        .error_fd = error_fd,
        .fds = {ends[1], certificate_fd, key_fd},
        .fd_count = 3,
        .state_fd = -1,
        .cpu_max = CPU_SECONDS,
        .process_max = PROCESSES_MAX,
    };
    if (r == 0)
        r = service_start(&service, &pidfd, err);
    close_fd(&ends[1]);
    close_fd(&error_fd);
    if (r == 0)
        r = hear_verdict(ends[0], &pidfd, err);
    close_fd(&ends[0]);
    relay_finish(&relay);
    return r;
}
