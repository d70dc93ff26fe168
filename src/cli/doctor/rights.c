#include "base/fd.h"
#include "base/sys.h"
#include "cli/doctor/probes.h"

#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* What making a sandbox takes; without any one of them a step fails. */
static const struct {
    unsigned number;
    const char *name;
} needed[] = {
    {CAP_SYS_ADMIN, "CAP_SYS_ADMIN"}, {CAP_SYS_PTRACE, "CAP_SYS_PTRACE"}, {CAP_NET_ADMIN, "CAP_NET_ADMIN"},
    {CAP_MKNOD, "CAP_MKNOD"},         {CAP_CHOWN, "CAP_CHOWN"},           {CAP_DAC_OVERRIDE, "CAP_DAC_OVERRIDE"},
    {CAP_SETUID, "CAP_SETUID"},       {CAP_SETGID, "CAP_SETGID"},         {CAP_SETPCAP, "CAP_SETPCAP"},
};

/* The namespaces the machine booted with have fixed numbers. */
#define FIRST_CGROUP_NS 0xEFFFFFFBU
#define FIRST_PID_NS 0xEFFFFFFCU
#define FIRST_USER_NS 0xEFFFFFFDU

static bool is_first_namespace(const char *name, uint32_t number)
{
    char path[64];
    struct stat st;

    (void)snprintf(path, sizeof path, "/proc/self/ns/%s", name);
    return stat(path, &st) < 0 || st.st_ino == number;
}

/* The first line of a small file. False when there is none. */
static bool read_line(const char *path, char *line, size_t size)
{
    ssize_t n = fd_read_file(AT_FDCWD, path, line, size);

    line[n > 0 ? strcspn(line, "\n") : 0] = '\0';
    return n > 0;
}

void probe_root(struct probe *probe)
{
    if (geteuid() != 0)
        finding_no(probe, 0, "uid %u", geteuid());
    else if (is_first_namespace("user", FIRST_USER_NS))
        finding_yes(probe, "uid 0");
    else {
        finding_no(probe, 0, "root of a user namespace, who is nobody outside of it");
        finding_mend(probe, "run Hutch on the host, or in a container without a user namespace of its own");
    }
}

void probe_capabilities(struct probe *probe)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct have[2] = {{0}};
    char missing[200] = "";
    size_t used = 0;

    if (syscall(SYS_capget, &header, have) < 0) {
        finding_no(probe, errno, "asking for them");
        return;
    }
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++) {
        if ((have[needed[i].number / 32].effective & (1U << (needed[i].number % 32))) != 0)
            continue;
        int n = snprintf(missing + used, sizeof missing - used, "%s%s", used > 0 ? ", " : "", needed[i].name);
        used += n > 0 ? (size_t)n : 0;
    }
    if (used > 0)
        finding_no(probe, 0, "missing: %s", missing);
    else
        finding_yes(probe, "all %zu that are needed", sizeof needed / sizeof *needed);
}

/* The text behind "NAME:" in /proc/self/status. False when there is none. */
static bool status_field(const char *name, char *value, size_t size)
{
    char status[8192];

    if (fd_read_file(AT_FDCWD, "/proc/self/status", status, sizeof status) < 0)
        return false;
    const char *at = strstr(status, name);
    if (at == NULL)
        return false;
    at += strlen(name);
    at += strspn(at, " \t");
    (void)snprintf(value, size, "%.*s", (int)strcspn(at, "\n"), at);
    return true;
}

void probe_own_filter(struct probe *probe)
{
    char mode[16];
    char count[16];

    if (!status_field("\nSeccomp:", mode, sizeof mode) || strcmp(mode, "0") == 0)
        finding_yes(probe, "Hutch itself runs under no seccomp filter");
    else
        finding_no(probe, 0, "Hutch itself runs under %s seccomp filter(s)",
                   status_field("\nSeccomp_filters:", count, sizeof count) ? count : "some");
}

