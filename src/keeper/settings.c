#include "keeper/settings.h"

#include "base/cleanup.h"
#include "base/fd.h"
#include "keeper/ids.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

enum {
    DRAIN_MS_MAX = 3600 * 1000,
    ANSWER_MS_MAX = 3600 * 1000,
    GATEWAY_MEMORY_MIN = 64 << 20,
    ID_FIRST_MIN = IDS_PER_SANDBOX,
    BOOT_ID_SIZE = 64,
    BOOT_DIGITS = 16,
};

void settings_init(struct settings *settings)
{
    memset(settings, 0, sizeof *settings);
    settings->config_fd = -1;
    settings->certificate_fd = -1;
    settings->key_fd = -1;
}

int settings_check(const struct wire_config *config, struct error *err)
{
    if (config->id_first < ID_FIRST_MIN || config->id_first % IDS_PER_SANDBOX != 0 ||
        config->id_last < config->id_first || config->id_last % IDS_PER_SANDBOX != IDS_PER_SANDBOX - 1)
        return error_set(err, ERROR_PROTOCOL, EBADMSG, "the reader's answer has a bad range of ids");
    if (config->listeners.count > WIRE_LISTENERS_MAX || config->drain_ms > DRAIN_MS_MAX ||
        config->disk_max_bytes == 0 || config->gateway_memory_bytes < GATEWAY_MEMORY_MIN ||
        config->gateway_processes == 0 || config->gateway_answer_ms == 0 || config->gateway_answer_ms > ANSWER_MS_MAX ||
        config->log_level >= LOG_LEVELS || config->log_format >= LOG_FORMATS ||
        (config->tls_certificate.length == 0) != (config->tls_key.length == 0) ||
        (config->listeners.count == 0 && config->unix_socket.length == 0))
        return error_set(err, ERROR_PROTOCOL, EBADMSG, "the reader's answer has a bad value");
    return 0;
}

static int open_copy(const char *path, const char *key, int *ret_fd, struct error *err)
{
    _cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

    if (fd < 0)
        return error_errno(err, "%s: opening %.200s", key, path);
    int r = reader_copy_file(fd, path, ret_fd, err);
    if (r < 0)
        error_wrap(err, "%s", key);
    return r;
}

int settings_open_files(struct settings *settings, const struct wire_config *config, const struct reader_plan *plan,
                        struct error *err)
{
    settings->id_first = config->id_first;
    settings->id_last = config->id_last;
    settings->drain_ms = config->drain_ms;
    settings->disk_max_bytes = config->disk_max_bytes;
    settings->gateway_memory_bytes = config->gateway_memory_bytes;
    settings->gateway_processes = config->gateway_processes;
    settings->gateway_answer_ms = config->gateway_answer_ms;
    settings->log_level = (enum log_level)config->log_level;
    settings->log_format = (enum log_format)config->log_format;
    int r = folders_open(&settings->folders, config, err);
    if (r < 0 || config->tls_certificate.length == 0)
        return r;
    r = open_copy(config->tls_certificate.text, "server.tls_certificate", &settings->certificate_fd, err);
    if (r == 0)
        r = open_copy(config->tls_key.text, "server.tls_key", &settings->key_fd, err);
    if (r == 0)
        r = reader_check_certificate(plan, settings->certificate_fd, settings->key_fd, err);
    return r;
}

static int find(const struct settings *settings, const char *name)
{
    for (size_t i = 0; settings != NULL && i < settings->listener_count; i++) {
        if (strcmp(settings->listeners[i].name, name) == 0)
            return settings->listeners[i].fd;
    }
    return -1;
}

/* 0 with a copy of an open one, or -ENOENT. */
static int take_over(int fd, int *ret_fd)
{
    if (fd < 0)
        return -ENOENT;
    *ret_fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    return *ret_fd < 0 ? -errno : 0;
}

static struct settings_listener *next_listener(struct settings *settings, const char *name)
{
    struct settings_listener *listener = &settings->listeners[settings->listener_count];

    (void)snprintf(listener->name, sizeof listener->name, "%s", name);
    listener->fd = -1;
    return listener;
}

static void add_listener(struct settings *settings, struct settings_listener *listener)
{
    listener_describe(listener->fd, listener->address, sizeof listener->address);
    settings->listener_count++;
}

static int open_unix(struct settings *settings, const char *wanted, const struct settings_place *place,
                     const struct settings *before, struct error *err)
{
    struct settings_listener *listener = next_listener(settings, "unix");
    const char *path = strcmp(wanted, "auto") == 0 ? place->unix_path : wanted;

    (void)snprintf(settings->unix_path, sizeof settings->unix_path, "%s", path);
    bool is_same = before != NULL && strcmp(before->unix_path, settings->unix_path) == 0;
    int r = take_over(is_same ? find(before, "unix") : -1, &listener->fd);
    if (r == -ENOENT)
        r = listener_open_unix(path, place->group, &listener->fd, err);
    else if (r < 0)
        return error_set(err, ERROR_SYSTEM, -r, "listening on %s", path);
    if (r < 0)
        settings->unix_path[0] = '\0'; /* not ours to remove */
    else
        add_listener(settings, listener);
    return r;
}

