#include "gateway/net/peer.h"

#include <arpa/inet.h>
#include <string.h>
#include <sys/socket.h>

static int get_credentials(int fd, struct peer *peer)
{
    struct ucred credentials;
    socklen_t length = sizeof credentials;

    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &length) < 0)
        return -errno;
    peer->kind = PEER_UNIX;
    peer->pid = credentials.pid;
    peer->uid = credentials.uid;
    peer->gid = credentials.gid;
    return 0;
}

static void set_v4(struct peer *peer, const void *address, in_port_t port)
{
    (void)inet_ntop(AF_INET, address, peer->address, sizeof peer->address);
    peer->port = ntohs(port);
}

static void set_v6(struct peer *peer, const struct sockaddr_in6 *address)
{
    if (IN6_IS_ADDR_V4MAPPED(&address->sin6_addr)) {
        set_v4(peer, &address->sin6_addr.s6_addr[12], address->sin6_port);
        return;
    }
    (void)inet_ntop(AF_INET6, &address->sin6_addr, peer->address, sizeof peer->address);
    peer->port = ntohs(address->sin6_port);
}

int peer_get(int fd, struct peer *ret_peer)
{
    struct sockaddr_storage address = {0};
    socklen_t length = sizeof address;
    struct peer peer = {.kind = PEER_TCP, .uid = (uid_t)-1, .gid = (gid_t)-1};
    int r = 0;

    if (getpeername(fd, (struct sockaddr *)&address, &length) < 0)
        return -errno;
    if (address.ss_family == AF_UNIX)
        r = get_credentials(fd, &peer);
    else if (address.ss_family == AF_INET)
        set_v4(&peer, &((struct sockaddr_in *)&address)->sin_addr, ((struct sockaddr_in *)&address)->sin_port);
    else if (address.ss_family == AF_INET6)
        set_v6(&peer, (struct sockaddr_in6 *)&address);
    else
        r = -EAFNOSUPPORT;
    if (r == 0)
        *ret_peer = peer;
    return r;
}
