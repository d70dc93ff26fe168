#include "base/fd.h"

#include "base/cleanup.h"

#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int fd_write_all(int fd, const void *data, size_t length)
{
    const uint8_t *at = data;

    while (length > 0) {
        ssize_t n = write(fd, at, length);
        if (n < 0 && errno == EAGAIN) {
            struct pollfd room = {.fd = fd, .events = POLLOUT};
            (void)poll(&room, 1, -1);
            continue;
        }
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        at += n;
        length -= (size_t)n;
    }
    return 0;
}

ssize_t fd_read_all(int fd, void *data, size_t size)
{
    size_t have = 0;

    while (have < size) {
        ssize_t n = read(fd, (uint8_t *)data + have, size - have);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        if (n == 0)
            break;
        have += (size_t)n;
    }
    return (ssize_t)have;
}

int fd_write_file(int dir, const char *path, const char *text)
{
    size_t length = strlen(text);
    _cleanup_fd_ int fd = openat(dir, path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);

    if (fd < 0)
        return -errno;
    ssize_t n = write(fd, text, length);
    if (n < 0)
        return -errno;
    return (size_t)n == length ? 0 : -EIO;
}

int fd_write_number(int dir, const char *path, unsigned long long number)
{
    char text[24];

    (void)snprintf(text, sizeof text, "%llu", number);
    return fd_write_file(dir, path, text);
}

ssize_t fd_read_file(int dir, const char *path, char *text, size_t size)
{
    _cleanup_fd_ int fd = openat(dir, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

    if (fd < 0)
        return -errno;
    ssize_t n = fd_read_all(fd, text, size);
    if (n < 0)
        return n;
    if ((size_t)n == size)
        return -EFBIG;
    text[n] = '\0';
    return n;
}

int fd_send(int socket, const void *data, size_t length, const int *fds, size_t fd_count)
{
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(int) * FD_PASS_MAX)];
    } control = {0};
    struct iovec part = {.iov_base = (void *)(uintptr_t)data, .iov_len = length};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};

    if (fd_count > FD_PASS_MAX)
        return -EMSGSIZE;
    if (fd_count > 0) {
        message.msg_control = &control;
        message.msg_controllen = (__typeof__(message.msg_controllen))CMSG_SPACE(sizeof(int) * fd_count);
        control.header.cmsg_level = SOL_SOCKET;
        control.header.cmsg_type = SCM_RIGHTS;
        control.header.cmsg_len = (__typeof__(control.header.cmsg_len))CMSG_LEN(sizeof(int) * fd_count);
        memcpy(CMSG_DATA(&control.header), fds, sizeof(int) * fd_count);
    }
    for (;;) {
        ssize_t n = sendmsg(socket, &message, MSG_NOSIGNAL);
        if (n >= 0)
            return (size_t)n == length ? 0 : -EIO;
        if (errno != EINTR)
            return -errno;
    }
}

/* Unix sockets put all descriptors of a packet into one header; we ask for no other kind. */
static size_t take_fds(struct msghdr *message, int *fds)
{
    struct cmsghdr *header = CMSG_FIRSTHDR(message);

    if (header == NULL || header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS)
        return 0;
    size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    if (count > FD_PASS_MAX)
        count = FD_PASS_MAX;
    memcpy(fds, CMSG_DATA(header), count * sizeof(int));
    return count;
}

ssize_t fd_receive(int socket, void *data, size_t size, int *fds, size_t fd_max, size_t *ret_fd_count)
{
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(int) * FD_PASS_MAX)];
    } control;
    int received[FD_PASS_MAX];
    struct iovec part = {.iov_base = data, .iov_len = size};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    ssize_t n;

    do
        n = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return -errno;

    size_t count = take_fds(&message, received);
    if ((message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0 || count > fd_max) {
        fd_close_many(received, count);
        return -EMSGSIZE;
    }
    if (count > 0)
        memcpy(fds, received, count * sizeof(int));
    if (ret_fd_count != NULL)
        *ret_fd_count = count;
    return n;
}

void fd_close_many(int *fds, size_t count)
{
    for (size_t i = 0; i < count; i++)
        close_fd(&fds[i]);
}

int fd_occupy_standard(void)
{
    /* In order: a new descriptor takes the lowest number that is free. */
    for (int wanted = STDIN_FILENO; wanted <= STDERR_FILENO; wanted++) {
        if (fcntl(wanted, F_GETFD) < 0 && open("/dev/null", O_RDWR | O_CLOEXEC) < 0)
            return -errno;
    }
    return 0;
}