int settings_open_listeners(struct settings *settings, const struct wire_config *config,
                            const struct settings_place *place, const struct settings *before, struct error *err)
{
    int r = 0;

    for (const char *name = NULL; r == 0 && (name = wire_strv_next(config->listeners, name)) != NULL;) {
        if (strlen(name) >= LISTENER_NAME_SIZE || find(settings, name) >= 0)
            return error_set(err, ERROR_PROTOCOL, EBADMSG, "the reader's answer has a bad address");
        struct settings_listener *listener = next_listener(settings, name);
        r = take_over(find(before, name), &listener->fd);
        if (r == -ENOENT)
            r = listener_open(name, &listener->fd, err);
        else if (r < 0)
            return error_set(err, ERROR_SYSTEM, -r, "listening on %s", name);
        if (r == 0)
            add_listener(settings, listener);
    }
    return r == 0 && config->unix_socket.length > 0 ? open_unix(settings, config->unix_socket.text, place, before, err)
                                                    : r;
}

int settings_mend_listeners(struct settings *settings, const struct settings_place *place, size_t *ret_count,
                            struct error *err)
{
    int r = 0;

    *ret_count = 0;
    for (size_t i = 0; r == 0 && i < settings->listener_count; i++) {
        struct settings_listener *listener = &settings->listeners[i];
        if (listener->fd >= 0 && listener_is_sound(listener->fd, listener->address))
            continue;
        close_fd(&listener->fd);
        r = listener->address[0] == '/' ? listener_open_unix(listener->address, place->group, &listener->fd, err)
                                        : listener_open(listener->address, &listener->fd, err);
        *ret_count += r == 0 ? 1 : 0;
    }
    return r;
}

/*
 * A gateway has it too, and may keep it. It could undo a shutdown() by listening again; a filter that is locked stays,
 * and drops whatever comes. Without the shutdown a gateway that behaves closes it in peace. (A unix socket is out of
 * reach without its file.)
 */
static void silence(int fd)
{
    struct sock_filter drop = BPF_STMT(BPF_RET | BPF_K, 0);
    struct sock_fprog program = {.len = 1, .filter = &drop};

    (void)setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program);
    (void)setsockopt(fd, SOL_SOCKET, SO_LOCK_FILTER, &(int){1}, sizeof(int));
}

void settings_release(struct settings *settings, const struct settings *successor)
{
    if (settings->unix_path[0] != '\0' && (successor == NULL || strcmp(successor->unix_path, settings->unix_path) != 0))
        (void)unlink(settings->unix_path);
    for (size_t i = 0; i < settings->listener_count; i++) {
        struct settings_listener *listener = &settings->listeners[i];
        if (successor != NULL && find(successor, listener->name) < 0)
            silence(listener->fd);
        close_fd(&listener->fd);
    }
    folders_close(&settings->folders);
    close_fd(&settings->config_fd);
    close_fd(&settings->certificate_fd);
    close_fd(&settings->key_fd);
    settings_init(settings);
}

/* A part of the random number that the kernel gives to each start: 0 when it can't be read. No clock tells as much. */
static uint64_t read_boot(void)
{
    char text[BOOT_ID_SIZE] = {0};
    char digits[BOOT_DIGITS + 1] = {0};
    size_t count = 0;
    _cleanup_fd_ int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t length = fd >= 0 ? read(fd, text, sizeof text - 1) : 0;

    for (ssize_t i = 0; i < length && count < BOOT_DIGITS; i++) {
        if (text[i] != '-')
            digits[count++] = text[i];
    }
    return strtoull(digits, NULL, 16);
}

size_t settings_to_message(const struct settings *settings, int presets_fd, struct wire_message *ret_message,
                           struct buf *names, int *fds)
{
    size_t count = 0;
    uint32_t listeners = 0;
    uint32_t flags = settings->unix_path[0] != '\0' ? WIRE_SETTINGS_UNIX : 0;

    fds[count++] = settings->config_fd;
    if (presets_fd >= 0) {
        flags |= WIRE_SETTINGS_PRESETS;
        fds[count++] = presets_fd;
    }
    if (settings->certificate_fd >= 0) {
        flags |= WIRE_SETTINGS_TLS;
        fds[count++] = settings->certificate_fd;
        fds[count++] = settings->key_fd;
    }
    for (size_t i = 0; i < settings->listener_count; i++) {
        const struct settings_listener *listener = &settings->listeners[i];
        if (buf_append(names, listener->name, strlen(listener->name) + 1) < 0)
            break;
        fds[count++] = listener->fd;
        listeners++;
    }
    *ret_message = (struct wire_message){
        .type = WIRE_SETTINGS,
        .settings = {.generation = settings->generation,
                     .boot = read_boot(),
                     .flags = flags,
                     .listeners = {(const char *)names->data, (uint32_t)names->length, listeners}},
    };
    return count;
}
