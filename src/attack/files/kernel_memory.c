/*
 * kernel-memory: the kernel's memory and addresses, and other facts that help to attack it.
 */
#include "attack/attack.h"

#include <fcntl.h>
#include <unistd.h>

static void inside(struct attempt *attempt)
{
    static const char *const paths[] = {
        "/proc/kcore",    "/proc/kallsyms",    "/proc/kpagecount", "/proc/kpageflags", "/proc/vmallocinfo",
        "/proc/slabinfo", "/proc/timer_list",  "/proc/keys",       "/proc/key-users",  "/proc/sched_debug",
        "/proc/cmdline",  "/proc/interrupts",  "/proc/modules",    "/proc/config.gz",  "/dev/mem",
        "/dev/port",      "/sys/kernel/notes",
    };

    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        char byte;
        int fd = open(paths[i], O_RDONLY | O_CLOEXEC);
        attempt_say(attempt, paths[i], fd < 0 || read(fd, &byte, 1) <= 0, "it can be read");
        (void)close(fd);
    }
}

const struct attack attack_kernel_memory = {
    .name = "kernel-memory",
    .tries = "reading the kernel's memory and addresses",
    .group = ATTACK_FILES,
    .control = CONTROL_APART,
    .inside = inside,
};
