#include "keeper/renew.h"

#include "base/cleanup.h"
#include "keeper/gateway.h"
#include "keeper/notify.h"

int renew_open(struct daemon *daemon, struct settings *settings, const struct wire_config *config,
               const struct settings *before, struct error *err)
{
    struct settings_place place = {.unix_path = daemon->unix_path, .group = daemon->configuration.plan.user.gid};

    settings_init(settings);
    settings->generation = before != NULL ? before->generation + 1 : 1;
    settings->config_fd = TAKE_FD(daemon->configuration.file_fd);
    int r = settings_open_files(settings, config, &daemon->configuration.plan, err);
    if (r == 0)
        r = settings_open_listeners(settings, config, &place, before, err);
    if (r < 0)
        settings_release(settings, before);
    return r;
}

/* The one that runs keeps what it has when this fails: less memory than it uses can't be set. */
static void limit_gateway(struct daemon *daemon)
{
    const struct settings *settings = &daemon->settings;
    struct error err = {0};

    if (daemon->enclosure.cgroups == NULL) /* between two of them */
        return;
    if (enclosure_limit(&daemon->enclosure, settings->gateway_memory_bytes, settings->gateway_processes, &err) < 0)
        log_event(&daemon->log, LOG_LEVEL_WARN, "gateway-not-limited", LOG_TEXT("reason", err.message));
}

void renew_put_in_force(struct daemon *daemon)
{
    const struct settings *settings = &daemon->settings;

    daemon->log.level = settings->log_level;
    daemon->log.format = settings->log_format;
    daemon->relay.format = settings->log_format;
    daemon->configuration.reader.relay.format = settings->log_format;
    keeper_set_folders(daemon->keeper, &settings->folders);
    keeper_set_disk_max(daemon->keeper, settings->disk_max_bytes);
    limit_gateway(daemon);
    for (size_t i = 0; i < settings->listener_count; i++) {
        char address[LISTENER_PATH_SIZE];
        listener_describe(settings->listeners[i].fd, address, sizeof address);
        log_event(&daemon->log, LOG_LEVEL_INFO, "listening", LOG_TEXT("address", address));
    }
}

void renew_end(struct daemon *daemon, const char *problem)
{
    if (problem[0] != '\0')
        log_event(&daemon->log, LOG_LEVEL_ERROR, "not-reloaded", LOG_TEXT("reason", problem));
    else
        log_event(&daemon->log, LOG_LEVEL_INFO, "reloaded", LOG_NUMBER("generation", daemon->settings.generation));
    if (daemon->reload.until_ns == 0 && !daemon->reload.is_wanted)
        notify_send("READY=1");
}

/* In force only when all of it is good. */
void renew_finish(struct daemon *daemon)
{
    struct wire_config config;
    struct settings settings;
    struct error err = {0};
    int r = configuration_take(&daemon->configuration, &config, &err);

    settings_init(&settings);
    if (r == 0)
        r = renew_open(daemon, &settings, &config, &daemon->settings, &err);
    if (r < 0) {
        renew_end(daemon, err.message);
        return;
    }
    if (settings.id_first != daemon->settings.id_first || settings.id_last != daemon->settings.id_last)
        log_event(&daemon->log, LOG_LEVEL_WARN, "needs-restart",
                  LOG_TEXT("reason", "sandbox.id_first and sandbox.id_last take effect when the daemon starts"));
    struct settings before = daemon->settings;
    daemon->settings = settings;
    settings_release(&before, &daemon->settings);
    renew_put_in_force(daemon);
    /* The next gateway gets them anyway, and one that is just starting when it is ready. */
    if (daemon->reload.told == 0)
        renew_end(daemon, "");
    else if (daemon->reload.heard != 0 && gateway_send_settings(daemon) < 0)
        gateway_lose(daemon, "it reads nothing");
}

void renew_start(struct daemon *daemon)
{
    struct error err = {0};

    daemon->reload.is_wanted = false;
    notify_reloading();
    log_event(&daemon->log, LOG_LEVEL_INFO, "reloading", LOG_TEXT("file", daemon->configuration.plan.file));
    if (configuration_start(&daemon->configuration, &err) < 0)
        renew_end(daemon, err.message);
}
