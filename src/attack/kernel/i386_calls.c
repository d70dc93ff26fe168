/*
 * i386-calls: the calls of another architecture have other numbers: a filter of the native ones would check the wrong
 * ones (CVE-2009-0835). The process ends with SIGSYS.
 */
#include "attack/attack.h"

#include <signal.h>

static void inside(struct attempt *attempt)
{
    long result = 20; /* getpid of i386 */

#ifdef __x86_64__
    __asm__ volatile("int $0x80" : "+a"(result) : : "memory", "r8", "r9", "r10", "r11");
#endif
    attempt_say(attempt, "int 0x80", false, "it answered %ld", result);
}

const struct attack attack_i386_calls = {
    .name = "i386-calls",
    .tries = "a system call by int 0x80",
    .group = ATTACK_KERNEL,
    .inside = inside,
    .status = 128 + SIGSYS,
};
