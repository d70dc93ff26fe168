#include "gateway/gateway.h"

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/log.h"
#include "wire/link.h"

#include <string.h>
#include <unistd.h>

struct gateway {
    struct handover *handover;
    struct log log;
    bool is_draining;
    size_t left; /* sandboxes that are not gone yet */
    uint8_t frame[WIRE_FRAME_MAX];
};

static int reload(struct gateway *gateway, const struct wire_settings *settings, int *fds, size_t fd_count)
{
    struct config *replaced = NULL;
    int gone[HANDOVER_LISTENERS_MAX];
    size_t gone_count = 0;
    struct error err = {0};
    int r = handover_update(gateway->handover, settings, fds, fd_count, gone, &gone_count, &replaced, &err);

    fd_close_many(gone, gone_count);
    config_free(replaced);
    return handover_say_reloaded(gateway->handover, r < 0 ? err.message : "");
}

static int say_drained(const struct gateway *gateway)
{
    struct wire_message message = {.type = WIRE_DRAINED, .drained = {.left = (uint32_t)gateway->left}};

    return link_send(gateway->handover->keeper_fd, &message, NULL, 0);
}

static int drain(struct gateway *gateway)
{
    int r = 0;

    gateway->is_draining = true;
    for (size_t i = 0; r == 0 && i < gateway->handover->sandbox_count; i++) {
        struct wire_message message = {.type = WIRE_DESTROY,
                                       .destroy = {.sandbox = gateway->handover->sandboxes[i].sandbox}};
        r = link_send(gateway->handover->keeper_fd, &message, NULL, 0);
    }
    return r == 0 && gateway->left == 0 ? say_drained(gateway) : r;
}

static int handle(struct gateway *gateway, const struct wire_message *message, int *fds, size_t fd_count)
{
    switch ((int)message->type) { /* only some of them matter here */
    case WIRE_SETTINGS:
        return reload(gateway, &message->settings, fds, fd_count);
    case WIRE_DRAIN:
        return drain(gateway);
    case WIRE_GONE:
        gateway->left -= gateway->left > 0 ? 1 : 0;
        return gateway->is_draining && gateway->left == 0 ? say_drained(gateway) : 0;
    default:
        fd_close_many(fds, fd_count);
        return 0;
    }
}

static int serve(struct gateway *gateway)
{
    int r = handover_say_ready(gateway->handover);

    while (r >= 0) {
        struct wire_message message;
        int fds[FD_PASS_MAX];
        size_t fd_count = 0;
        r = link_receive(gateway->handover->keeper_fd, WIRE_BY_KEEPER, WIRE_IN_RUNNING, gateway->frame, &message, fds,
                         &fd_count);
        if (r == 0)
            return 0;
        if (r > 0)
            r = handle(gateway, &message, fds, fd_count);
    }
    return r;
}

int gateway_run(struct handover *handover)
{
    static struct gateway gateway;
    const struct config *config = handover->config;
    struct error err = {0};

    gateway = (struct gateway){
        .handover = handover,
        .left = handover->sandbox_count,
        .log = {.fd = STDERR_FILENO,
                .level = (enum log_level)config->logging_level,
                .format = (enum log_format)config->logging_format,
                .program = "hutch-gateway"},
    };
    if (handover_check_credentials(handover, false, &err) < 0)
        return handover_say_unable(handover, err.message) < 0 ? 2 : 1;
    log_event(&gateway.log, LOG_LEVEL_INFO, "started", LOG_NUMBER("listeners", handover->listener_count),
              LOG_NUMBER("adopted", handover->sandbox_count));
    int r = serve(&gateway);
    if (r < 0)
        log_event(&gateway.log, LOG_LEVEL_ERROR, "ending", LOG_TEXT("reason", strerror(-r)));
    return r < 0 ? 1 : 0;
}
