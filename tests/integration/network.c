/*
 * network: what a sandbox can reach: itself, and nothing else.
 */
#include "payload.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

static socklen_t set_address(union address *address, const char *text, uint16_t port)
{
    memset(address, 0, sizeof *address);
    if (inet_pton(AF_INET, text, &address->v4.sin_addr) == 1) {
        address->v4.sin_family = AF_INET;
        address->v4.sin_port = htons(port);
        return sizeof address->v4;
    }
    address->v6.sin6_family = AF_INET6;
    address->v6.sin6_port = htons(port);
    return inet_pton(AF_INET6, text, &address->v6.sin6_addr) == 1 ? (socklen_t)sizeof address->v6 : 0;
}

/* 0 or errno. The client is its own server: connecting needs no accept. */
static int greet(const char *text)
{
    union address address;
    socklen_t length = set_address(&address, text, 0);
    char got[6] = "";
    int server = socket(address.any.sa_family, SOCK_STREAM, 0);
    int client = socket(address.any.sa_family, SOCK_STREAM, 0);

    if (server < 0 || client < 0 || bind(server, &address.any, length) < 0 || listen(server, 1) < 0 ||
        getsockname(server, &address.any, &length) < 0 || connect(client, &address.any, length) < 0)
        return errno;
    int peer = accept(server, NULL, NULL);
    if (peer < 0 || send(client, "hello", 5, 0) != 5 || recv(peer, got, 5, MSG_WAITALL) != 5)
        return errno;
    return strcmp(got, "hello") == 0 ? 0 : EIO;
}

int payload_loopback(char **argv)
{
    (void)argv;
    printf("ipv4 %d\n", greet("127.0.0.1"));
    printf("ipv6 %d\n", greet("::1"));
    return 0;
}

int payload_connect(char **argv)
{
    union address address;
    socklen_t length = set_address(&address, argv[0], (uint16_t)strtoul(argv[1], NULL, 10));
    int fd = socket(address.any.sa_family, SOCK_STREAM, 0);

    printf("connect %d\n", fd < 0 || connect(fd, &address.any, length) < 0 ? errno : 0);
    return 0;
}

int payload_abstract(char **argv)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);

    /* Its name is the whole array, zeros included. */
    (void)snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "%s", argv[0]);
    printf("connect %d\n", fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) < 0 ? errno : 0);
    return 0;
}
