/*
 * terminal-console: the console's own calls can select and paste text into it (CVE-2023-28100).
 */
#include "attack/attack.h"

#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static void inside(struct attempt *attempt)
{
    char code[4] = {7}; /* harmless: which console is in front? */

    TRY(attempt, "TIOCLINUX", ioctl(0, TIOCLINUX, code), EPERM, ENOSYS);
    TRY(attempt, "high bit set", syscall(SYS_ioctl, 0, 0x541c | 1UL << 63, code), EPERM, ENOSYS);
}

const struct attack attack_terminal_console = {
    .name = "terminal-console",
    .tries = "pasting into the console (TIOCLINUX)",
    .group = ATTACK_KERNEL,
    .control = CONTROL_APART,
    .inside = inside,
};
