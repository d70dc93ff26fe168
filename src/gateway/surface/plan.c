#include "gateway/surface/plan.h"

#include "gateway/policy/blocklist.h"
#include "gateway/surface/tools.h"
#include "wire/wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NOBODY = 65534, EXTRA_MAX = SANDBOX_SETTINGS_MAX, YEAR = 366 * 86400, MB_SHIFT = 20 };

#define AT(member) offsetof(struct plan_body, member)

static const struct body_field limit_items[] = {
    {"cpu", BODY_MILLI, AT(limits.cpu_milli), false, 10, 4096000, NULL, NULL},
    {"memory_mb", BODY_NUMBER, AT(limits.memory_mb), false, 2, 16777216, NULL, NULL},
    {"disk_mb", BODY_NUMBER, AT(limits.disk_mb), false, 1, 8388608, NULL, NULL},
    {"max_processes", BODY_NUMBER, AT(limits.max_processes), false, 1, 1048576, NULL, NULL},
    {"timeout_seconds", BODY_NUMBER, AT(limits.timeout_seconds), false, 1, YEAR, NULL, NULL},
};
static const struct body_fields limit_fields = BODY_FIELDS(limit_items);

static const struct body_field network_items[] = {
    {"mode", BODY_TEXT, AT(network_mode), false, 0, 0, "none|allowlist|full", NULL},
    {"domain_allowlist", BODY_TEXTS, AT(domain_allowlist), false, 0, 1024, NULL, NULL},
    {"domain_denylist", BODY_TEXTS, AT(domain_denylist), false, 0, 1024, NULL, NULL},
};
static const struct body_fields network_fields = BODY_FIELDS(network_items);

static const struct body_field items[] = {
    {"profile", BODY_TEXT, AT(profile), false, 1, 64, NULL, NULL},
    {"template", BODY_TEXT, AT(template_name), false, 1, 63, NULL, NULL},
    {"base_image", BODY_TEXT, AT(base_image), false, 1, 63, NULL, NULL},
    {"tools", BODY_TEXTS, AT(tools), false, 0, 16, NULL, NULL},
    {"files", BODY_VALUE, AT(files), false, 0, PLAN_FILES_MAX, NULL, NULL},
    {"network", BODY_PART, 0, false, 0, 0, NULL, &network_fields},
    {"resource_limits", BODY_PART, 0, false, 0, 0, NULL, &limit_fields},
    {"command_blocklist", BODY_TEXTS, AT(command_blocklist), false, 0, 128, NULL, NULL},
    {"env", BODY_MAP, AT(env), false, 0, 256, NULL, NULL},
    {"user", BODY_TEXT, AT(user), false, 0, 0, "nobody|root", NULL},
    {"root", BODY_TEXT, AT(root), false, 0, 0, "ro|rw", NULL},
    {"idle_timeout_seconds", BODY_NUMBER, AT(idle_timeout_seconds), false, 0, YEAR, NULL, NULL},
    {"labels", BODY_MAP, AT(labels), false, 0, 64, NULL, NULL},
};
const struct body_fields plan_fields = BODY_FIELDS(items);

static uint64_t choose(struct body_number wish, uint64_t of_profile, uint64_t otherwise)
{
    if (wish.given)
        return (uint64_t)wish.value;
    return of_profile != CONFIG_NOT_GIVEN ? of_profile : otherwise;
}

static struct config_limits choose_limits(const struct plan_limits *wish, const struct config_profile *profile,
                                          const struct config_limits *otherwise)
{
    static const struct config_limits none = {CONFIG_NOT_GIVEN, CONFIG_NOT_GIVEN, CONFIG_NOT_GIVEN, CONFIG_NOT_GIVEN,
                                              CONFIG_NOT_GIVEN};
    const struct config_limits *named = profile != NULL ? &profile->limits : &none;

    return (struct config_limits){
        .cpu_milli = choose(wish->cpu_milli, named->cpu_milli, otherwise->cpu_milli),
        .memory_mb = choose(wish->memory_mb, named->memory_mb, otherwise->memory_mb),
        .disk_mb = choose(wish->disk_mb, named->disk_mb, otherwise->disk_mb),
        .max_processes = choose(wish->max_processes, named->max_processes, otherwise->max_processes),
        .timeout_seconds = choose(wish->timeout_seconds, named->timeout_seconds, otherwise->timeout_seconds),
    };
}

