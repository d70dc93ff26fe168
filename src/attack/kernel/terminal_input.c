/*
 * terminal-input: types into the terminal that the caller and the command share; the shell outside would read it
 * (CVE-2017-5226), also with a high bit set (CVE-2019-10063).
 */
#include "attack/attack.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static void inside(struct attempt *attempt)
{
    char letter = ' ';
    int terminal = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);

    TRY(attempt, "standard input", ioctl(0, TIOCSTI, &letter), EPERM, ENOSYS);
    TRY(attempt, "standard input, high bit set", syscall(SYS_ioctl, 0, 0x5412 | 1UL << 32, &letter), EPERM, ENOSYS);
    TRY(attempt, "a terminal of its own", ioctl(terminal, TIOCSTI, &letter), EPERM, ENOSYS);
}

const struct attack attack_terminal_input = {
    .name = "terminal-input",
    .tries = "typing into the caller's terminal (TIOCSTI)",
    .group = ATTACK_KERNEL,
    .control = CONTROL_APART,
    .inside = inside,
};
