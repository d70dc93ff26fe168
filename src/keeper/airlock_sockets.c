/*
 * Theory of operation. A local route for everything (`local default dev lo`) makes every address one of the sandbox's.
 * The TCP socket listens on the proxy's port of all of them, and an sk_lookup program, which the kernel asks for the
 * socket of each new connection, sends connections to any other port of an address that is not loopback there too.
 * Nothing is translated or tracked: the address that the client wanted is the one that the accepted socket has. UDP
 * needs no program: a question goes to port 53 of some address, and all other datagrams find nobody, which their sender
 * is told at once.
 */
#include "keeper/airlock_sockets.h"

#include "base/cleanup.h"
#include "base/fd.h"
#include "wire/link.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>

enum {
    LOOPBACK = 1, /* the interface's number in every namespace */
    PORT_DNS = 53,
    QUEUE = 1024,
    OPTION_FREEBIND6 = 78,
    OPTION_PKTINFO6 = 49,
};

/* Where the sandbox's own connections come from: what stands for names starts further up. */
static const uint8_t own4[] = {198, 18, 0, 1};
static const uint8_t own6[] = {0xfd, 0x68, 0x75, 0x74, 0x63, 0x68, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};

struct request {
    struct nlmsghdr head;
    union {
        struct ifaddrmsg address;
        struct rtmsg route;
    };
    uint8_t attributes[64];
};

static void add_attribute(struct request *request, unsigned short type, const void *data, size_t length)
{
    size_t at = NLMSG_ALIGN(request->head.nlmsg_len);
    struct rtattr attribute = {.rta_type = type, .rta_len = (unsigned short)RTA_LENGTH(length)};

    memcpy((uint8_t *)request + at, &attribute, sizeof attribute);
    memcpy((uint8_t *)request + at + RTA_LENGTH(0), data, length);
    request->head.nlmsg_len = (uint32_t)(at + RTA_ALIGN(attribute.rta_len));
}

static int ask_kernel(int socket, struct request *request)
{
    struct {
        struct nlmsghdr head;
        struct nlmsgerr error;
        uint8_t rest[256];
    } answer = {0};

    request->head.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE;
    if (send(socket, request, request->head.nlmsg_len, 0) < 0)
        return -errno;
    ssize_t n = recv(socket, &answer, sizeof answer, 0);
    if (n < 0)
        return -errno;
    if ((size_t)n < sizeof answer.head + sizeof answer.error || answer.head.nlmsg_type != NLMSG_ERROR)
        return -EBADMSG;
    return answer.error.error;
}

static int add_address(int socket, unsigned char family, const uint8_t *own, size_t length)
{
    struct request request = {
        .head = {.nlmsg_len = NLMSG_LENGTH(sizeof request.address), .nlmsg_type = RTM_NEWADDR},
        .address = {.ifa_family = family,
                    .ifa_prefixlen = (unsigned char)(length * 8),
                    /* Valid at once: there is nobody to ask whether it is theirs. */
                    .ifa_flags = IFA_F_NODAD,
                    .ifa_index = LOOPBACK},
    };

    add_attribute(&request, IFA_LOCAL, own, length);
    add_attribute(&request, IFA_ADDRESS, own, length);
    return ask_kernel(socket, &request);
}

static int add_route(int socket, unsigned char family, const uint8_t *own, size_t length)
{
    struct request request = {
        .head = {.nlmsg_len = NLMSG_LENGTH(sizeof request.route), .nlmsg_type = RTM_NEWROUTE},
        .route = {.rtm_family = family,
                  .rtm_table = RT_TABLE_LOCAL,
                  .rtm_protocol = RTPROT_STATIC,
                  .rtm_scope = family == AF_INET ? RT_SCOPE_HOST : RT_SCOPE_UNIVERSE,
                  .rtm_type = RTN_LOCAL},
    };

    add_attribute(&request, RTA_OIF, &(uint32_t){LOOPBACK}, sizeof(uint32_t));
    add_attribute(&request, RTA_PREFSRC, own, length);
    return ask_kernel(socket, &request);
}

static int add_routes(bool has_ipv6)
{
    _cleanup_fd_ int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

    if (fd < 0)
        return -errno;
    int r = add_address(fd, AF_INET, own4, sizeof own4);
    if (r == 0)
        r = add_route(fd, AF_INET, own4, sizeof own4);
    if (r == 0 && has_ipv6)
        r = add_address(fd, AF_INET6, own6, sizeof own6);
    if (r == 0 && has_ipv6)
        r = add_route(fd, AF_INET6, own6, sizeof own6);
    return r;
}

