#include "keeper/cgroup.h"

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/sys.h"
#include "wire/wire.h"

#include <dirent.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <sys/vfs.h>
#include <time.h>

#define CGROUP_MOUNT "/sys/fs/cgroup"

enum {
    DESCENDANTS_MAX = 512, /* cgroups init may make, one per running command */
    CPU_PERIOD_US = 100000,
    CPU_PERIOD_MS = 100,
    RECLAIM_ABOVE_BYTES = 1 << 20,
    RECLAIM_ROUNDS = 64,
    TCP_FRACTION = 4, /* of the memory limit, beside it (hybrid) */
};

enum hierarchy { UNIFIED, MEMORY, PIDS, CPU, HIERARCHY_COUNT };

struct cgroups {
    bool hybrid;
    int top[HIERARCHY_COUNT]; /* the folder "hutch" in each; in v2 only UNIFIED */
};

/* Where the limits of one controller are. */
static int top_of(const struct cgroups *cgroups, enum hierarchy controller)
{
    return cgroups->top[cgroups->hybrid ? controller : UNIFIED];
}

static int path_in(char *path, size_t size, const char *name, const char *file)
{
    int n = snprintf(path, size, "%s/%s", name, file);

    return n > 0 && (size_t)n < size ? 0 : -ENAMETOOLONG;
}

static int write_in(int top, const char *name, const char *file, const char *text)
{
    char path[128];
    int r = path_in(path, sizeof path, name, file);

    return r < 0 ? r : fd_write_file(top, path, text);
}

static int write_number_in(int top, const char *name, const char *file, uint64_t number)
{
    char path[128];
    int r = path_in(path, sizeof path, name, file);

    return r < 0 ? r : fd_write_number(top, path, number);
}

/* A number: alone in the file, or behind `key`. 0 when there is none. */
static uint64_t read_number_in(int top, const char *name, const char *file, const char *key)
{
    char path[128];
    char text[4096];

    if (path_in(path, sizeof path, name, file) < 0 || fd_read_file(top, path, text, sizeof text) < 0)
        return 0;
    const char *at = text;
    while (key != NULL && at != NULL) {
        size_t length = strlen(key);
        if (strncmp(at, key, length) == 0 && at[length] == ' ') {
            at += length + 1;
            break;
        }
        at = strchr(at, '\n');
        at = at != NULL ? at + 1 : NULL;
    }
    return at != NULL ? strtoull(at, NULL, 10) : 0;
}

static int open_top(const char *path, int *ret_fd, struct error *err)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0 && errno == ENOENT) {
        if (mkdir(path, 0755) < 0 && errno != EEXIST)
            return error_errno(err, "making %s", path);
        fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    }
    if (fd < 0)
        return error_errno(err, "opening %s", path);
    *ret_fd = fd;
    return 0;
}

static bool is_cgroup2(const char *path)
{
    struct statfs st;

    return statfs(path, &st) == 0 && (uint64_t)st.f_type == CGROUP2_SUPER_MAGIC;
}

/* "cpu" is not in "cpuset memory". */
static bool has_word(const char *text, const char *word)
{
    size_t length = strlen(word);

    for (const char *at = text; (at = strstr(at, word)) != NULL; at += length) {
        if ((at == text || at[-1] == ' ') && (at[length] == ' ' || at[length] == '\n' || at[length] == '\0'))
            return true;
    }
    return false;
}

/* Controllers must be switched on from the top down before a cgroup below has their files. */
static int enable_controllers(const struct cgroups *cgroups, struct error *err)
{
    static const char controllers[] = "+memory +pids +cpu";
    char now[256];
    ssize_t n = fd_read_file(cgroups->top[UNIFIED], "cgroup.subtree_control", now, sizeof now);

    if (n > 0 && has_word(now, "memory") && has_word(now, "pids") && has_word(now, "cpu"))
        return 0;
    int r = fd_write_file(AT_FDCWD, CGROUP_MOUNT "/cgroup.subtree_control", controllers);
    if (r == 0)
        r = fd_write_file(cgroups->top[UNIFIED], "cgroup.subtree_control", controllers);
    if (r < 0)
        return error_set(err, ERROR_UNSUPPORTED, -r,
                         "switching on the memory, pids and cpu controllers in %s; run Hutch on the host or with a "
                         "delegated cgroup",
                         CGROUP_MOUNT);
    return 0;
}