void probe_apparmor(struct probe *probe)
{
    char enabled[8];
    char profile[160];

    if (!read_line("/sys/module/apparmor/parameters/enabled", enabled, sizeof enabled) || enabled[0] != 'Y')
        finding_yes(probe, "not in use");
    else if (!read_line("/proc/self/attr/apparmor/current", profile, sizeof profile) &&
             !read_line("/proc/self/attr/current", profile, sizeof profile))
        finding_yes(probe, "in use; no profile on Hutch");
    else if (strncmp(profile, "unconfined", strlen("unconfined")) == 0 || strstr(profile, "(unconfined)") != NULL)
        finding_yes(probe, "in use; Hutch is unconfined");
    else
        finding_no(probe, 0, "Hutch itself is confined by the profile %s", profile);
}

/* Two switches that keep other users from making user namespaces. Root's, and so Hutch's, are not meant. */
void probe_unprivileged(struct probe *probe)
{
    char debian[16];
    char ubuntu[16];
    bool by_debian =
        read_line("/proc/sys/kernel/unprivileged_userns_clone", debian, sizeof debian) && strcmp(debian, "0") == 0;
    bool by_ubuntu = read_line("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", ubuntu, sizeof ubuntu) &&
                     strcmp(ubuntu, "0") != 0;

    if (by_debian || by_ubuntu)
        finding_yes(probe, "user namespaces are root's alone (%s%s%s), which is enough: sandboxes are made by root",
                    by_debian ? "kernel.unprivileged_userns_clone=0" : "", by_debian && by_ubuntu ? ", " : "",
                    by_ubuntu ? "kernel.apparmor_restrict_unprivileged_userns=1" : "");
    else
        finding_yes(probe, "user namespaces are not restricted to root");
}

void probe_yama(struct probe *probe)
{
    char scope[16];

    if (read_line("/proc/sys/kernel/yama/ptrace_scope", scope, sizeof scope))
        finding_yes(probe, "kernel.yama.ptrace_scope is %s; nothing in a sandbox may trace anyway", scope);
    else
        finding_yes(probe, "not in use; nothing in a sandbox may trace anyway");
}

static bool has_hypervisor(void)
{
    char text[8192];
    int fd = open("/proc/cpuinfo", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? fd_read_all(fd, text, sizeof text - 1) : 0;

    if (fd >= 0)
        (void)close(fd);
    text[n > 0 ? n : 0] = '\0';
    return strstr(text, " hypervisor") != NULL;
}

/* What the first process was told, as podman, lxc and systemd-nspawn do. */
static bool container_variable(char *kind, size_t size)
{
    char text[8192];
    ssize_t n = fd_read_file(AT_FDCWD, "/proc/1/environ", text, sizeof text);

    for (const char *at = text; n > 0 && at < text + n; at += strlen(at) + 1) {
        if (strncmp(at, "container=", 10) != 0)
            continue;
        (void)snprintf(kind, size, "%s", at + 10);
        return true;
    }
    return false;
}

/* Files that lie about in images tell the kind, but not whether we are in one: the namespaces tell that. */
static const char *container_kind(char *kind, size_t size)
{
    if (container_variable(kind, size) || read_line("/run/systemd/container", kind, size))
        return kind;
    if (access("/run/.containerenv", F_OK) == 0)
        return "podman";
    return access("/.dockerenv", F_OK) == 0 ? "docker" : "its kind is not known";
}

void probe_container(struct probe *probe)
{
    static const struct {
        const char *name;
        uint32_t number;
    } first[] = {{"user", FIRST_USER_NS}, {"pid", FIRST_PID_NS}, {"cgroup", FIRST_CGROUP_NS}};
    char kind[64] = "";

    for (size_t i = 0; i < sizeof first / sizeof *first; i++) {
        if (!is_first_namespace(first[i].name, first[i].number)) {
            finding_no(probe, 0, "in a container (%s): its %s namespace is not the machine's first",
                       container_kind(kind, sizeof kind), first[i].name);
            return;
        }
    }
    finding_yes(probe, "not in a container; %s", has_hypervisor() ? "a virtual machine" : "no virtual machine");
}
