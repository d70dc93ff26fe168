/*
 * values: from a text to the value of a key, or what was expected instead. Pure.
 */
#pragma once

#include "gateway/config/config.h"
#include "gateway/config/keys.h"
#include "gateway/config/memory.h"

/* `base`: what the key's offset counts from. 0, or -EINVAL and the reason, or -ENOMEM. */
_must_use_ int config_value_set(struct config_memory *memory, const struct config_key *key, void *base,
                                const char *text, struct error *err);

/* Make room for a list of `count` entries, empty for now; then add them one by one. */
_must_use_ int config_value_start(struct config_memory *memory, const struct config_key *key, void *base, size_t count,
                                  struct error *err);
_must_use_ int config_value_add(struct config_memory *memory, const struct config_key *key, void *base,
                                const char *text, struct error *err);

/* The same for names with texts: as many as config_value_start() was told. */
_must_use_ int config_value_add_pair(struct config_memory *memory, const struct config_key *key, void *base,
                                     const char *name, const char *text, struct error *err);

/* A whole list: lines, or where entries have no commas in them, parts between commas. */
_must_use_ int config_value_set_list(struct config_memory *memory, const struct config_key *key, void *base,
                                     const char *text, struct error *err);

/* What an administrator may call a profile, template or share. */
bool config_value_is_name(const char *text);

/* A listener that only this machine reaches. */
bool config_value_is_loopback(const char *address);
