/*
 * peer: who is at the other end of a connection.
 */
#pragma once

#include "base/error.h"

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum peer_kind {
    PEER_TCP,
    PEER_UNIX,
};

struct peer {
    enum peer_kind kind;
    bool is_tls;
    /* of a TCP peer; an IPv4 address mapped into IPv6 is written as IPv4 */
    char address[INET6_ADDRSTRLEN];
    uint16_t port;
    /* of a unix socket's peer, as it was when it connected (SO_PEERCRED) */
    pid_t pid;
    uid_t uid;
    gid_t gid;
};

/* From a connected socket. 0 or -errno. */
_must_use_ int peer_get(int fd, struct peer *ret_peer);
