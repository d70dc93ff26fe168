#include "keeper/request.h"

#include "keeper/disk.h"

#include <string.h>

enum {
    MEMORY_MIN = 2 << 20,
    DISK_MIN = 64 << 10,
    INODES_MIN = 64,
    PROCESSES_MAX = 1 << 20,
    CPU_MILLI_MIN = 10,
    CPU_MILLI_MAX = 4096 * 1000,
    CPU_WEIGHT_MAX = 10000,
};

#define DISK_IMAGE_MAX (8ULL << 40)

static bool is_hostname(struct wire_str name)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-.";

    return name.length >= 1 && name.length <= 63 && strspn(name.text, allowed) == name.length;
}

static bool lies_in(const char *path, const char *folder)
{
    size_t length = strlen(folder);

    return strncmp(path, folder, length) == 0 && (path[length] == '/' || path[length] == '\0');
}

bool request_is_guest_path(const char *path)
{
    if (path[0] != '/' || path[1] == '\0' || lies_in(path, "/proc") || lies_in(path, "/dev"))
        return false;
    while (*path == '/') {
        const char *part = path + 1;
        size_t length = strcspn(part, "/");
        if (length == 0 || length > 255 || (length == 1 && part[0] == '.') ||
            (length == 2 && part[0] == '.' && part[1] == '.'))
            return false;
        path = part + length;
    }
    return true;
}

static int check_amounts(uint64_t memory_bytes, uint32_t processes, uint32_t cpu_milli, uint32_t cpu_weight,
                         struct error *err)
{
    if (memory_bytes < MEMORY_MIN || memory_bytes > INT64_MAX)
        return error_set(err, ERROR_INVALID, 0, "memory must be at least 2 MiB");
    if (processes < 1 || processes > PROCESSES_MAX)
        return error_set(err, ERROR_INVALID, 0, "processes must be 1 to %d", PROCESSES_MAX);
    if (cpu_milli != 0 && (cpu_milli < CPU_MILLI_MIN || cpu_milli > CPU_MILLI_MAX))
        return error_set(err, ERROR_INVALID, 0, "CPUs must be 0.01 to %d", CPU_MILLI_MAX / 1000);
    if (cpu_weight > CPU_WEIGHT_MAX)
        return error_set(err, ERROR_INVALID, 0, "the CPU weight must be 1 to %d", CPU_WEIGHT_MAX);
    return 0;
}

int request_check_limits(const struct wire_limits *limits, struct error *err)
{
    return check_amounts(limits->memory_bytes, limits->processes, limits->cpu_milli, limits->cpu_weight, err);
}

static int check_dirs(const struct wire_create *create, size_t fd_count, struct error *err)
{
    size_t folders = (create->flags & WIRE_CREATE_FOLDER) != 0 ? 1 : 0;

    if (create->dirs.count > WIRE_DIRS_MAX || create->dir_flags.count != create->dirs.count ||
        fd_count != folders + create->dirs.count)
        return error_set(err, ERROR_INVALID, 0, "folders, their flags and descriptors are not as many");
    for (const char *dir = NULL; (dir = wire_strv_next(create->dirs, dir)) != NULL;) {
        if (!request_is_guest_path(dir))
            return error_set(err, ERROR_INVALID, 0, "no folder can be attached at %.200s", dir);
    }
    for (uint32_t i = 0; i < create->dir_flags.count; i++) {
        if ((wire_u64v_at(create->dir_flags, i) & ~(uint64_t)WIRE_DIR_WRITABLE) != 0)
            return error_set(err, ERROR_INVALID, 0, "unknown flags of a folder");
    }
    if (create->user >= WIRE_INNER_IDS)
        return error_set(err, ERROR_INVALID, 0, "the user must be below %d", WIRE_INNER_IDS);
    return 0;
}

static bool is_program(const char *name)
{
    if (name[0] == '/')
        return strncmp(name, "/usr/", 5) == 0 && request_is_guest_path(name);
    return name[0] != '\0' && strlen(name) <= 255 && strchr(name, '/') == NULL && strcmp(name, ".") != 0 &&
           strcmp(name, "..") != 0;
}

static int check_only(const struct wire_create *create, struct error *err)
{
    if (create->only.count > WIRE_ONLY_MAX)
        return error_set(err, ERROR_INVALID, 0, "at most %d programs can be listed", WIRE_ONLY_MAX);
    if (create->only.count > 0 && (create->flags & WIRE_CREATE_FOLDER) != 0)
        return error_set(err, ERROR_INVALID, 0, "a list of programs needs template host, not a root folder");
    for (const char *name = NULL; (name = wire_strv_next(create->only, name)) != NULL;) {
        if (!is_program(name))
            return error_set(err, ERROR_INVALID, 0,
                             "'%.200s' is neither the name of a program nor a plain path below /usr", name);
    }
    return 0;
}

static int check_disk(const struct wire_create *create, struct error *err)
{
    bool is_image = (create->flags & WIRE_CREATE_IMAGE) != 0;

    if (is_image && (create->disk_bytes < DISK_IMAGE_MIN_BYTES || create->disk_bytes > DISK_IMAGE_MAX))
        return error_set(err, ERROR_INVALID, 0, "a disk image must be 1 MiB to 8 TiB");
    if (!is_image && (create->disk_bytes < DISK_MIN || create->disk_bytes > INT64_MAX))
        return error_set(err, ERROR_INVALID, 0, "the disk must be at least 64 KiB");
    if (!is_image && create->disk_bytes > create->memory_bytes)
        return error_set(err, ERROR_INVALID, 0, "a disk that is kept in memory can't be larger than the memory limit");
    if (create->disk_inodes < INODES_MIN || create->disk_inodes > INT32_MAX)
        return error_set(err, ERROR_INVALID, 0, "the disk needs at least %d inodes", INODES_MIN);
    return 0;
}

int request_check_create(const struct wire_create *create, size_t fd_count, struct error *err)
{
    if ((create->flags & ~(uint32_t)(WIRE_CREATE_FOLDER | WIRE_CREATE_ROOT_RW | WIRE_CREATE_TIMES | WIRE_CREATE_IMAGE |
                                     WIRE_CREATE_TERMINAL | WIRE_CREATE_NETWORK)) != 0)
        return error_set(err, ERROR_INVALID, 0, "unknown flags");
    if ((create->flags & WIRE_CREATE_ROOT_RW) != 0 && (create->flags & WIRE_CREATE_FOLDER) == 0)
        return error_set(err, ERROR_INVALID, 0, "template host is read-only: a writable root needs a root folder");
    if (!is_hostname(create->hostname))
        return error_set(err, ERROR_INVALID, 0, "the host name must be 1 to 63 letters, digits, dots and dashes");
    int r = check_amounts(create->memory_bytes, create->processes, create->cpu_milli, create->cpu_weight, err);
    if (r < 0)
        return r;
    r = check_disk(create, err);
    if (r == 0)
        r = check_only(create, err);
    return r < 0 ? r : check_dirs(create, fd_count, err);
}
