#include "gateway/handover.h"

#include "base/cleanup.h"
#include "base/fd.h"
#include "wire/link.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PRESETS_BYTES_MAX = 4096, SANDBOXES_MAX = 16384 };

#define CONFIG_NAME "hutch.yaml"

/* What a SETTINGS message carries, before it is in force. Views point into the message. */
struct offer {
    const struct wire_settings *settings;
    int config_fd;
    int presets_fd;
    int certificate_fd;
    int key_fd;
    int listener_fds[HANDOVER_LISTENERS_MAX];
    size_t listener_count;
};

static int take_apart(const struct wire_settings *settings, const int *fds, size_t fd_count, struct offer *ret_offer)
{
    bool has_presets = (settings->flags & WIRE_SETTINGS_PRESETS) != 0;
    bool has_tls = (settings->flags & WIRE_SETTINGS_TLS) != 0;
    size_t at = 0;

    *ret_offer = (struct offer){.settings = settings, .presets_fd = -1, .certificate_fd = -1, .key_fd = -1};
    if (settings->listeners.count > HANDOVER_LISTENERS_MAX ||
        fd_count != 1 + (has_presets ? 1U : 0U) + (has_tls ? 2U : 0U) + settings->listeners.count)
        return -EBADMSG;
    ret_offer->config_fd = fds[at++];
    if (has_presets)
        ret_offer->presets_fd = fds[at++];
    if (has_tls) {
        ret_offer->certificate_fd = fds[at++];
        ret_offer->key_fd = fds[at++];
    }
    ret_offer->listener_count = settings->listeners.count;
    memcpy(ret_offer->listener_fds, fds + at, ret_offer->listener_count * sizeof *fds);
    return 0;
}

/* All of a small file, whatever its offset is: others have the same descriptor. */
static ssize_t read_whole(int fd, char *text, size_t size)
{
    size_t have = 0;

    while (have < size) {
        ssize_t n = pread(fd, text + have, size - have, (off_t)have);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        if (n == 0)
            break;
        have += (size_t)n;
    }
    return (ssize_t)have;
}

static int load_config(int fd, struct config **ret_config, struct error *err)
{
    struct config_problems problems = config_problems_init();
    char *text = malloc(CONFIG_BYTES_MAX + 1);
    ssize_t n = text != NULL ? read_whole(fd, text, CONFIG_BYTES_MAX + 1) : -ENOMEM;
    int r = n < 0 ? (int)n : config_load(CONFIG_NAME, text, (size_t)n, environ, ret_config, &problems);

    if (r == -EINVAL)
        (void)error_set(err, ERROR_INVALID, 0, "%.*s", (int)problems.text.length, (const char *)problems.text.data);
    else if (r < 0)
        (void)error_set(err, ERROR_SYSTEM, -r, "reading the configuration");
    config_problems_release(&problems);
    free(text);
    return r;
}

static char *copy_preset(const char *text, const char *end)
{
    size_t length = text < end ? strnlen(text, (size_t)(end - text)) : 0;

    return length > 0 ? strndup(text, length) : NULL;
}

/* Two strings and a key. Without the key nothing that is sealed outlives this gateway. */
static int load_presets(int fd, struct handover_presets *ret_presets, struct seal *ret_seal, struct error *err)
{
    char text[PRESETS_BYTES_MAX];
    ssize_t n = read_whole(fd, text, sizeof text);

    if (n < 0)
        return error_set(err, ERROR_SYSTEM, (int)-n, "reading the first credentials");
    const char *end = text + n;
    const char *second = text + strnlen(text, (size_t)n) + 1;
    ret_presets->admin_password = copy_preset(text, end);
    ret_presets->api_key = copy_preset(second, end);
    const char *key = second < end ? second + strnlen(second, (size_t)(end - second)) + 1 : end;
    if (end - key == SEAL_KEY_BYTES)
        memcpy(ret_seal->key, key, SEAL_KEY_BYTES);
    explicit_bzero(text, sizeof text);
    return 0;
}

static struct handover_listener *find(struct handover *handover, const char *name)
{
    for (size_t i = 0; i < handover->listener_count; i++) {
        if (strcmp(handover->listeners[i].name, name) == 0)
            return &handover->listeners[i];
    }
    return NULL;
}

