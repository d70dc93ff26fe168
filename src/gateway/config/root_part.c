#include "gateway/config/root_part.h"

#include <string.h>

enum { LISTENERS_BYTES = 4096, FOLDERS_BYTES = 16384, MB_SHIFT = 20 };

static int add(struct buf *strings, uint32_t *count, const char *text)
{
    (*count)++;
    return buf_append(strings, text, strlen(text) + 1);
}

static struct wire_strv vector_of(const struct buf *strings, uint32_t count)
{
    return (struct wire_strv){.data = (const char *)strings->data, .length = (uint32_t)strings->length, .count = count};
}

static int add_listeners(struct config_root_part *part, const struct config *config)
{
    uint32_t count = 0;
    int r = 0;

    for (size_t i = 0; r == 0 && i < config->server.listen.count; i++)
        r = add(&part->listeners, &count, config->server.listen.items[i]);
    part->message.config.listeners = vector_of(&part->listeners, count);
    return r;
}

/* `host` is no folder that root would have to open. */
static int add_templates(struct config_root_part *part, const struct config *config)
{
    uint32_t count = 0;
    int r = 0;

    for (size_t i = 0; r == 0 && i < config->template_count; i++) {
        if (strcmp(config->templates[i].folder, "host") == 0)
            continue;
        r = add(&part->templates, &count, config->templates[i].name);
        if (r == 0)
            r = add(&part->templates, &count, config->templates[i].folder);
    }
    part->message.config.templates = vector_of(&part->templates, count);
    return r;
}

static int add_shares(struct config_root_part *part, const struct config *config)
{
    uint32_t count = 0;
    int r = 0;

    for (size_t i = 0; r == 0 && i < config->share_count; i++) {
        r = add(&part->shares, &count, config->shares[i].name);
        if (r == 0)
            r = add(&part->shares, &count, config->shares[i].folder);
        if (r == 0)
            r = add(&part->shares, &count, config->shares[i].access == CONFIG_ACCESS_RW ? "rw" : "ro");
    }
    part->message.config.shares = vector_of(&part->shares, count);
    return r;
}

int config_root_part_init(struct config_root_part *part, const struct config *config)
{
    const struct config_server *server = &config->server;

    *part = (struct config_root_part){
        .message = {.type = WIRE_CONFIG,
                    .config = {.id_first = (uint32_t)config->sandbox.id_first,
                               .id_last = (uint32_t)config->sandbox.id_last,
                               .unix_socket =
                                   wire_str(strcmp(server->unix_socket, "off") != 0 ? server->unix_socket : ""),
                               .tls_certificate = wire_str(server->tls_certificate),
                               .tls_key = wire_str(server->tls_key),
                               .drain_ms = server->drain_seconds * 1000,
                               .log_level = (uint8_t)config->logging_level,
                               .log_format = (uint8_t)config->logging_format,
                               .disk_max_bytes = config_largest_disk_mb(config) << MB_SHIFT,
                               .gateway_memory_bytes = config->gateway.memory_mb << MB_SHIFT,
                               .gateway_processes = (uint32_t)config->gateway.max_processes,
                               .gateway_answer_ms = config->gateway.answer_seconds * 1000}},
        .listeners = buf_init(LISTENERS_BYTES),
        .templates = buf_init(FOLDERS_BYTES),
        .shares = buf_init(FOLDERS_BYTES),
    };
    int r = add_listeners(part, config);
    if (r == 0)
        r = add_templates(part, config);
    return r < 0 ? r : add_shares(part, config);
}

void config_root_part_release(struct config_root_part *part)
{
    buf_release(&part->listeners);
    buf_release(&part->templates);
    buf_release(&part->shares);
}
