/* A hutch.yaml. What is accepted has everything in its range; what is refused says why, and where. */
#include "fuzz.h"
#include "gateway/config/config.h"
#include "gateway/config/keys.h"
#include "gateway/config/root_part.h"
#include "gateway/config/values.h"

#include <string.h>

static void check_key(const struct config *config, const struct config_key *key)
{
    const void *field = (const char *)config + key->offset;

    if (key->type == CONFIG_NUMBER || key->type == CONFIG_CPUS)
        MUST(*(const uint64_t *)field >= key->least && *(const uint64_t *)field <= key->most);
    else if (key->type == CONFIG_SWITCH)
        MUST(*(const uint64_t *)field <= 1);
    else if (config_key_is_list(key))
        MUST(((const struct config_list *)field)->count <= key->most);
    else
        MUST(key->type == CONFIG_CHOICE || *(char *const *)field != NULL);
}

static void check_accepted(const struct config *config)
{
    struct config_root_part part;
    static uint8_t frame[WIRE_FRAME_MAX];

    for (size_t i = 0; i < config_key_count; i++) {
        if (!config_key_is_in_group(&config_keys[i]))
            check_key(config, &config_keys[i]);
    }
    MUST(config->server.auth == CONFIG_AUTH_REQUIRED || !config_is_beyond_loopback(config));
    for (size_t i = 0; i < config->share_count; i++)
        MUST(config->shares[i].folder[0] == '/' && strstr(config->shares[i].folder, "/../") == NULL);
    for (size_t i = 0; i < config->profile_count; i++)
        MUST(config_value_is_name(config->profiles[i].name));
    if (config_root_part_init(&part, config) == 0)
        MUST(wire_encode(&part.message, frame, sizeof frame) > 0);
    config_root_part_release(&part);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct config_problems problems = config_problems_init();
    struct config *config = NULL;
    int r = config_load("f", (const char *)data, size, NULL, &config, &problems);

    if (r == 0)
        check_accepted(config);
    else
        MUST(r == -EINVAL && problems.count > 0 && problems.text.length > 0);
    config_free(config);
    config_problems_release(&problems);
    return 0;
}