/* The ones that stay keep their descriptor; the offer's copies of them are closed with the rest of it. */
static void take_listeners(struct handover *handover, struct offer *offer, int *gone, size_t *ret_gone_count)
{
    struct handover_listener now[HANDOVER_LISTENERS_MAX];
    const char *name = NULL;

    for (size_t i = 0; i < offer->listener_count; i++) {
        name = wire_strv_next(offer->settings->listeners, name);
        struct handover_listener *old = find(handover, name);
        (void)snprintf(now[i].name, sizeof now[i].name, "%s", name);
        now[i].is_unix = strcmp(name, "unix") == 0;
        now[i].fd = old != NULL ? TAKE_FD(old->fd) : TAKE_FD(offer->listener_fds[i]);
    }
    *ret_gone_count = 0;
    for (size_t i = 0; i < handover->listener_count; i++) {
        if (handover->listeners[i].fd >= 0)
            gone[(*ret_gone_count)++] = handover->listeners[i].fd;
    }
    memcpy(handover->listeners, now, offer->listener_count * sizeof *now);
    handover->listener_count = offer->listener_count;
}

int handover_update(struct handover *handover, const struct wire_settings *settings, int *fds, size_t fd_count,
                    int *gone, size_t *ret_gone_count, struct config **ret_replaced, struct error *err)
{
    struct offer offer;
    struct config *config = NULL;
    bool is_first = handover->config == NULL;
    int r = take_apart(settings, fds, fd_count, &offer);

    if (r < 0) {
        fd_close_many(fds, fd_count);
        return error_set(err, ERROR_PROTOCOL, -r, "the keeper's settings");
    }
    r = load_config(offer.config_fd, &config, err);
    if (r == 0 && is_first && offer.presets_fd >= 0)
        r = load_presets(offer.presets_fd, &handover->presets, &handover->seal, err);
    if (r == 0) {
        *ret_replaced = handover->config;
        handover->config = config;
        handover->generation = settings->generation;
        handover->boot = settings->boot;
        take_listeners(handover, &offer, gone, ret_gone_count);
        close_fd(&handover->certificate_fd);
        close_fd(&handover->key_fd);
        handover->certificate_fd = TAKE_FD(offer.certificate_fd);
        handover->key_fd = TAKE_FD(offer.key_fd);
    } else {
        config_free(config);
    }
    close_fd(&offer.config_fd);
    close_fd(&offer.presets_fd);
    close_fd(&offer.certificate_fd);
    close_fd(&offer.key_fd);
    fd_close_many(offer.listener_fds, offer.listener_count);
    return r;
}

static int add_sandbox(struct handover *handover, const struct wire_adopt *adopt, const int *fds, size_t fd_count)
{
    size_t count = handover->sandbox_count;

    if (fd_count != 1 || count == SANDBOXES_MAX)
        return -EBADMSG;
    /* Twice as many when it is full, which is when the count is a power of two. */
    if ((count & (count - 1)) == 0) {
        void *more = realloc(handover->sandboxes, (count == 0 ? 1 : 2 * count) * sizeof *handover->sandboxes);
        if (more == NULL)
            return -ENOMEM;
        handover->sandboxes = more;
    }
    handover->sandboxes[handover->sandbox_count++] =
        (struct handover_sandbox){.sandbox = adopt->sandbox, .uid_first = adopt->uid_first, .guest_fd = fds[0]};
    return 0;
}

static int take_settings(struct handover *handover, uint8_t *frame, struct error *err)
{
    struct wire_message message;
    struct config *none = NULL;
    int gone[HANDOVER_LISTENERS_MAX];
    size_t gone_count = 0;
    int fds[FD_PASS_MAX];
    size_t fd_count = 0;
    int r = link_receive(handover->keeper_fd, WIRE_BY_KEEPER, WIRE_IN_STARTING, frame, &message, fds, &fd_count);

    if (r <= 0 || message.type != WIRE_SETTINGS) {
        if (r > 0)
            fd_close_many(fds, fd_count);
        return error_set(err, ERROR_PROTOCOL, r < 0 ? -r : EPIPE, "hearing from the keeper");
    }
    return handover_update(handover, &message.settings, fds, fd_count, gone, &gone_count, &none, err);
}