static int open_hierarchies(struct cgroups *cgroups, struct error *err)
{
    if (is_cgroup2(CGROUP_MOUNT)) {
        int r = open_top(CGROUP_MOUNT "/hutch", &cgroups->top[UNIFIED], err);
        return r < 0 ? r : enable_controllers(cgroups, err);
    }
    if (!is_cgroup2(CGROUP_MOUNT "/unified"))
        return error_set(err, ERROR_UNSUPPORTED, ENOTSUP,
                         "no cgroup v2 tree at %s or %s/unified; boot with systemd.unified_cgroup_hierarchy=1",
                         CGROUP_MOUNT, CGROUP_MOUNT);
    cgroups->hybrid = true;
    int r = open_top(CGROUP_MOUNT "/unified/hutch", &cgroups->top[UNIFIED], err);
    if (r == 0)
        r = open_top(CGROUP_MOUNT "/memory/hutch", &cgroups->top[MEMORY], err);
    if (r == 0)
        r = open_top(CGROUP_MOUNT "/pids/hutch", &cgroups->top[PIDS], err);
    if (r == 0)
        r = open_top(CGROUP_MOUNT "/cpu/hutch", &cgroups->top[CPU], err);
    return r;
}

int cgroups_new(struct cgroups **ret_cgroups, struct error *err)
{
    struct cgroups *cgroups = calloc(1, sizeof *cgroups);

    if (cgroups == NULL)
        return error_set(err, ERROR_SYSTEM, ENOMEM, "opening the cgroup tree");
    for (int i = 0; i < HIERARCHY_COUNT; i++)
        cgroups->top[i] = -1;
    int r = open_hierarchies(cgroups, err);
    if (r < 0) {
        cgroups_free(cgroups);
        return r;
    }
    *ret_cgroups = cgroups;
    return 0;
}

void cgroups_free(struct cgroups *cgroups)
{
    if (cgroups == NULL)
        return;
    fd_close_many(cgroups->top, HIERARCHY_COUNT);
    free(cgroups);
}

/* Is there swap that a file for its limit is missing for? Without swap there is nothing to limit. */
static int no_swap_limit(const char *file, struct error *err)
{
    struct sysinfo info;

    if (sysinfo(&info) == 0 && info.totalswap == 0)
        return 0;
    return error_set(err, ERROR_UNSUPPORTED, ENOTSUP,
                     "this kernel can't limit swap (no %s); boot with swapaccount=1 or switch swap off", file);
}

static int limit_memory(const struct cgroups *cgroups, const char *name, uint64_t bytes, struct error *err)
{
    int top = top_of(cgroups, MEMORY);
    int r;

    if (cgroups->hybrid) {
        /* Memory and swap together may not be below memory: raise the sum first, or lower it last. */
        r = write_number_in(top, name, "memory.limit_in_bytes", bytes);
        int swap = write_number_in(top, name, "memory.memsw.limit_in_bytes", bytes);
        if (r == -EINVAL && swap == 0)
            r = write_number_in(top, name, "memory.limit_in_bytes", bytes);
        if (r == 0 && swap == -ENOENT)
            return no_swap_limit("memory.memsw.limit_in_bytes", err);
        if (r == 0 && swap < 0)
            r = swap;
        /* v1 counts what waits in TCP sockets apart, and only when asked to. */
        if (r == 0)
            r = write_number_in(top, name, "memory.kmem.tcp.limit_in_bytes", bytes / TCP_FRACTION);
    } else {
        r = write_number_in(top, name, "memory.max", bytes);
        int swap = write_in(top, name, "memory.swap.max", "0");
        if (r == 0 && swap == -ENOENT)
            return no_swap_limit("memory.swap.max", err);
        if (r == 0 && swap < 0)
            r = swap;
    }
    if (r < 0)
        return error_set(err, ERROR_SYSTEM, -r, "limiting memory to %llu bytes", (unsigned long long)bytes);
    return 0;
}

