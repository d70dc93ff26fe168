#include "keeper/listener.h"

#include "base/cleanup.h"
#include "base/parse.h"

#include <arpa/inet.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

enum { BACKLOG = 4096, SOCKET_MODE = 0660 };

union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    struct sockaddr_un local;
};

static int parse(const char *text, union address *ret_address, socklen_t *ret_length)
{
    char host[LISTENER_NAME_SIZE];
    const char *colon = strrchr(text, ':');
    uint64_t port;

    if (colon == NULL || (size_t)(colon - text) >= sizeof host || parse_u64(colon + 1, &port) < 0 || port > UINT16_MAX)
        return -EINVAL;
    *ret_address = (union address){0};
    bool is_v6 = text[0] == '[' && colon > text + 1 && colon[-1] == ']';
    (void)snprintf(host, sizeof host, "%.*s", (int)(colon - text) - (is_v6 ? 2 : 0), text + (is_v6 ? 1 : 0));
    if (is_v6) {
        ret_address->v6.sin6_family = AF_INET6;
        ret_address->v6.sin6_port = htons((uint16_t)port);
        *ret_length = sizeof ret_address->v6;
        return inet_pton(AF_INET6, host, &ret_address->v6.sin6_addr) == 1 ? 0 : -EINVAL;
    }
    ret_address->v4.sin_family = AF_INET;
    ret_address->v4.sin_port = htons((uint16_t)port);
    *ret_length = sizeof ret_address->v4;
    return inet_pton(AF_INET, host, &ret_address->v4.sin_addr) == 1 ? 0 : -EINVAL;
}

int listener_open(const char *address, int *ret_fd, struct error *err)
{
    union address to;
    socklen_t length;

    if (parse(address, &to, &length) < 0)
        return error_set(err, ERROR_PROTOCOL, EBADMSG, "the reader's answer has a bad address");
    _cleanup_fd_ int fd = socket(to.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return error_errno(err, "listening on %s", address);
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int)) < 0 ||
        (to.any.sa_family == AF_INET6 && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &(int){1}, sizeof(int)) < 0))
        return error_errno(err, "listening on %s", address);
    if (bind(fd, &to.any, length) < 0 || listen(fd, BACKLOG) < 0) {
        if (errno == EADDRINUSE)
            return error_set(
                err, ERROR_SYSTEM, EADDRINUSE,
                "listening on %s: another program does (ss -ltnp shows which); set server.listen or --listen", address);
        return error_errno(err, "listening on %s", address);
    }
    *ret_fd = TAKE_FD(fd);
    return 0;
}

/* A file that a daemon left when it was killed is nobody's. */
static int remove_old(const struct sockaddr_un *to, struct error *err)
{
    struct stat st;
    _cleanup_fd_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0)
        return error_errno(err, "listening on %s", to->sun_path);
    if (lstat(to->sun_path, &st) < 0)
        return errno == ENOENT ? 0 : error_errno(err, "listening on %s", to->sun_path);
    if (!S_ISSOCK(st.st_mode))
        return error_set(err, ERROR_INVALID, EEXIST,
                         "listening on %s: this is no socket; remove it or set "
                         "server.unix_socket",
                         to->sun_path);
    if (connect(fd, (const struct sockaddr *)to, sizeof *to) == 0 || errno != ECONNREFUSED)
        return error_set(err, ERROR_SYSTEM, EADDRINUSE, "listening on %s: another program does; set server.unix_socket",
                         to->sun_path);
    return unlink(to->sun_path) < 0 ? error_errno(err, "removing the old %s", to->sun_path) : 0;
}

int listener_open_unix(const char *path, gid_t group, int *ret_fd, struct error *err)
{
    union address to = {.local = {.sun_family = AF_UNIX}};
    _cleanup_fd_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0 || strlen(path) >= sizeof to.local.sun_path || path[0] != '/')
        return error_set(err, ERROR_INVALID, fd < 0 ? errno : ENAMETOOLONG, "listening on %.200s", path);
    (void)snprintf(to.local.sun_path, sizeof to.local.sun_path, "%s", path);
    int r = remove_old(&to.local, err);
    if (r < 0)
        return r;
    mode_t before = umask(0177);
    int bound = bind(fd, &to.any, sizeof to.local);
    (void)umask(before);
    if (bound < 0 || lchown(path, 0, group) < 0 || chmod(path, SOCKET_MODE) < 0 || listen(fd, BACKLOG) < 0)
        return error_errno(err, "listening on %s", path);
    *ret_fd = TAKE_FD(fd);
    return 0;
}

void listener_describe(int fd, char *text, size_t size)
{
    union address at = {0};
    socklen_t length = sizeof at;
    char host[INET6_ADDRSTRLEN] = "";

    text[0] = '\0';
    if (getsockname(fd, &at.any, &length) < 0)
        return;
    if (at.any.sa_family == AF_INET && inet_ntop(AF_INET, &at.v4.sin_addr, host, sizeof host) != NULL)
        (void)snprintf(text, size, "%s:%u", host, ntohs(at.v4.sin_port));
    if (at.any.sa_family == AF_INET6 && inet_ntop(AF_INET6, &at.v6.sin6_addr, host, sizeof host) != NULL)
        (void)snprintf(text, size, "[%s]:%u", host, ntohs(at.v6.sin6_port));
    if (at.any.sa_family == AF_UNIX)
        (void)snprintf(text, size, "%s", at.local.sun_path);
}
