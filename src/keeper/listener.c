#include "keeper/listener.h"

#include "base/cleanup.h"
#include "base/parse.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
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

/* What a gateway could set on it, to the harm of the next one; numbers or nothing. */
static const struct {
    int level;
    int option;
} settables[] = {
    {SOL_SOCKET, SO_GET_FILTER},      {SOL_SOCKET, SO_LOCK_FILTER},
    {SOL_SOCKET, SO_BINDTODEVICE},    {SOL_SOCKET, SO_DONTROUTE},
    {SOL_SOCKET, SO_RCVBUF},          {SOL_SOCKET, SO_SNDBUF},
    {SOL_SOCKET, SO_RCVLOWAT},        {SOL_SOCKET, SO_MARK},
    {SOL_SOCKET, SO_MAX_PACING_RATE}, {SOL_SOCKET, SO_KEEPALIVE},
    {SOL_SOCKET, SO_BUSY_POLL},       {IPPROTO_IP, IP_TTL},
    {IPPROTO_IP, IP_MINTTL},          {IPPROTO_IP, IP_TOS},
    {IPPROTO_IP, IP_MTU_DISCOVER},    {IPPROTO_IPV6, IPV6_UNICAST_HOPS},
    {IPPROTO_IPV6, IPV6_MINHOPCOUNT}, {IPPROTO_IPV6, IPV6_MTU_DISCOVER},
    {IPPROTO_TCP, TCP_DEFER_ACCEPT},  {IPPROTO_TCP, TCP_MAXSEG},
    {IPPROTO_TCP, TCP_WINDOW_CLAMP},  {IPPROTO_TCP, TCP_USER_TIMEOUT},
    {IPPROTO_TCP, TCP_SYNCNT},        {IPPROTO_TCP, TCP_FASTOPEN},
    {IPPROTO_TCP, TCP_ULP},
};

enum { SETTABLE_SIZE = 64 };

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

/* Also where neither has such an option. */
static bool is_alike(int fd, int fresh, int level, int option)
{
    char value[2][SETTABLE_SIZE] = {{0}};
    socklen_t length[2] = {option == SO_GET_FILTER ? 0 : SETTABLE_SIZE, option == SO_GET_FILTER ? 0 : SETTABLE_SIZE};
    int r = getsockopt(fd, level, option, value[0], &length[0]) < 0 ? -errno : 0;
    int expected = getsockopt(fresh, level, option, value[1], &length[1]) < 0 ? -errno : 0;

    return r == expected && length[0] == length[1] && memcmp(value[0], value[1], SETTABLE_SIZE) == 0;
}

/* A unix socket that was shut down still says that it accepts. */
static bool is_shut_down(int fd)
{
    struct pollfd end = {.fd = fd, .events = POLLRDHUP};

    return poll(&end, 1, 0) != 0;
}

bool listener_is_sound(int fd, const char *address)
{
    char now[LISTENER_PATH_SIZE];
    int family = 0;
    int accepts = 0;

    if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &accepts, &(socklen_t){sizeof accepts}) < 0 || accepts == 0 ||
        getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &(socklen_t){sizeof family}) < 0)
        return false;
    listener_describe(fd, now, sizeof now);
    _cleanup_fd_ int fresh = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fresh < 0 || strcmp(now, address) != 0 || is_shut_down(fd))
        return false;
    for (size_t i = 0; i < sizeof settables / sizeof *settables; i++) {
        if (!is_alike(fd, fresh, settables[i].level, settables[i].option))
            return false;
    }
    /* How many may wait can be said anew. */
    return listen(fd, BACKLOG) == 0;
}
