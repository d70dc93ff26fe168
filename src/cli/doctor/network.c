#include "base/cleanup.h"
#include "base/sys.h"
#include "cli/doctor/probes.h"

#include <linux/bpf.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

enum { ANSWER_LIMIT_MS = 2000 };

/* "Let everything pass", which is enough to see whether such programs are taken. */
void probe_sk_lookup(struct probe *probe)
{
    static const struct bpf_insn program[] = {
        {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = SK_PASS},
        {.code = BPF_JMP | BPF_EXIT},
    };
    union bpf_attr attr;

    memset(&attr, 0, sizeof attr);
    attr.prog_type = BPF_PROG_TYPE_SK_LOOKUP;
    attr.expected_attach_type = BPF_SK_LOOKUP;
    attr.insns = (uintptr_t)program;
    attr.insn_cnt = sizeof program / sizeof *program;
    attr.license = (uintptr_t) "Apache-2.0";
    _cleanup_fd_ int fd = (int)syscall(SYS_bpf, BPF_PROG_LOAD, &attr, sizeof attr);
    if (fd < 0)
        finding_no(probe, errno, "loading a BPF program of this kind");
    else
        finding_yes(probe, "a BPF program of this kind was loaded");
}

/* Ask for the generation of the rule set, which every nf_tables has. 0 or -errno. */
static int ask_nftables(int fd)
{
    struct {
        struct nlmsghdr header;
        struct nfgenmsg general;
    } request = {
        .header = {.nlmsg_len = sizeof request,
                   .nlmsg_type = NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_GETGEN,
                   .nlmsg_flags = NLM_F_REQUEST},
        .general = {.nfgen_family = AF_UNSPEC, .version = NFNETLINK_V0},
    };
    struct {
        struct nlmsghdr header;
        struct nlmsgerr error;
        char rest[1024];
    } answer = {.error = {.error = 0}};
    struct pollfd ready = {.fd = fd, .events = POLLIN};

    if (send(fd, &request, sizeof request, 0) < 0)
        return -errno;
    if (poll(&ready, 1, ANSWER_LIMIT_MS) != 1)
        return -ETIMEDOUT;
    ssize_t n = recv(fd, &answer, sizeof answer, 0);
    if (n < (ssize_t)sizeof answer.header)
        return n < 0 ? -errno : -EBADMSG;
    return answer.header.nlmsg_type == NLMSG_ERROR ? answer.error.error : 0;
}

void probe_nftables(struct probe *probe)
{
    _cleanup_fd_ int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER);
    int r = fd < 0 ? -errno : ask_nftables(fd);

    if (r < 0)
        finding_no(probe, -r, "asking for its rules");
    else
        finding_yes(probe, "nf_tables answers");
}

void probe_ipv6(struct probe *probe)
{
    struct sockaddr_in6 here = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    _cleanup_fd_ int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0)
        finding_no(probe, errno, "making a socket");
    else if (bind(fd, (const struct sockaddr *)&here, sizeof here) < 0)
        finding_no(probe, errno, "binding to ::1");
    else
        finding_yes(probe, "::1 can be bound to");
}

void probe_passrights(struct probe *probe)
{
    int ends[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0) {
        finding_no(probe, errno, "making a socket pair");
        return;
    }
    if (setsockopt(ends[0], SOL_SOCKET, SO_PASSRIGHTS, &(int){0}, sizeof(int)) < 0)
        finding_no(probe, errno, "a socket that refuses descriptors");
    else
        finding_yes(probe, "a socket can refuse descriptors");
    (void)close(ends[0]);
    (void)close(ends[1]);
}
