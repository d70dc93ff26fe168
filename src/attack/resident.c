#include "attack/resident.h"

#include "attack/attempt.h"
#include "base/cleanup.h"
#include "base/fd.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define SECRET "the neighbour's"
#define SHARED_FILE "/usr/bin/env"

enum { NAME_SIZE = 160, MEMORY_SIZE = 4096 };

struct resident {
    int tcp_fd;
    int abstract_fd;
    int path_fd;
    int shared_memory;
    int messages; /* a System V queue */
    int lock_fd;
    mqd_t queue;
    char file[NAME_SIZE]; /* in /tmp */
    char shm[NAME_SIZE];  /* in /dev/shm */
};

static int listen_unix(const struct sockaddr_un *address, size_t length)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0 ||
        bind(fd, (const struct sockaddr *)address, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length)) < 0 ||
        listen(fd, 1) < 0)
        return -1;
    return fd;
}

static int make_sockets(struct resident *resident, const char *name)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)attempt_canary_number("PORT")),
                                  .sin_addr = {htonl(INADDR_ANY)}};
    struct sockaddr_un abstract = {.sun_family = AF_UNIX};
    struct sockaddr_un path = {.sun_family = AF_UNIX};

    (void)snprintf(abstract.sun_path + 1, sizeof abstract.sun_path - 1, "%s", name);
    (void)snprintf(path.sun_path, sizeof path.sun_path, "/run/%s", name);
    resident->abstract_fd = listen_unix(&abstract, 1 + strlen(name));
    resident->path_fd = listen_unix(&path, strlen(path.sun_path) + 1);
    resident->tcp_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (resident->abstract_fd < 0 || resident->path_fd < 0 || resident->tcp_fd < 0 ||
        bind(resident->tcp_fd, (struct sockaddr *)&address, sizeof address) < 0 || listen(resident->tcp_fd, 1) < 0)
        return -errno;
    return 0;
}

static int make_memory(struct resident *resident, const char *name)
{
    key_t key = (key_t)attempt_canary_number("KEY");
    char queue[NAME_SIZE];
    struct {
        long type;
        char text[sizeof SECRET];
    } message = {1, SECRET};

    resident->shared_memory = shmget(key, MEMORY_SIZE, IPC_CREAT | IPC_EXCL | 0666);
    resident->messages = msgget(key, IPC_CREAT | IPC_EXCL | 0666);
    if (resident->shared_memory < 0 || resident->messages < 0 ||
        msgsnd(resident->messages, &message, sizeof message.text, 0) < 0)
        return -errno;
    void *memory = shmat(resident->shared_memory, NULL, 0);
    if ((intptr_t)memory == -1)
        return -errno;
    memcpy(memory, SECRET, sizeof SECRET);
    (void)snprintf(queue, sizeof queue, "/%s", name);
    resident->queue = mq_open(queue, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666, NULL);
    if (resident->queue == (mqd_t)-1 || mq_send(resident->queue, SECRET, sizeof SECRET, 0) < 0)
        return -errno;
    return shmdt(memory) < 0 ? -errno : 0;
}

static int make_file(const char *path)
{
    _cleanup_fd_ int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);

    if (fd < 0 || fchmod(fd, 0666) < 0)
        return -errno;
    return fd_write_all(fd, SECRET, sizeof SECRET - 1);
}

static int make_files(struct resident *resident, const char *name)
{
    (void)snprintf(resident->file, sizeof resident->file, "/tmp/%s", name);
    (void)snprintf(resident->shm, sizeof resident->shm, "/dev/shm/%s", name);
    resident->lock_fd = open(SHARED_FILE, O_RDONLY | O_CLOEXEC);
    if (resident->lock_fd < 0 || flock(resident->lock_fd, LOCK_EX | LOCK_NB) < 0)
        return -errno;
    int r = make_file(resident->file);
    return r < 0 ? r : make_file(resident->shm);
}

static bool is_quiet(int listener)
{
    int fd = accept(listener, NULL, NULL);

    if (fd >= 0)
        (void)close(fd);
    return fd < 0;
}

static bool has_secret(const char *path)
{
    char text[64];

    return fd_read_file(AT_FDCWD, path, text, sizeof text) >= 0 && strcmp(text, SECRET) == 0;
}

static bool is_memory_whole(const struct resident *resident)
{
    struct shmid_ds state;
    struct msqid_ds queue;
    struct mq_attr attributes;

    return shmctl(resident->shared_memory, IPC_STAT, &state) == 0 && state.shm_lpid == getpid() &&
           msgctl(resident->messages, IPC_STAT, &queue) == 0 && queue.msg_qnum == 1 &&
           mq_getattr(resident->queue, &attributes) == 0 && attributes.mq_curmsgs == 1;
}

/* What everyday programs need, and what a neighbour could have used up. */
static const char *lacks(void)
{
    _cleanup_fd_ int file = open("/tmp/everyday", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    _cleanup_fd_ int watch = inotify_init1(IN_CLOEXEC);
    _cleanup_fd_ int shared = open(SHARED_FILE, O_RDONLY | O_CLOEXEC);
    char byte;

    if (file < 0 || write(file, "x", 1) != 1)
        return "the neighbour can't write a file any more";
    if (watch < 0)
        return "the neighbour can't watch files any more";
    return shared < 0 || read(shared, &byte, 1) != 1 ? "the neighbour can't read /usr any more" : NULL;
}

static const char *harm_of(const struct resident *resident)
{
    if (!is_quiet(resident->tcp_fd) || !is_quiet(resident->abstract_fd) || !is_quiet(resident->path_fd))
        return "a socket of the neighbour's was reached";
    if (!is_memory_whole(resident))
        return "shared memory or a message queue of the neighbour's was reached";
    if (!has_secret(resident->file) || !has_secret(resident->shm))
        return "a file of the neighbour's was changed";
    return lacks();
}

int resident_live(void)
{
    struct resident resident = {0};
    const char *name = attempt_canary("NAME");
    char line[16];
    int r = make_sockets(&resident, name);

    if (r == 0)
        r = make_memory(&resident, name);
    if (r == 0)
        r = make_files(&resident, name);
    if (r < 0) {
        printf("the neighbour could not set up: %s\n", strerror(-r));
        return 1;
    }
    while (fgets(line, sizeof line, stdin) != NULL) {
        const char *harm = harm_of(&resident);
        printf("%s\n", harm != NULL ? harm : "well");
        (void)fflush(stdout);
    }
    return 0;
}