/* A socket for both families, or for IPv4 where the machine has no other. */
static int open_socket(int type, uint16_t port, bool has_ipv6, int *ret_fd)
{
    struct sockaddr_in6 any6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
    struct sockaddr_in any4 = {.sin_family = AF_INET, .sin_port = htons(port)};
    const struct sockaddr *any = has_ipv6 ? (const struct sockaddr *)&any6 : (const struct sockaddr *)&any4;
    _cleanup_fd_ int fd = socket(has_ipv6 ? AF_INET6 : AF_INET, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int on = 1;
    int off = 0;

    if (fd < 0 || (has_ipv6 && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off) < 0))
        return -errno;
    if (type == SOCK_DGRAM && has_ipv6 &&
        (setsockopt(fd, IPPROTO_IPV6, OPTION_PKTINFO6, &on, sizeof on) < 0 ||
         setsockopt(fd, IPPROTO_IPV6, OPTION_FREEBIND6, &on, sizeof on) < 0))
        return -errno;
    if (type == SOCK_DGRAM && !has_ipv6 && setsockopt(fd, IPPROTO_IP, IP_PKTINFO, &on, sizeof on) < 0)
        return -errno;
    if (bind(fd, any, has_ipv6 ? sizeof any6 : sizeof any4) < 0 || (type == SOCK_STREAM && listen(fd, QUEUE) < 0))
        return -errno;
    *ret_fd = TAKE_FD(fd);
    return 0;
}

static int call_bpf(int command, union bpf_attr *attributes)
{
    long r = syscall(SYS_bpf, command, attributes, sizeof *attributes);

    return r < 0 ? -errno : (int)r;
}

/* A map with one place: the socket that the program hands connections to. */
static int make_map(int tcp_fd)
{
    union bpf_attr map = {.map_type = BPF_MAP_TYPE_SOCKMAP,
                          .key_size = sizeof(uint32_t),
                          .value_size = sizeof(uint64_t),
                          .max_entries = 1};
    uint32_t key = 0;
    uint64_t value = (uint64_t)tcp_fd;
    _cleanup_fd_ int fd = call_bpf(BPF_MAP_CREATE, &map);

    if (fd < 0)
        return fd;
    union bpf_attr entry = {.map_fd = (uint32_t)fd, .key = (uintptr_t)&key, .value = (uintptr_t)&value};
    int r = call_bpf(BPF_MAP_UPDATE_ELEM, &entry);
    return r < 0 ? r : TAKE_FD(fd);
}

#define FIELD(name) ((short)offsetof(struct bpf_sk_lookup, name))
#define LOAD(register, name)                                                                                           \
    {                                                                                                                  \
        .code = BPF_LDX | BPF_MEM | BPF_W, .dst_reg = (register), .src_reg = BPF_REG_6, .off = FIELD(name)             \
    }
#define MOVE(to, from)                                                                                                 \
    {                                                                                                                  \
        .code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = (to), .src_reg = (from)                                        \
    }
#define SET(to, value)                                                                                                 \
    {                                                                                                                  \
        .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = (to), .imm = (value)                                           \
    }
#define JUMP(condition, register, value, by)                                                                           \
    {                                                                                                                  \
        .code = BPF_JMP32 | (condition) | BPF_K, .dst_reg = (register), .off = (by), .imm = (int)(value)               \
    }
#define CALL(function)                                                                                                 \
    {                                                                                                                  \
        .code = BPF_JMP | BPF_CALL, .imm = (function)                                                                  \
    }

/* Where the parts of the program start. A jump counts from the instruction behind it. */
enum { AT_IPV6 = 9, AT_SOCKET = 17, AT_PASS = 31 };

