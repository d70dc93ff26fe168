/*
 * settings: what a CONFIG message means, opened: listeners, certificate and key, templates and shares.
 *
 * AS ROOT. The reader that said CONFIG is taken to be compromised: every field is checked. What a daemon's settings
 * have in common with the ones before, they share: a listener stays the same socket.
 */
#pragma once

#include "base/buf.h"
#include "base/log.h"
#include "keeper/folders.h"
#include "keeper/listener.h"
#include "keeper/reader.h"
#include "wire/wire.h"

struct settings_listener {
    char name[LISTENER_NAME_SIZE];    /* as in CONFIG; `unix` */
    char address[LISTENER_PATH_SIZE]; /* where it really is */
    int fd;                           /* -1: it has to be opened again */
};

struct settings {
    uint64_t generation;
    int config_fd;
    int certificate_fd; /* -1 without TLS */
    int key_fd;
    struct settings_listener listeners[WIRE_LISTENERS_MAX + 1];
    size_t listener_count;
    char unix_path[LISTENER_PATH_SIZE]; /* "" for none; its listener is the last */
    struct folders folders;
    uint32_t id_first;
    uint32_t id_last;
    uint64_t drain_ms;
    uint64_t disk_max_bytes;
    uint64_t gateway_memory_bytes;
    uint32_t gateway_processes;
    uint64_t gateway_answer_ms;
    enum log_level log_level;
    enum log_format log_format;
};

/* Where `auto` puts the unix socket, and whom it is for. */
struct settings_place {
    const char *unix_path;
    gid_t group;
};

void settings_init(struct settings *settings);

/* The numbers of a CONFIG, before anything is opened. */
_must_use_ int settings_check(const struct wire_config *config, struct error *err);

/* Certificate, key and folders: all but the listeners. On failure the caller releases. */
_must_use_ int settings_open_files(struct settings *settings, const struct wire_config *config,
                                   const struct reader_plan *plan, struct error *err);

/* Those of `before` with the same name are taken from there. On failure the caller releases. */
_must_use_ int settings_open_listeners(struct settings *settings, const struct wire_config *config,
                                       const struct settings_place *place, const struct settings *before,
                                       struct error *err);

/*
 * Before the next gateway gets them: those that the last one has spoiled are opened anew, where they were. `ret_count`
 * says how many.
 */
_must_use_ int settings_mend_listeners(struct settings *settings, const struct settings_place *place, size_t *ret_count,
                                       struct error *err);

/*
 * Close everything. A socket's file goes too, unless `successor` (or NULL) has it; and the ports that a successor has
 * not take no connection any more, whoever else holds them.
 */
void settings_release(struct settings *settings, const struct settings *successor);

/* The SETTINGS message, with its descriptors, which stay the settings'; `names` is what its vector points into. */
size_t settings_to_message(const struct settings *settings, int presets_fd, struct wire_message *ret_message,
                           struct buf *names, int *fds);
