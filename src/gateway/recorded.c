#include "gateway/recorded.h"

#include <stdlib.h>
#include <string.h>

static uint64_t number_of(const json_t *root, const char *name)
{
    return (uint64_t)json_integer_value(json_object_get(root, name));
}

static bool switch_of(const json_t *root, const char *name)
{
    return json_is_true(json_object_get(root, name));
}

/* NULL: there is none. -EINVAL: another daemon sealed it. */
static int open_env(const struct seal *seal, const char *id, json_t *root, const json_t **ret_env)
{
    const char *sealed = json_string_value(json_object_get(root, "sealed_env"));
    size_t length = 0;

    *ret_env = NULL;
    if (sealed == NULL)
        return 0;
    char *text = seal_open(seal, id, sealed, &length);
    json_t *env = text != NULL ? json_loadb(text, length, 0, NULL) : NULL;
    if (text != NULL)
        explicit_bzero(text, length);
    free(text);
    if (env == NULL || json_object_set_new(root, "env", env) < 0)
        return -EINVAL;
    *ret_env = env;
    return 0;
}

int recorded_read_sandbox(const struct seal *seal, const struct store_sandbox *row,
                          struct recorded_sandbox *ret_sandbox)
{
    json_t *root = row->settings != NULL ? json_loads(row->settings, 0, NULL) : NULL;
    const json_t *env = NULL;
    int r = root == NULL ? -EINVAL : open_env(seal, row->id, root, &env);
    size_t count = json_array_size(env);

    if (r < 0 || count > RECORDED_ENV_MAX) {
        json_decref(root);
        return -EINVAL;
    }
    *ret_sandbox = (struct recorded_sandbox){.root = root, .features = (uint32_t)number_of(root, "features")};
    for (size_t i = 0; i < count; i++)
        ret_sandbox->env[i] = json_string_value(json_array_get(env, i));
    ret_sandbox->settings = (struct sandbox_settings){
        .class = {.template_name = json_string_value(json_object_get(root, "template")),
                  .root_fd = -1,
                  .user = (uint32_t)number_of(root, "user"),
                  .filter = (uint8_t)number_of(root, "filter"),
                  .network = (enum sandbox_network)number_of(root, "network"),
                  .root_is_writable = switch_of(root, "root_is_writable"),
                  .disk_is_image = switch_of(root, "disk_is_image"),
                  .disk_bytes = number_of(root, "disk_bytes"),
                  .disk_inodes = number_of(root, "disk_inodes")},
        .limits = {.memory_bytes = number_of(root, "memory_bytes"),
                   .processes = (uint32_t)number_of(root, "processes"),
                   .cpu_milli = (uint32_t)number_of(root, "cpu_milli"),
                   .cpu_weight = (uint32_t)number_of(root, "cpu_weight")},
        .idle_timeout_ms = number_of(root, "idle_timeout_ms"),
        .lifetime_ms = number_of(root, "lifetime_ms"),
        .owner = row->owner,
        .agent = row->agent,
        .env = ret_sandbox->env,
        .extra = json_string_value(json_object_get(root, "extra")),
    };
    return 0;
}

/* A row's strings live no longer than its callback: these live as long as the settings. */
static const char *keep(json_t *root, const char *name, const char *text)
{
    if (text == NULL || json_object_set_new(root, name, json_string(text)) < 0)
        return NULL;
    return json_string_value(json_object_get(root, name));
}

int recorded_read_exec(const struct store_exec *row, struct recorded_exec *ret_exec)
{
    json_t *root = row->settings != NULL ? json_loads(row->settings, 0, NULL) : NULL;

    if (root == NULL)
        return -EINVAL;
    *ret_exec = (struct recorded_exec){
        .root = root,
        .channel = row->channel,
        .started_ms = (uint64_t)row->started_ms,
        .owner = keep(root, "owner", row->owner),
        .settings = {.shell = keep(root, "command", row->command),
                     .folder = keep(root, "folder", row->folder),
                     .agent = keep(root, "agent", row->agent),
                     .extra = json_string_value(json_object_get(root, "extra")),
                     .uid = (uint32_t)number_of(root, "uid"),
                     .filter = (uint8_t)number_of(root, "filter"),
                     .mode = (enum exec_mode)number_of(root, "mode"),
                     .has_terminal = switch_of(root, "has_terminal"),
                     .has_stdin = switch_of(root, "has_stdin"),
                     .is_attached = switch_of(root, "is_attached"),
                     .stdout_cap = number_of(root, "stdout_cap"),
                     .stderr_cap = number_of(root, "stderr_cap"),
                     .timeout_ms = number_of(root, "timeout_ms")},
    };
    return 0;
}
