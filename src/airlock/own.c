#include "airlock/own.h"

#include "base/cleanup.h"

#include <sys/socket.h>

bool own_has(const struct address *address)
{
    struct sockaddr_storage to;
    socklen_t length = address_to_socket(address, 0, &to);
    _cleanup_fd_ int fd = socket(to.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    /* Only an own address can be bound, be it an interface's first, its second or one of a local route. */
    return fd < 0 || bind(fd, (const struct sockaddr *)&to, length) == 0 || errno != EADDRNOTAVAIL;
}