static int limit_cpu(struct cgroups *cgroups, const char *name, const struct cgroup_limits *limits, struct error *err)
{
    char text[48];
    int top = top_of(cgroups, CPU);
    uint64_t quota_us = (uint64_t)limits->cpu_milli * CPU_PERIOD_MS;
    uint64_t weight = limits->cpu_weight != 0 ? limits->cpu_weight : 100;
    int r;

    if (cgroups->hybrid) {
        (void)snprintf(text, sizeof text, "%lld", limits->cpu_milli != 0 ? (long long)quota_us : -1LL);
        r = write_in(top, name, "cpu.cfs_quota_us", text);
        if (r == 0)
            r = write_number_in(top, name, "cpu.shares", weight * 1024 / 100 < 2 ? 2 : weight * 1024 / 100);
    } else {
        if (limits->cpu_milli != 0)
            (void)snprintf(text, sizeof text, "%llu %d", (unsigned long long)quota_us, CPU_PERIOD_US);
        else
            (void)snprintf(text, sizeof text, "max %d", CPU_PERIOD_US);
        r = write_in(top, name, "cpu.max", text);
        if (r == 0)
            r = write_number_in(top, name, "cpu.weight", weight);
    }
    return r < 0 ? error_set(err, ERROR_SYSTEM, -r, "limiting CPU time") : 0;
}

static int limit_memory_and_processes(const struct cgroups *cgroups, const char *name,
                                      const struct cgroup_limits *limits, struct error *err)
{
    int r = limit_memory(cgroups, name, limits->memory_bytes, err);

    if (r < 0)
        return r;
    r = write_number_in(top_of(cgroups, PIDS), name, "pids.max", (uint64_t)limits->processes + 1);
    return r < 0 ? error_set(err, ERROR_SYSTEM, -r, "limiting processes to %u", limits->processes) : 0;
}

int cgroup_limit(struct cgroups *cgroups, const char *name, const struct cgroup_limits *limits, struct error *err)
{
    int r = limit_memory_and_processes(cgroups, name, limits, err);

    /* Also without a limit: there may have been one. */
    return r < 0 ? r : limit_cpu(cgroups, name, limits, err);
}

static int make_folders(struct cgroups *cgroups, const char *name, struct error *err)
{
    if (mkdirat(cgroups->top[UNIFIED], name, 0755) < 0)
        return error_errno(err, "making a cgroup");
    if (!cgroups->hybrid)
        return 0;
    if (mkdirat(cgroups->top[MEMORY], name, 0755) < 0)
        return error_errno(err, "making a memory cgroup");
    if (mkdirat(cgroups->top[PIDS], name, 0755) < 0)
        return error_errno(err, "making a pids cgroup");
    /* Also without a limit: a sandbox competes for the CPU as one, however many threads it has. */
    if (mkdirat(cgroups->top[CPU], name, 0755) < 0)
        return error_errno(err, "making a cpu cgroup");
    return 0;
}

/*
 * Init makes a cgroup per command below its own: it owns the folder and cgroup.procs (the kernel wants that of the
 * common ancestor), but none of the files that hold limits.
 */
static int delegate(const struct cgroups *cgroups, const char *name, uint32_t owner, struct error *err)
{
    char path[128];
    int top = cgroups->top[UNIFIED];
    int r = write_number_in(top, name, "cgroup.max.descendants", DESCENDANTS_MAX);

    if (r == 0)
        r = write_number_in(top, name, "cgroup.max.depth", 1);
    if (r < 0)
        return error_set(err, ERROR_SYSTEM, -r, "limiting cgroups below");
    if (path_in(path, sizeof path, name, "cgroup.procs") < 0 || fchownat(top, name, owner, owner, 0) < 0 ||
        fchownat(top, path, owner, owner, 0) < 0)
        return error_errno(err, "handing the cgroup to the sandbox");
    return 0;
}