static void fill_class(const struct config_limits *limits, const char *template_name, bool is_root, bool is_writable,
                       struct sandbox_class *ret_class, struct sandbox_limits *ret_limits)
{
    uint64_t disk_bytes = limits->disk_mb << MB_SHIFT;
    uint64_t memory_bytes = limits->memory_mb << MB_SHIFT;

    *ret_class = (struct sandbox_class){
        .template_name = template_name,
        .root_fd = -1,
        .user = is_root ? 0 : NOBODY,
        .filter = WIRE_FILTER_STANDARD,
        .network = SANDBOX_NETWORK_NONE,
        .root_is_writable = is_writable,
        .disk_is_image = disk_bytes > memory_bytes / 2,
        .disk_bytes = disk_bytes,
    };
    *ret_limits = (struct sandbox_limits){.memory_bytes = memory_bytes,
                                          .processes = (uint32_t)limits->max_processes,
                                          .cpu_milli = (uint32_t)limits->cpu_milli};
}

static const char *choose_template(const struct config *config, const struct config_profile *profile)
{
    return profile != NULL && profile->template_name != NULL ? profile->template_name
                                                             : config->sandbox.default_template;
}

static bool is_profile_root(const struct config_profile *profile)
{
    return profile != NULL && profile->user != CONFIG_NOT_GIVEN && profile->user == CONFIG_USER_ROOT;
}

static bool is_profile_writable(const struct config_profile *profile)
{
    return profile != NULL && profile->root != CONFIG_NOT_GIVEN && profile->root == CONFIG_ROOT_RW;
}

void plan_class(const struct config *config, const struct config_profile *profile, struct sandbox_class *ret_class,
                struct sandbox_limits *ret_limits)
{
    struct config_limits limits = choose_limits(&(struct plan_limits){0}, profile, &config->sandbox.limits);

    fill_class(&limits, choose_template(config, profile), is_profile_root(profile), is_profile_writable(profile),
               ret_class, ret_limits);
}

bool plan_is_env_name(const char *name)
{
    if (*name == '\0' || (*name >= '0' && *name <= '9'))
        return false;
    return strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_") == strlen(name);
}

static int put_env(struct call *call, struct plan *plan, const char *name, const char *value, struct error *err)
{
    size_t length = strlen(name);
    size_t i = 0;

    if (!plan_is_env_name(name))
        return error_set(err, ERROR_INVALID, 0, "env.%.64s: a name has letters, digits and _, no digit first", name);
    while (i < plan->env_count && (strncmp(plan->env[i], name, length) != 0 || plan->env[i][length] != '='))
        i++;
    if (i == PLAN_ENV_MAX)
        return error_set(err, ERROR_INVALID, 0, "env: at most %d variables", PLAN_ENV_MAX);
    char *text = arena_printf(&call->request->arena, "%s=%s", name, value);
    if (text == NULL)
        return error_set(err, ERROR_LIMIT, EFBIG, "env: is too long");
    plan->env[i] = text;
    plan->env_count += i == plan->env_count;
    return 0;
}

static int fill_env(struct call *call, const struct plan_body *body, struct plan *plan, struct error *err)
{
    const struct config_map *named = plan->profile != NULL ? &plan->profile->env : NULL;
    const char *name;
    json_t *value;
    int r = 0;

    for (size_t i = 0; r == 0 && named != NULL && i < named->count; i++)
        r = put_env(call, plan, named->items[i].name, named->items[i].value, err);
    json_object_foreach((json_t *)body->env, name, value)
    {
        if (r == 0)
            r = put_env(call, plan, name, json_string_value(value), err);
    }
    plan->settings.env = plan->env;
    return r;
}

