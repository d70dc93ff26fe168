/*
 * nf-tables: a user and a network namespace, and netfilter in it: the source of many a local root (CVE-2022-34918,
 * CVE-2023-32233, CVE-2024-1086).
 */
#include "attack/attack.h"

#include <sched.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static void inside(struct attempt *attempt)
{
    TRY(attempt, "the namespaces", syscall(SYS_unshare, CLONE_NEWUSER | CLONE_NEWNET), EPERM, ENOSYS);
    TRY(attempt, "netlink to netfilter", socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, 12), EPERM, ENOSYS);
}

const struct attack attack_nf_tables = {
    .name = "nf-tables",
    .tries = "netfilter in a user namespace",
    .group = ATTACK_KERNEL,
    .inside = inside,
};