static int take_sandboxes(struct handover *handover, uint8_t *frame, struct error *err)
{
    for (;;) {
        struct wire_message message;
        int fds[FD_PASS_MAX];
        size_t fd_count = 0;
        int r = link_receive(handover->keeper_fd, WIRE_BY_KEEPER, WIRE_IN_RUNNING, frame, &message, fds, &fd_count);
        if (r > 0 && message.type == WIRE_ADOPTED)
            return 0;
        if (r > 0 && message.type == WIRE_ADOPT)
            r = add_sandbox(handover, &message.adopt, fds, fd_count);
        else if (r > 0)
            r = -EBADMSG; /* one that has ended meanwhile is told of only later */
        else if (r == 0)
            r = -EPIPE;
        if (r < 0) {
            fd_close_many(fds, fd_count);
            return error_set(err, ERROR_PROTOCOL, -r, "adopting sandboxes");
        }
    }
}

int handover_take(int keeper_fd, struct handover *ret_handover, struct error *err)
{
    struct wire_message attach = {.type = WIRE_ATTACH, .attach = {.pid = (uint32_t)getpid()}};
    struct handover handover = HANDOVER_EMPTY;
    static uint8_t frame[WIRE_FRAME_MAX]; /* too much for the stack, and there is one thread so far */

    handover.keeper_fd = keeper_fd;
    randombytes_buf(handover.seal.key, sizeof handover.seal.key);
    int r = link_send(keeper_fd, &attach, NULL, 0);
    if (r < 0)
        r = error_set(err, ERROR_SYSTEM, -r, "talking to the keeper");
    if (r == 0)
        r = take_settings(&handover, frame, err);
    if (r == 0)
        r = take_sandboxes(&handover, frame, err);
    if (r < 0) {
        handover_release(&handover);
        return r;
    }
    *ret_handover = handover;
    return 0;
}

void handover_forget_presets(struct handover *handover)
{
    char **presets[] = {&handover->presets.admin_password, &handover->presets.api_key};

    for (size_t i = 0; i < sizeof presets / sizeof *presets; i++) {
        if (*presets[i] != NULL)
            explicit_bzero(*presets[i], strlen(*presets[i]));
        free(*presets[i]);
        *presets[i] = NULL;
    }
}

void handover_release(struct handover *handover)
{
    for (size_t i = 0; i < handover->listener_count; i++)
        close_fd(&handover->listeners[i].fd);
    for (size_t i = 0; i < handover->sandbox_count; i++)
        close_fd(&handover->sandboxes[i].guest_fd);
    free(handover->sandboxes);
    handover_forget_presets(handover);
    explicit_bzero(&handover->seal, sizeof handover->seal);
    config_free(handover->config);
    close_fd(&handover->certificate_fd);
    close_fd(&handover->key_fd);
    close_fd(&handover->keeper_fd);
    *handover = HANDOVER_EMPTY;
}

int handover_say_ready(const struct handover *handover)
{
    struct wire_message message = {.type = WIRE_READY, .ready = {.generation = handover->generation}};

    return link_send(handover->keeper_fd, &message, NULL, 0);
}

int handover_say_unable(const struct handover *handover, const char *why)
{
    struct wire_message message = {.type = WIRE_UNABLE, .unable = {.detail = wire_str(why)}};

    if (message.unable.detail.length >= ERROR_MESSAGE_MAX)
        message.unable.detail = wire_str("the reason is too long to be told");
    return link_send(handover->keeper_fd, &message, NULL, 0);
}

int handover_say_reloaded(const struct handover *handover, const char *problem)
{
    struct wire_message message = {.type = WIRE_RELOADED,
                                   .reloaded = {.generation = handover->generation, .detail = wire_str(problem)}};

    return link_send(handover->keeper_fd, &message, NULL, 0);
}

int handover_check_credentials(const struct handover *handover, bool has_stored, struct error *err)
{
    const struct handover_presets *presets = &handover->presets;

    if (has_stored || presets->admin_password != NULL || presets->api_key != NULL ||
        !config_is_beyond_loopback(handover->config))
        return 0;
    return error_set(err, ERROR_DENIED, 0,
                     "server.listen has an address beyond loopback, and no credential was ever set: set "
                     "HUTCH_ADMIN_PASSWORD or HUTCH_API_KEY for the first start");
}
