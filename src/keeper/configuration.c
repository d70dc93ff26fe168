#include "keeper/configuration.h"

#include "base/beside.h"
#include "base/cleanup.h"
#include "base/sys.h"
#include "keeper/settings.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define USUAL_FILE "/etc/hutch/hutch.yaml"
#define SERVICE_USER "hutch"
#define PROGRAM "hutch-gateway"

enum { LISTEN_MAX = sizeof((struct configuration *)NULL)->listen - sizeof "HUTCH_SERVER_LISTEN=" };

int configuration_init(struct configuration *configuration, const char *file, const char *listen, struct error *err)
{
    struct service_user user = {0};

    configuration->is_needed = file != NULL;
    configuration->program_fd = -1;
    configuration->file_fd = -1;
    configuration->reader = READER_EMPTY;
    int r = service_find_user(SERVICE_USER, &user, err);
    if (r == 0)
        r = beside_open(PROGRAM, &configuration->program_fd, err);
    if (r == 0 && listen != NULL && strlen(listen) > LISTEN_MAX)
        return error_set(err, ERROR_INVALID, 0, "--listen takes at most %d bytes; server.listen in a file takes more",
                         LISTEN_MAX);
    if (listen != NULL)
        (void)snprintf(configuration->listen, sizeof configuration->listen, "HUTCH_SERVER_LISTEN=%s", listen);
    if (r == 0)
        r = environment_init(&configuration->environment, environ, listen != NULL ? configuration->listen : NULL, err);
    configuration->plan = (struct reader_plan){
        .user = user,
        .program_fd = configuration->program_fd,
        .environment = configuration->environment.variables,
        .file = file != NULL ? file : USUAL_FILE,
    };
    return r;
}

void configuration_release(struct configuration *configuration)
{
    reader_end(&configuration->reader);
    close_fd(&configuration->file_fd);
    close_fd(&configuration->program_fd);
}

void configuration_refresh(struct configuration *configuration)
{
    struct error err;
    int program = -1;

    if (beside_open(PROGRAM, &program, &err) < 0)
        return;
    close_fd(&configuration->program_fd);
    configuration->program_fd = configuration->plan.program_fd = program;
}

int configuration_start(struct configuration *configuration, struct error *err)
{
    const char *path = configuration->plan.file;
    _cleanup_fd_ int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

    if (file < 0 && (errno != ENOENT || configuration->is_needed))
        return error_errno(err, "opening the configuration %.200s", path);
    configuration->is_absent = file < 0;
    int r = reader_copy_file(file, "the configuration", &configuration->file_fd, err);
    if (r == 0)
        r = reader_start(&configuration->reader, &configuration->plan, configuration->file_fd, err);
    if (r < 0)
        close_fd(&configuration->file_fd);
    return r;
}

int configuration_take(struct configuration *configuration, struct wire_config *ret_config, struct error *err)
{
    struct wire_message answer;
    int r = reader_take(&configuration->reader, configuration->frame, &answer, err);

    if (r == 0)
        r = settings_check(&answer.config, err);
    if (r < 0)
        close_fd(&configuration->file_fd);
    else
        *ret_config = answer.config;
    return r;
}

int configuration_read(struct configuration *configuration, struct wire_config *ret_config, struct error *err)
{
    int r = configuration_start(configuration, err);

    if (r < 0)
        return r;
    struct pollfd answer = {.fd = configuration->reader.socket, .events = POLLIN};
    (void)poll(&answer, 1, READER_LIMIT_MS);
    return configuration_take(configuration, ret_config, err);
}