static int put_file(struct plan *plan, const struct plan_file *file, struct error *err)
{
    if (*file->path == '\0' || strlen(file->path) >= 4096)
        return error_set(err, ERROR_INVALID, 0, "files.%.64s: must be a path of at most 4095 bytes", file->path);
    if (plan->file_count == PLAN_FILES_MAX)
        return error_set(err, ERROR_INVALID, 0, "files: at most %d files", PLAN_FILES_MAX);
    plan->files[plan->file_count++] = *file;
    return 0;
}

static int put_body_file(struct plan *plan, const char *path, const json_t *value, struct error *err)
{
    const char *base64 = NULL;
    const struct body_field only[] = {{"base64", BODY_TEXT, 0, true, 0, INT64_MAX, NULL, NULL}};
    char where[96];

    (void)snprintf(where, sizeof where, "files.%.64s", path);
    if (json_is_string(value))
        return put_file(plan, &(struct plan_file){.path = path, .text = json_string_value(value)}, err);
    if (!json_is_object(value))
        return error_set(err, ERROR_INVALID, 0, "%s: must be a string or an object with base64", where);
    int r = body_take(value, where, &BODY_FIELDS(only), &base64, err);
    return r < 0 ? r : put_file(plan, &(struct plan_file){.path = path, .base64 = base64}, err);
}

/* A copy: the configuration may be replaced while the sandbox is made. */
static int put_profile_file(struct call *call, struct plan *plan, const struct config_pair *pair, struct error *err)
{
    struct plan_file file = {.path = arena_copy(&call->request->arena, pair->name, strlen(pair->name)),
                             .text = arena_copy(&call->request->arena, pair->value, strlen(pair->value))};

    if (file.path == NULL || file.text == NULL)
        return error_set(err, ERROR_LIMIT, EFBIG, "files: the profile's are too long");
    return put_file(plan, &file, err);
}

static int fill_files(struct call *call, const struct plan_body *body, struct plan *plan, struct error *err)
{
    const struct config_map *named = plan->profile != NULL ? &plan->profile->files : NULL;
    const char *path;
    json_t *value;
    int r = 0;

    if (body->files != NULL && !json_is_object(body->files))
        return error_set(err, ERROR_INVALID, 0, "files: must be an object");
    for (size_t i = 0; r == 0 && named != NULL && i < named->count; i++)
        r = put_profile_file(call, plan, &named->items[i], err);
    json_object_foreach((json_t *)body->files, path, value)
    {
        if (r == 0)
            r = put_body_file(plan, path, value, err);
    }
    return r;
}

static int check_network(const struct plan_body *body, struct error *err)
{
    if (body->network_mode != NULL && strcmp(body->network_mode, "none") != 0)
        return error_set(err, ERROR_UNSUPPORTED, 0,
                         "network.mode: %s can't be had: this build grants no network; use none", body->network_mode);
    if (json_array_size(body->domain_denylist) > 0)
        return error_set(err, ERROR_UNSUPPORTED, 0,
                         "network.domain_denylist: can't be had: this build grants no network");
    if (json_array_size(body->domain_allowlist) > 0)
        return error_set(err, ERROR_UNSUPPORTED, 0,
                         "network.domain_allowlist: can't be had: this build grants no network");
    return 0;
}

static int check_blocklist(const struct plan_body *body, struct error *err)
{
    struct blocklist *list = NULL;
    size_t i;
    json_t *pattern;

    int r = blocklist_new(&list, err);
    json_array_foreach(body->command_blocklist, i, pattern)
    {
        if (r == 0)
            r = blocklist_add(list, json_string_value(pattern), err);
        if (r < 0) {
            error_wrap(err, "command_blocklist[%zu]", i);
            break;
        }
    }
    blocklist_free(list);
    return r;
}

static int check_tools(const struct plan_body *body, struct error *err)
{
    size_t i;
    json_t *tool;

    json_array_foreach(body->tools, i, tool)
    {
        if (tools_find(json_string_value(tool)) == NULL)
            return error_set(err, ERROR_INVALID, 0, "tools[%zu]: there is no tool %.64s", i, json_string_value(tool));
    }
    return 0;
}

