#include "attack/host.h"

#include "base/fd.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>

enum { CLOCK_SLACK_SECONDS = 600 };

/* What an escape would change, or use. */
static const char *const settings[] = {
    "/proc/sys/kernel/core_pattern",
    "/proc/sys/kernel/modprobe",
    "/proc/sys/kernel/hotplug",
    "/proc/sys/kernel/hostname",
    "/proc/sys/kernel/domainname",
    "/proc/sys/kernel/sysrq",
    "/proc/sys/kernel/randomize_va_space",
    "/proc/sys/kernel/yama/ptrace_scope",
    "/proc/sys/kernel/unprivileged_bpf_disabled",
    "/proc/sys/kernel/modules_disabled",
    "/proc/sys/vm/overcommit_memory",
    "/proc/sys/net/ipv4/ip_forward",
    "/proc/sys/fs/protected_symlinks",
    "/proc/sys/fs/suid_dumpable",
    "/proc/sys/user/max_user_namespaces",
    "/proc/swaps",
    "/sys/kernel/uevent_helper",
    "/sys/kernel/kexec_loaded",
};

/* A file of the kernel's in one line. */
static int describe_setting(const char *path, struct buf *text)
{
    char value[2048];
    ssize_t n = fd_read_file(AT_FDCWD, path, value, sizeof value);

    for (ssize_t i = 0; i < n; i++)
        value[i] = (char)(value[i] == '\n' ? ' ' : value[i]);
    return n < 0 ? 0 : buf_printf(text, "%s is %s\n", path, value);
}

static int describe_file(const char *path, struct buf *text)
{
    struct stat st;

    if (lstat(path, &st) < 0)
        return buf_printf(text, "%s is not there\n", path);
    return buf_printf(text, "%s is file %llu with mode %o, owner %u:%u, %llu links, %lld bytes, changed %lld.%09ld\n",
                      path, (unsigned long long)st.st_ino, st.st_mode, st.st_uid, st.st_gid,
                      (unsigned long long)st.st_nlink, (long long)st.st_size, (long long)st.st_ctim.tv_sec,
                      st.st_ctim.tv_nsec);
}

/* A sandbox's mounts are in its own namespace: ours never shows one. */
static int describe_mounts(struct buf *text)
{
    char line[4096];
    unsigned count = 0;
    FILE *file = fopen("/proc/self/mountinfo", "re");

    if (file == NULL)
        return 0;
    while (fgets(line, sizeof line, file) != NULL)
        count += strstr(line, "hutch") != NULL ? 1 : 0;
    (void)fclose(file);
    return buf_printf(text, "%u mounts have to do with Hutch\n", count);
}

/* A clock that was set has another distance to the one that can't be; a small part of it may be corrected meanwhile. */
static int describe_clock(struct buf *text)
{
    struct timespec wall;
    struct timespec steady;

    (void)clock_gettime(CLOCK_REALTIME, &wall);
    (void)clock_gettime(CLOCK_BOOTTIME, &steady);
    return buf_printf(text, "the clock started %lld times ten minutes ago\n",
                      (long long)(wall.tv_sec - steady.tv_sec + CLOCK_SLACK_SECONDS / 2) / CLOCK_SLACK_SECONDS);
}

int host_describe(const char *const *files, size_t file_count, struct buf *text)
{
    struct utsname name = {0};
    int r = 0;

    for (size_t i = 0; r == 0 && i < sizeof settings / sizeof *settings; i++)
        r = describe_setting(settings[i], text);
    for (size_t i = 0; r == 0 && i < file_count; i++)
        r = describe_file(files[i], text);
    (void)uname(&name);
    if (r == 0)
        r = buf_printf(text, "the host is %s\n", name.nodename);
    if (r == 0)
        r = describe_clock(text);
    if (r == 0)
        r = describe_mounts(text);
    return r < 0 ? r : buf_append(text, "", 1);
}

static bool has_line(const char *text, const char *line, size_t length)
{
    for (; *text != '\0'; text += strcspn(text, "\n") + 1) {
        if (strncmp(text, line, length + 1) == 0)
            return true;
    }
    return false;
}

const char *host_difference(const char *before, const char *now, char *ret_line, size_t size)
{
    for (; *now != '\0'; now += strcspn(now, "\n") + 1) {
        size_t length = strcspn(now, "\n");
        if (has_line(before, now, length))
            continue;
        (void)snprintf(ret_line, size, "%.*s", (int)length, now);
        return ret_line;
    }
    return NULL;
}
