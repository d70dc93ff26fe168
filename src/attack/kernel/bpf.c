/*
 * bpf: programs in the kernel; its verifier was fooled more than once (CVE-2021-3490, CVE-2023-2163).
 */
#include "attack/attack.h"

#include <linux/bpf.h>
#include <sys/syscall.h>
#include <unistd.h>

static void inside(struct attempt *attempt)
{
    union bpf_attr map = {.map_type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = 4, .max_entries = 1};
    struct bpf_insn code[] = {{.code = BPF_ALU64 | BPF_MOV | BPF_K}, {.code = BPF_JMP | BPF_EXIT}};
    union bpf_attr program = {.prog_type = BPF_PROG_TYPE_SOCKET_FILTER,
                              .insn_cnt = 2,
                              .insns = (uintptr_t)code,
                              .license = (uintptr_t) "GPL"};

    TRY(attempt, "a map", syscall(SYS_bpf, BPF_MAP_CREATE, &map, sizeof map), EPERM, ENOSYS);
    TRY(attempt, "a program", syscall(SYS_bpf, BPF_PROG_LOAD, &program, sizeof program), EPERM, ENOSYS);
}

const struct attack attack_bpf = {
    .name = "bpf",
    .tries = "a map and a program in the kernel",
    .group = ATTACK_KERNEL,
    .control = CONTROL_APART,
    .inside = inside,
};
