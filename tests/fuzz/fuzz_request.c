/* A CREATE, LIMITS or CONFIG message as root would get it. What is accepted is looked at again, in other words. */
#include "base/fd.h"
#include "fuzz.h"
#include "keeper/request.h"
#include "keeper/settings.h"

#include <string.h>

static void check_amounts(uint64_t memory_bytes, uint32_t processes, uint32_t cpu_milli, uint32_t cpu_weight)
{
    MUST(memory_bytes >= 2 << 20 && memory_bytes >> 63 == 0);
    MUST(processes > 0 && processes <= 1 << 20);
    MUST(cpu_milli == 0 || (cpu_milli >= 10 && cpu_milli <= 4096000));
    MUST(cpu_weight <= 10000);
}

static void check_path(const char *path)
{
    size_t length = strlen(path);

    MUST(length > 1 && path[0] == '/' && path[length - 1] != '/');
    MUST(strstr(path, "//") == NULL && strstr(path, "/./") == NULL && strstr(path, "/../") == NULL);
    MUST(strcmp(path + length - 2, "/.") != 0 && (length < 3 || strcmp(path + length - 3, "/..") != 0));
    MUST(strncmp(path, "/proc/", 6) != 0 && strncmp(path, "/dev/", 5) != 0);
    MUST(strcmp(path, "/proc") != 0 && strcmp(path, "/dev") != 0);
}

static void check_program(const char *name)
{
    MUST(name[0] != '\0' && strcmp(name, ".") != 0 && strcmp(name, "..") != 0);
    if (strchr(name, '/') == NULL)
        return;
    check_path(name);
    MUST(strncmp(name, "/usr/", 5) == 0);
}

static void check_accepted(const struct wire_create *create, size_t fd_count)
{
    const char *dir = NULL;
    size_t folders = (create->flags & WIRE_CREATE_FOLDER) != 0 ? 1 : 0;

    check_amounts(create->memory_bytes, create->processes, create->cpu_milli, create->cpu_weight);
    if ((create->flags & WIRE_CREATE_IMAGE) != 0)
        MUST(create->disk_bytes >= 1 << 20 && create->disk_bytes <= UINT64_C(8) << 40);
    else
        MUST(create->disk_bytes >= 65536 && create->disk_bytes <= create->memory_bytes);
    MUST(create->disk_inodes >= 64 && create->disk_inodes >> 31 == 0);
    MUST(folders == 1 || (create->flags & WIRE_CREATE_ROOT_RW) == 0);
    MUST(create->dirs.count <= WIRE_DIRS_MAX && create->dirs.count == create->dir_flags.count);
    MUST(fd_count == folders + create->dirs.count && create->user < 65536);
    MUST(create->hostname.length > 0 && create->hostname.length < 64);
    MUST(create->only.count == 0 || (folders == 0 && create->only.count <= WIRE_ONLY_MAX));
    for (const char *name = NULL; (name = wire_strv_next(create->only, name)) != NULL;)
        check_program(name);
    for (uint32_t i = 0; i < create->dirs.count; i++) {
        dir = wire_strv_next(create->dirs, dir);
        MUST(dir != NULL);
        check_path(dir);
        MUST(wire_u64v_at(create->dir_flags, i) <= WIRE_DIR_WRITABLE);
    }
}

static void check_create(const struct wire_create *create)
{
    for (size_t fd_count = 0; fd_count <= FD_PASS_MAX; fd_count++) {
        struct error err = {0};
        if (request_check_create(create, fd_count, &err) == 0)
            check_accepted(create, fd_count);
        else
            MUST(err.code == ERROR_INVALID && err.message[0] != '\0');
    }
}

static void check_limits(const struct wire_limits *limits)
{
    struct error err = {0};

    if (request_check_limits(limits, &err) == 0)
        check_amounts(limits->memory_bytes, limits->processes, limits->cpu_milli, limits->cpu_weight);
    else
        MUST(err.code == ERROR_INVALID && err.message[0] != '\0');
}

static void check_config(const struct wire_config *config)
{
    struct error err = {0};

    if (settings_check(config, &err) < 0) {
        MUST(err.message[0] != '\0');
        return;
    }
    MUST(config->id_first >= 65536 && config->id_first % 65536 == 0 && config->id_last > config->id_first);
    MUST((uint64_t)config->id_last + 1 - config->id_first >= 65536 && config->id_last % 65536 == 65535);
    MUST(config->listeners.count <= WIRE_LISTENERS_MAX && config->drain_ms <= 3600000);
    MUST(config->log_level < LOG_LEVELS && config->log_format < LOG_FORMATS);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct wire_message message;
    int r = wire_decode(data, size, &message);

    if (r == 0 && message.type == WIRE_CREATE)
        check_create(&message.create);
    if (r == 0 && message.type == WIRE_LIMITS)
        check_limits(&message.limits);
    if (r == 0 && message.type == WIRE_CONFIG)
        check_config(&message.config);
    if (r < 0 && size > 0 && data[size - 1] == '\0' && request_is_guest_path((const char *)data))
        check_path((const char *)data);
    return 0;
}