static int choose_names(const struct config *config, const struct plan_body *body, struct plan *plan,
                        const char **ret_template, struct error *err)
{
    if (body->template_name != NULL && body->base_image != NULL)
        return error_set(err, ERROR_INVALID, 0, "base_image: is another name for template; give one of them");
    if (body->profile != NULL) {
        plan->profile = config_profile_find(config, body->profile);
        if (plan->profile == NULL)
            return error_set(err, ERROR_UNSUPPORTED, 0, "profile: there is no profile %s", body->profile);
    }
    const char *name = body->template_name != NULL ? body->template_name : body->base_image;
    if (name != NULL && strcmp(name, "host") != 0 && config_template_find(config, name) == NULL)
        return error_set(err, ERROR_UNSUPPORTED, 0, "%s: there is no template %s",
                         body->template_name != NULL ? "template" : "base_image", name);
    *ret_template = name != NULL ? name : choose_template(config, plan->profile);
    return 0;
}

static void write_tools(struct writer *writer, const struct plan_body *body, const struct config_profile *profile)
{
    size_t i;
    json_t *tool;

    writer_open(writer, "tools", '[');
    json_array_foreach(body->tools, i, tool) writer_text(writer, NULL, json_string_value(tool));
    if (body->tools == NULL && profile != NULL && profile->tools.given) {
        for (i = 0; i < profile->tools.count; i++)
            writer_text(writer, NULL, profile->tools.items[i]);
    } else if (body->tools == NULL) {
        tools_write_defaults(writer);
    }
    writer_close(writer, ']');
}

static void write_labels(struct writer *writer, const struct plan_body *body, const struct config_profile *profile)
{
    const char *name;
    json_t *value;

    writer_open(writer, "labels", '{');
    for (size_t i = 0; profile != NULL && i < profile->labels.count; i++) {
        if (json_object_get(body->labels, profile->labels.items[i].name) == NULL)
            writer_text(writer, profile->labels.items[i].name, profile->labels.items[i].value);
    }
    json_object_foreach((json_t *)body->labels, name, value) writer_text(writer, name, json_string_value(value));
    writer_close(writer, '}');
}

static void write_limits(struct writer *writer, const struct config_limits *limits)
{
    writer_open(writer, "resource_limits", '{');
    writer_milli(writer, "cpu", limits->cpu_milli);
    writer_number(writer, "memory_mb", (int64_t)limits->memory_mb);
    writer_number(writer, "disk_mb", (int64_t)limits->disk_mb);
    writer_number(writer, "max_processes", (int64_t)limits->max_processes);
    writer_number(writer, "timeout_seconds", (int64_t)limits->timeout_seconds);
    writer_close(writer, '}');
}

static int write_extra(struct plan *plan, const struct plan_body *body, struct error *err)
{
    struct writer *writer = &plan->extra;
    const struct sandbox_class *class = &plan->settings.class;
    size_t i;
    json_t *pattern;

    writer_open(writer, NULL, '{');
    writer_text(writer, "template", class->template_name);
    writer_text(writer, "profile", body->profile);
    write_tools(writer, body, plan->profile);
    writer_json(writer, "network", "{\"mode\":\"none\",\"domain_allowlist\":[],\"domain_denylist\":[]}");
    write_limits(writer, &plan->limits);
    writer_open(writer, "command_blocklist", '[');
    json_array_foreach(body->command_blocklist, i, pattern) writer_text(writer, NULL, json_string_value(pattern));
    writer_close(writer, ']');
    write_labels(writer, body, plan->profile);
    writer_text(writer, "user", class->user == 0 ? "root" : "nobody");
    writer_text(writer, "root", class->root_is_writable ? "rw" : "ro");
    writer_number(writer, "idle_timeout_seconds", (int64_t)(plan->settings.idle_timeout_ms / 1000));
    writer_close(writer, '}');
    if (writer_end(writer) < 0 || buf_append(&writer->buf, "", 1) < 0)
        return error_set(err, ERROR_LIMIT, EFBIG, "labels, tools and command_blocklist together are too long");
    plan->settings.extra = (const char *)writer->buf.data;
    return 0;
}