static int open_entry(const struct cgroups *cgroups, const char *name, struct cgroup_entry *entry, struct error *err)
{
    static const enum hierarchy wanted[] = {MEMORY, PIDS, CPU};
    char path[128];

    entry->dir = openat(cgroups->top[UNIFIED], name, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (entry->dir < 0)
        return error_errno(err, "opening the cgroup");
    for (size_t i = 0; cgroups->hybrid && i < sizeof wanted / sizeof *wanted; i++) {
        int fd = path_in(path, sizeof path, name, "tasks") < 0
                     ? -1
                     : openat(cgroups->top[wanted[i]], path, O_WRONLY | O_CLOEXEC);
        if (fd < 0)
            return error_errno(err, "opening the tasks of the cgroup");
        entry->tasks[entry->task_count++] = fd;
    }
    return 0;
}

int cgroup_furnish(struct cgroups *cgroups, const char *name, const struct cgroup_limits *limits, uint32_t owner,
                   struct error *err)
{
    int r = limit_memory_and_processes(cgroups, name, limits, err);

    /* A new one has no CPU limit. */
    if (r == 0 && (limits->cpu_milli != 0 || limits->cpu_weight != 0))
        r = limit_cpu(cgroups, name, limits, err);
    return r < 0 ? r : delegate(cgroups, name, owner, err);
}

int cgroup_create(struct cgroups *cgroups, const char *name, struct cgroup_entry *ret_entry, struct error *err)
{
    struct cgroup_entry entry = {.dir = -1};
    int r = make_folders(cgroups, name, err);

    if (r == 0)
        r = open_entry(cgroups, name, &entry, err);
    if (r < 0) {
        cgroup_entry_release(&entry);
        ignore_result(cgroup_remove(cgroups, name));
        return r;
    }
    *ret_entry = entry;
    return 0;
}

void cgroup_entry_release(struct cgroup_entry *entry)
{
    close_fd(&entry->dir);
    fd_close_many(entry->tasks, entry->task_count);
    entry->task_count = 0;
}

int cgroup_view(struct cgroups *cgroups, const char *name, int *ret_fd, struct error *err)
{
    struct mount_attr attr = {.attr_set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC};
    _cleanup_fd_ int fd = sys_open_tree(cgroups->top[UNIFIED], name, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);

    if (fd < 0 || sys_mount_setattr(fd, "", AT_EMPTY_PATH, &attr) < 0)
        return error_errno(err, "making init's view of its cgroup");
    *ret_fd = TAKE_FD(fd);
    return 0;
}

int cgroup_freeze(struct cgroups *cgroups, const char *name, bool frozen, struct error *err)
{
    int r = write_in(cgroups->top[UNIFIED], name, "cgroup.freeze", frozen ? "1" : "0");

    return r < 0 ? error_set(err, ERROR_SYSTEM, -r, frozen ? "freezing" : "thawing") : 0;
}

int cgroup_kill(struct cgroups *cgroups, const char *name)
{
    return write_in(cgroups->top[UNIFIED], name, "cgroup.kill", "1");
}

uint32_t cgroup_oom_kills(struct cgroups *cgroups, const char *name)
{
    return (uint32_t)read_number_in(top_of(cgroups, MEMORY), name,
                                    cgroups->hybrid ? "memory.oom_control" : "memory.events", "oom_kill");
}

uint32_t cgroup_processes_refused(struct cgroups *cgroups, const char *name)
{
    return (uint32_t)read_number_in(top_of(cgroups, PIDS), name, "pids.events", "max");
}

void cgroup_usage(struct cgroups *cgroups, const char *name, struct cgroup_usage *ret_usage)
{
    int memory = top_of(cgroups, MEMORY);
    int pids = top_of(cgroups, PIDS);
    bool hybrid = cgroups->hybrid;

    *ret_usage = (struct cgroup_usage){
        .cpu_us = read_number_in(cgroups->top[UNIFIED], name, "cpu.stat", "usage_usec"),
        .memory_bytes = read_number_in(memory, name, hybrid ? "memory.usage_in_bytes" : "memory.current", NULL),
        .memory_peak_bytes = read_number_in(memory, name, hybrid ? "memory.max_usage_in_bytes" : "memory.peak", NULL),
        .processes = (uint32_t)read_number_in(pids, name, "pids.current", NULL),
        .processes_peak = (uint32_t)read_number_in(pids, name, "pids.peak", NULL),
        .processes_refused = cgroup_processes_refused(cgroups, name),
        .oom_kills = cgroup_oom_kills(cgroups, name),
    };
}

static uint64_t memory_in_use(const struct cgroups *cgroups, int memory_fd, const char *name)
{
    return read_number_in(memory_fd, name, cgroups->hybrid ? "memory.usage_in_bytes" : "memory.current", NULL);
}

bool cgroups_are_hybrid(const struct cgroups *cgroups)
{
    return cgroups->hybrid;
}

int cgroups_memory_fd(const struct cgroups *cgroups)
{
    return top_of(cgroups, MEMORY);
}

bool cgroup_wants_reclaim(const struct cgroups *cgroups, const char *name)
{
    return memory_in_use(cgroups, top_of(cgroups, MEMORY), name) > RECLAIM_ABOVE_BYTES;
}

/* As long as it becomes less: what is being written to the disk can't be given back yet. */
void cgroup_reclaim_in(const struct cgroups *cgroups, int memory_fd, const char *name)
{
    uint64_t before = UINT64_MAX;
    uint64_t bytes = memory_in_use(cgroups, memory_fd, name);

    for (int round = 0; round < RECLAIM_ROUNDS && bytes > RECLAIM_ABOVE_BYTES && bytes < before; round++) {
        if (cgroups->hybrid)
            (void)write_in(memory_fd, name, "memory.force_empty", "0");
        else
            (void)write_number_in(memory_fd, name, "memory.reclaim", bytes);
        before = bytes;
        bytes = memory_in_use(cgroups, memory_fd, name);
    }
}

void cgroup_reclaim(const struct cgroups *cgroups, const char *name)
{
    cgroup_reclaim_in(cgroups, top_of(cgroups, MEMORY), name);
}

/* The cgroups init made for its commands. */
static void remove_below(int top, const char *name)
{
    int fd = openat(top, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *folder = fd >= 0 ? fdopendir(fd) : NULL;
    const struct dirent *entry;

    if (folder == NULL) {
        close_fd(&fd);
        return;
    }
    while ((entry = readdir(folder)) != NULL) {
        if (entry->d_type == DT_DIR && entry->d_name[0] != '.')
            (void)unlinkat(fd, entry->d_name, AT_REMOVEDIR);
    }
    (void)closedir(folder);
}

static void remove_first_group(int top, const char *name)
{
    char path[128];

    if (snprintf(path, sizeof path, "%s/" WIRE_GROUP_NAME, name, 0U) < (int)sizeof path)
        (void)unlinkat(top, path, AT_REMOVEDIR);
}

/* 0, also when there is none. */
static int remove_folder(int top, const char *name)
{
    if (top < 0)
        return 0;
    if (unlinkat(top, name, AT_REMOVEDIR) == 0)
        return 0;
    int error = errno;
    /* In a read-only tree that is the answer also for what was never made. */
    return faccessat(top, name, F_OK, 0) < 0 && errno == ENOENT ? 0 : -error;
}

/* Those of v1. */
static int remove_controllers(struct cgroups *cgroups, const char *name)
{
    int r = remove_folder(cgroups->top[MEMORY], name);

    if (r >= 0)
        r = remove_folder(cgroups->top[PIDS], name);
    return r < 0 ? r : remove_folder(cgroups->top[CPU], name);
}

int cgroup_remove(struct cgroups *cgroups, const char *name)
{
    int r = cgroups->hybrid ? remove_controllers(cgroups, name) : 0;
    if (r < 0)
        return r;
    /* Most have had no other. */
    remove_first_group(cgroups->top[UNIFIED], name);
    r = remove_folder(cgroups->top[UNIFIED], name);
    if (r == -EBUSY || r == -ENOTEMPTY) {
        remove_below(cgroups->top[UNIFIED], name);
        r = remove_folder(cgroups->top[UNIFIED], name);
    }
    return r < 0 ? r : 0;
}

static bool sweep_one(struct cgroups *cgroups, const char *name)
{
    static const struct timespec pause = {.tv_nsec = 2000000};

    ignore_result(cgroup_kill(cgroups, name));
    for (int attempt = 0; attempt < 100; attempt++) {
        cgroup_reclaim(cgroups, name);
        if (cgroup_remove(cgroups, name) == 0)
            return true;
        (void)nanosleep(&pause, NULL);
    }
    return false;
}

bool cgroups_sweep(struct cgroups *cgroups, const char *instance_id)
{
    size_t length = strlen(instance_id);
    int fd = openat(cgroups->top[UNIFIED], ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *folder = fd >= 0 ? fdopendir(fd) : NULL;
    const struct dirent *entry;
    bool clean = true;

    if (folder == NULL) {
        close_fd(&fd);
        return false;
    }
    while ((entry = readdir(folder)) != NULL) {
        if (strncmp(entry->d_name, instance_id, length) == 0 && entry->d_name[length] == '-')
            clean = sweep_one(cgroups, entry->d_name) && clean;
    }
    (void)closedir(folder);
    return clean;
}
