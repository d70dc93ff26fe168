#include "wire/filter.h"

#include <linux/seccomp.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

int filter_load(const struct sock_filter *filter, size_t size)
{
    /* The kernel only reads it; its own struct forgot the const. */
    struct sock_fprog program = {.len = (unsigned short)(size / sizeof *filter),
                                 .filter = (struct sock_filter *)(uintptr_t)filter};

    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0 ? -errno : 0;
}