/* TCP to an address that is not loopback goes to the socket in the map; the rest goes its usual way. */
static int load_program(int map_fd)
{
    const struct bpf_insn program[] = {
        [0] = MOVE(BPF_REG_6, BPF_REG_1),
        [1] = LOAD(BPF_REG_2, protocol),
        [2] = JUMP(BPF_JNE, BPF_REG_2, IPPROTO_TCP, AT_PASS - 3),
        [3] = LOAD(BPF_REG_2, family),
        [4] = JUMP(BPF_JEQ, BPF_REG_2, AF_INET6, AT_IPV6 - 5),
        /* 127.0.0.0/8 */
        [5] = LOAD(BPF_REG_2, local_ip4),
        [6] = {.code = BPF_ALU | BPF_AND | BPF_K, .dst_reg = BPF_REG_2, .imm = (int)htonl(0xff000000)},
        [7] = JUMP(BPF_JEQ, BPF_REG_2, htonl(0x7f000000), AT_PASS - 8),
        [8] = {.code = BPF_JMP | BPF_JA, .off = AT_SOCKET - 9},
        /* ::1 */
        [AT_IPV6] = LOAD(BPF_REG_2, local_ip6[0]),
        [10] = LOAD(BPF_REG_3, local_ip6[1]),
        [11] = {.code = BPF_ALU | BPF_OR | BPF_X, .dst_reg = BPF_REG_2, .src_reg = BPF_REG_3},
        [12] = LOAD(BPF_REG_3, local_ip6[2]),
        [13] = {.code = BPF_ALU | BPF_OR | BPF_X, .dst_reg = BPF_REG_2, .src_reg = BPF_REG_3},
        [14] = JUMP(BPF_JNE, BPF_REG_2, 0, AT_SOCKET - 15),
        [15] = LOAD(BPF_REG_2, local_ip6[3]),
        [16] = JUMP(BPF_JEQ, BPF_REG_2, htonl(1), AT_PASS - 17),
        [AT_SOCKET] = {.code = BPF_ST | BPF_MEM | BPF_W, .dst_reg = BPF_REG_10, .off = -4},
        [18] = MOVE(BPF_REG_2, BPF_REG_10),
        [19] = {.code = BPF_ALU64 | BPF_ADD | BPF_K, .dst_reg = BPF_REG_2, .imm = -4},
        [20] = {.code = BPF_LD | BPF_DW | BPF_IMM, .dst_reg = BPF_REG_1, .src_reg = BPF_PSEUDO_MAP_FD, .imm = map_fd},
        [22] = CALL(BPF_FUNC_map_lookup_elem),
        [23] = {.code = BPF_JMP | BPF_JEQ | BPF_K, .dst_reg = BPF_REG_0, .off = AT_PASS - 24},
        [24] = MOVE(BPF_REG_7, BPF_REG_0),
        [25] = MOVE(BPF_REG_1, BPF_REG_6),
        [26] = MOVE(BPF_REG_2, BPF_REG_7),
        [27] = SET(BPF_REG_3, 0),
        [28] = CALL(BPF_FUNC_sk_assign),
        [29] = MOVE(BPF_REG_1, BPF_REG_7),
        [30] = CALL(BPF_FUNC_sk_release),
        [AT_PASS] = SET(BPF_REG_0, SK_PASS),
        [32] = {.code = BPF_JMP | BPF_EXIT},
    };
    union bpf_attr attributes = {.prog_type = BPF_PROG_TYPE_SK_LOOKUP,
                                 .expected_attach_type = BPF_SK_LOOKUP,
                                 .insns = (uintptr_t)program,
                                 .insn_cnt = sizeof program / sizeof *program,
                                 .license = (uintptr_t) "Apache-2.0"};

    return call_bpf(BPF_PROG_LOAD, &attributes);
}

/* The link is what keeps the program there. */
static int steer(int tcp_fd, int *ret_link_fd)
{
    _cleanup_fd_ int namespace = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    _cleanup_fd_ int map = namespace >= 0 ? make_map(tcp_fd) : -errno;
    _cleanup_fd_ int program = map >= 0 ? load_program(map) : map;

    if (program < 0)
        return program;
    union bpf_attr attributes = {
        .link_create = {.prog_fd = (uint32_t)program, .target_fd = (uint32_t) namespace, .attach_type = BPF_SK_LOOKUP}};
    int r = call_bpf(BPF_LINK_CREATE, &attributes);
    if (r < 0)
        return r;
    *ret_link_fd = r;
    return 0;
}

static bool can_ipv6(void)
{
    _cleanup_fd_ int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    return fd >= 0;
}

int airlock_sockets_plug(int airlock_fd, uint64_t sandbox)
{
    struct wire_message message = {.type = WIRE_PLUG, .plug = {.sandbox = sandbox}};
    int fds[] = {-1, -1, -1};
    bool has_ipv6 = can_ipv6();
    int r = add_routes(has_ipv6);

    if (r == 0)
        r = open_socket(SOCK_STREAM, WIRE_PROXY_PORT, has_ipv6, &fds[0]);
    if (r == 0)
        r = open_socket(SOCK_DGRAM, PORT_DNS, has_ipv6, &fds[1]);
    if (r == 0)
        r = steer(fds[0], &fds[2]);
    if (r == 0)
        r = link_send(airlock_fd, &message, fds, 3);
    fd_close_many(fds, 3);
    return r;
}
