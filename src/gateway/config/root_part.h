/*
 * root_part: what of the configuration concerns root, as the CONFIG message.
 */
#pragma once

#include "gateway/config/config.h"
#include "wire/wire.h"

/* What the message's vectors point into. */
struct config_root_part {
    struct wire_message message;
    struct buf listeners;
    struct buf templates;
    struct buf shares;
};

/* 0, or -ENOBUFS when there is more than a message holds. Release it in any case. */
_must_use_ int config_root_part_init(struct config_root_part *part, const struct config *config);
void config_root_part_release(struct config_root_part *part);
