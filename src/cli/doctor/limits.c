#include "base/fd.h"
#include "base/parse.h"
#include "base/sys.h"
#include "cli/doctor/probes.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>

enum { OPEN_FILES_LEAST = 4096, NAMED_MAX = 3 };

/* The number in /proc/sys/NAME. 0 or -errno. */
static int read_sysctl(const char *name, uint64_t *ret_number)
{
    char path[128];
    char text[64];

    (void)snprintf(path, sizeof path, "/proc/sys/%s", name);
    ssize_t n = fd_read_file(AT_FDCWD, path, text, sizeof text);
    if (n < 0)
        return (int)n;
    text[strcspn(text, "\n")] = '\0';
    return parse_u64(text, ret_number);
}

static void dots(char *name)
{
    for (; *name != '\0'; name++) {
        if (*name == '/')
            *name = '.';
    }
}

/* argument: "NAME LEAST NAME LEAST ...". What this kernel does not have is no limit. */
void probe_least(struct probe *probe)
{
    char words[512];
    char found[320] = "";
    size_t used = 0;
    size_t count = 0;
    char *save = NULL;

    (void)snprintf(words, sizeof words, "%s", probe->check->argument);
    for (char *name = strtok_r(words, " ", &save); name != NULL; name = strtok_r(NULL, " ", &save)) {
        uint64_t least = strtoull(strtok_r(NULL, " ", &save), NULL, 10);
        uint64_t number = 0;
        if (read_sysctl(name, &number) < 0)
            continue;
        dots(name);
        if (number < least) {
            finding_no(probe, 0, "%s is %llu, which is below %llu", name, (unsigned long long)number,
                       (unsigned long long)least);
            finding_mend(probe, "sysctl -w %s=%llu", name, (unsigned long long)least);
            return;
        }
        int n = snprintf(found + used, sizeof found - used, "%s%s %llu", used > 0 ? ", " : "", name,
                         (unsigned long long)number);
        used = n > 0 && used + (size_t)n < sizeof found ? used + (size_t)n : used;
        count++;
    }
    if (count > NAMED_MAX)
        finding_yes(probe, "all %zu are high enough", count);
    else
        finding_yes(probe, "%s", count > 0 ? found : "there are none");
}

void probe_open_files(struct probe *probe)
{
    struct rlimit limit;

    if (sys_prlimit(RLIMIT_NOFILE, NULL, &limit) < 0)
        finding_no(probe, errno, "asking for the limit");
    else if (limit.rlim_max < OPEN_FILES_LEAST)
        finding_no(probe, 0, "the hard limit is %llu, which is below %d", (unsigned long long)limit.rlim_max,
                   OPEN_FILES_LEAST);
    else
        finding_yes(probe, "hard limit %llu", (unsigned long long)limit.rlim_max);
}

void probe_core_pattern(struct probe *probe)
{
    char pattern[160];
    ssize_t n = fd_read_file(AT_FDCWD, "/proc/sys/kernel/core_pattern", pattern, sizeof pattern);

    pattern[n > 0 ? strcspn(pattern, "\n") : 0] = '\0';
    if (pattern[0] == '@')
        finding_no(probe, 0, "crashes go to the socket %s", pattern + 1);
    else if (pattern[0] == '|')
        finding_yes(probe, "crashes go to %.120s, but not those in sandboxes: their limit for cores forbids it",
                    pattern + 1);
    else
        finding_yes(probe, "crashes in sandboxes write no core: their limit forbids it");
}

void probe_memory(struct probe *probe)
{
    struct sysinfo info;

    if (sysinfo(&info) < 0) {
        finding_no(probe, errno, "sysinfo");
        return;
    }
    double unit = (double)info.mem_unit / (1 << 30);
    finding_yes(probe, "%.1f GiB, swap %.1f GiB", (double)info.totalram * unit, (double)info.totalswap * unit);
}

void probe_cpus(struct probe *probe)
{
    cpu_set_t allowed;

    if (sched_getaffinity(0, sizeof allowed, &allowed) < 0)
        finding_no(probe, errno, "asking which may be used");
    else
        finding_yes(probe, "%d", CPU_COUNT(&allowed));
}