static int fill_settings(struct call *call, const struct plan_body *body, const char *template_name, struct plan *plan,
                         struct error *err)
{
    const struct config *config = call->surface->options.config;
    const struct config_profile *profile = plan->profile;
    struct sandbox_settings *settings = &plan->settings;
    bool is_root = body->user != NULL ? strcmp(body->user, "root") == 0 : is_profile_root(profile);
    bool is_writable = body->root != NULL ? strcmp(body->root, "rw") == 0 : is_profile_writable(profile);
    uint64_t idle =
        choose(body->idle_timeout_seconds, profile != NULL ? profile->idle_timeout_seconds : CONFIG_NOT_GIVEN,
               config->sandbox.idle_timeout_seconds);

    if (is_writable && (template_name == NULL || strcmp(template_name, "host") == 0))
        return error_set(err, ERROR_UNSUPPORTED, 0, "root: rw needs a template that is a folder, not host");
    plan->limits = choose_limits(&body->limits, profile, &config->sandbox.limits);
    if (body->limits.disk_mb.given && plan->limits.disk_mb > config->sandbox.max_disk_mb)
        return error_set(err, ERROR_INVALID, 0, "resource_limits.disk_mb: must be at most %llu here",
                         (unsigned long long)config->sandbox.max_disk_mb);
    fill_class(&plan->limits, template_name, is_root, is_writable, &settings->class, &settings->limits);
    settings->idle_timeout_ms = idle * 1000;
    settings->lifetime_ms = plan->limits.timeout_seconds * 1000;
    settings->owner = call->principal.id;
    settings->agent = call->agent;
    return 0;
}

int plan_make(struct call *call, const struct plan_body *body, struct plan *plan, struct error *err)
{
    const char *template_name = "host";

    plan->extra = writer_init(EXTRA_MAX);
    int r = choose_names(call->surface->options.config, body, plan, &template_name, err);
    if (r == 0)
        r = check_network(body, err);
    if (r == 0)
        r = check_tools(body, err);
    if (r == 0)
        r = check_blocklist(body, err);
    if (r == 0)
        r = fill_settings(call, body, template_name, plan, err);
    if (r == 0)
        r = fill_env(call, body, plan, err);
    if (r == 0)
        r = fill_files(call, body, plan, err);
    return r < 0 ? r : write_extra(plan, body, err);
}

void plan_release(struct plan *plan)
{
    writer_release(&plan->extra);
}

void plan_show(struct writer *writer, const char *key, const struct sandbox *sandbox)
{
    struct sandbox_info info;

    sandbox_get(sandbox, &info);
    const char *extra = info.settings->extra != NULL ? info.settings->extra : "{}";
    size_t length = strlen(extra);
    bool has_agent = info.settings->agent != NULL && *info.settings->agent != '\0';

    writer_open(writer, key, '{');
    writer_text(writer, "id", info.id);
    writer_text(writer, "status", sandbox_state_name(info.state));
    if (length > 2) {
        if (buf_append(&writer->buf, ",", 1) < 0 || buf_append(&writer->buf, extra + 1, length - 2) < 0)
            writer->result = -ENOBUFS;
    }
    writer_text(writer, "agent", has_agent ? info.settings->agent : NULL);
    writer_text(writer, "reason", info.reason == SANDBOX_NO_REASON ? NULL : sandbox_reason_name(info.reason));
    writer_number(writer, "execs", (int64_t)info.executed);
    writer_number(writer, "running", info.running);
    writer_time(writer, "created_at", info.created_ms);
    writer_time(writer, "last_used_at", info.last_used_ms);
    writer_time(writer, "expires_at", info.expires_ms);
    writer_close(writer, '}');
}

json_t *plan_extra(const struct sandbox *sandbox)
{
    struct sandbox_info info;

    sandbox_get(sandbox, &info);
    return json_loads(info.settings->extra != NULL ? info.settings->extra : "{}", 0, NULL);
}

uint32_t plan_user(const struct sandbox *sandbox)
{
    struct sandbox_info info;

    sandbox_get(sandbox, &info);
    return info.settings->class.user;
}
