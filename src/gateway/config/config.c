/*
 * Theory of operation. A configuration starts with the defaults of the table. The file's tree is walked with the path
 * of where one is: a path that is a row takes a value, one that lies above some row is a section, and any other is a
 * problem, with the nearest word that would have been none. Then the environment, and last what no single key can know.
 */
#include "gateway/config/config.h"

#include "gateway/config/environment.h"
#include "gateway/config/problem.h"
#include "gateway/config/values.h"
#include "gateway/config/yaml.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_SIZE = 320, WHERE_SIZE = 320, PROBLEMS_MAX = 20, IDS_PER_SANDBOX = 65536 };

struct walk {
    struct config *config;
    struct config_problems *problems;
    const char *file;
    const char *entry; /* what stands for the star of a path */
};

/* As the administrator wrote it. */
static void name_path(const struct walk *walk, const char *path, char *shown, size_t size)
{
    const char *star = walk->entry != NULL ? strchr(path, '*') : NULL;

    if (star == NULL)
        (void)snprintf(shown, size, "%s", path);
    else
        (void)snprintf(shown, size, "%.*s%.100s%s", (int)(star - path), path, walk->entry, star + 1);
}

static int problem(const struct walk *walk, const struct yaml_node *node, const char *path, const char *what)
{
    char where[WHERE_SIZE];
    char shown[PATH_SIZE];

    if (walk->problems->count < PROBLEMS_MAX) {
        (void)snprintf(where, sizeof where, "%.200s:%u:%u", walk->file, node->line, node->column);
        name_path(walk, path, shown, sizeof shown);
        config_problem_add(walk->problems, where, shown, what);
    }
    return 0;
}

/* Of the value; anything but a wrong value goes up. */
static int outcome(const struct walk *walk, const struct yaml_node *node, const char *path, int r,
                   const struct error *err)
{
    return r == -EINVAL ? problem(walk, node, path, err->message) : r;
}

static int wrong_kind(const struct walk *walk, const struct yaml_node *node, const struct config_key *key,
                      const char *path)
{
    struct buf text = buf_init(ERROR_MESSAGE_MAX);
    int r = buf_printf(&text, "expected ");

    if (r == 0)
        r = config_key_describe(key, &text);
    if (r == 0)
        r = buf_append(&text, "", 1);
    if (r == 0)
        r = problem(walk, node, path, (const char *)text.data);
    buf_release(&text);
    return r;
}

static int take_list(const struct walk *walk, const struct yaml_node *node, const struct config_key *key, void *base,
                     const char *path)
{
    struct error err = {0};
    int r = node->kind != YAML_LIST ? -ENOENT : config_value_start(walk->config->memory, key, base, node->count, &err);

    if (r == -ENOENT)
        return wrong_kind(walk, node, key, path);
    if (r < 0)
        return outcome(walk, node, path, r, &err);
    for (size_t i = 0; r == 0 && i < node->count; i++) {
        const struct yaml_node *entry = &node->children[i];
        if (entry->kind != YAML_TEXT || entry->is_empty)
            return wrong_kind(walk, entry, key, path);
        r = outcome(walk, entry, path, config_value_add(walk->config->memory, key, base, entry->text, &err), &err);
    }
    return r;
}

static int take_pairs(const struct walk *walk, const struct yaml_node *node, const struct config_key *key, void *base,
                      const char *path)
{
    struct error err = {0};
    int r = node->kind != YAML_MAP ? -ENOENT : config_value_start(walk->config->memory, key, base, node->count, &err);

    if (r == -ENOENT)
        return wrong_kind(walk, node, key, path);
    if (r < 0)
        return outcome(walk, node, path, r, &err);
    for (size_t i = 0; r == 0 && i < node->count; i++) {
        const struct yaml_node *pair = &node->children[i];
        if (pair->kind != YAML_TEXT || pair->is_empty)
            return wrong_kind(walk, pair, key, path);
        r = config_value_add_pair(walk->config->memory, key, base, pair->key, pair->text, &err);
        r = outcome(walk, pair, path, r, &err);
    }
    return r;
}

static int take_value(const struct walk *walk, const struct yaml_node *node, const struct config_key *key, void *base,
                      const char *path)
{
    struct error err = {0};

    if (config_key_is_list(key))
        return take_list(walk, node, key, base, path);
    if (key->type == CONFIG_TEXTS)
        return take_pairs(walk, node, key, base, path);
    if (node->kind != YAML_TEXT || node->is_empty)
        return wrong_kind(walk, node, key, path);
    return outcome(walk, node, path, config_value_set(walk->config->memory, key, base, node->text, &err), &err);
}

static int unknown(const struct walk *walk, const struct yaml_node *node, const char *above, const char *path)
{
    struct config_hint hint = config_hint_init(node->key);
    struct error err;

    config_key_offer(above, config_hint_offer, &hint);
    if (hint.best[0] != '\0')
        (void)error_set(&err, ERROR_INVALID, 0, "there is no such key; did you mean %s?", hint.best);
    else
        (void)error_set(&err, ERROR_INVALID, 0, "there is no such key");
    return problem(walk, node, path, err.message);
}

static int take_section(const struct walk *walk, const struct yaml_node *section, void *base, const char *above);

/* Not given until it is: what 0 would be a value of. */
static void clear_entry(const struct config_group *group, void *entry)
{
    for (size_t i = 0; i < config_key_count; i++) {
        const struct config_key *key = &config_keys[i];
        size_t length = strlen(group->path);
        if (strncmp(key->path, group->path, length) == 0 && key->path[length] == '.' && key->type <= CONFIG_CHOICE)
            *(uint64_t *)(void *)((char *)entry + key->offset) = CONFIG_NOT_GIVEN;
    }
}

/* An entry's struct begins with its name. */
static int take_entry(const struct walk *walk, const struct yaml_node *node, const struct config_group *group,
                      void *entry)
{
    char path[PATH_SIZE];
    char *name = config_memory_text(walk->config->memory, node->key, strlen(node->key));

    (void)snprintf(path, sizeof path, "%s.%.100s", group->path, node->key);
    if (!config_value_is_name(node->key))
        return problem(walk, node, path, "expected a name of letters, digits, '.', '_' and '-'");
    if (name == NULL)
        return -ENOMEM;
    *(char **)entry = name;
    clear_entry(group, entry);
    /* A dot in a name would look like a section. */
    (void)snprintf(path, sizeof path, "%s.*", group->path);
    const struct config_key *key = config_key_find(path);
    (void)snprintf(path, sizeof path, "%s.%.100s", group->path, node->key);
    if (key != NULL)
        return take_value(walk, node, key, entry, path);
    if (node->kind != YAML_MAP)
        return problem(walk, node, path, "expected a section");
    struct walk inside = *walk;
    inside.entry = name;
    (void)snprintf(path, sizeof path, "%s.*", group->path);
    return take_section(&inside, node, entry, path);
}

static int take_group(const struct walk *walk, const struct yaml_node *node, const struct config_group *group)
{
    void *items;
    int r = 0;

    if (node->kind != YAML_MAP)
        return problem(walk, node, group->path, "expected a section with names, or {}");
    if (node->count > group->most)
        return problem(walk, node, group->path, "there are too many of them");
    items = config_memory_take(walk->config->memory, (node->count + 1) * group->size);
    if (items == NULL)
        return -ENOMEM;
    for (size_t i = 0; r == 0 && i < node->count; i++)
        r = take_entry(walk, &node->children[i], group, (char *)items + i * group->size);
    *(void **)(void *)((char *)walk->config + group->items_offset) = items;
    *(size_t *)(void *)((char *)walk->config + group->count_offset) = node->count;
    return r;
}

static int take_child(const struct walk *walk, const struct yaml_node *child, void *base, const char *above)
{
    char path[PATH_SIZE];

    (void)snprintf(path, sizeof path, "%s%s%.100s", above, above[0] != '\0' ? "." : "", child->key);
    const struct config_group *group = config_group_find(path);
    if (group != NULL)
        return take_group(walk, child, group);
    /* A dot or a star in what was written is not one of ours. */
    bool is_plain = strpbrk(child->key, ".*") == NULL && child->key[0] != '\0';
    const struct config_key *key = is_plain ? config_key_find(path) : NULL;
    if (key != NULL)
        return take_value(walk, child, key, base, path);
    if (!is_plain || !config_key_is_section(path))
        return unknown(walk, child, above, path);
    if (child->kind != YAML_MAP)
        return problem(walk, child, path, "expected a section: keys below it, indented");
    return take_section(walk, child, base, path);
}

static int take_section(const struct walk *walk, const struct yaml_node *section, void *base, const char *above)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < section->count; i++)
        r = take_child(walk, &section->children[i], base, above);
    return r;
}

static int take_file(const struct walk *walk, const char *text, size_t length)
{
    struct yaml_node *root = NULL;
    struct yaml_fault fault = {0};
    int r = yaml_parse(text, length, walk->config->memory, &root, &fault);

    if (r == -EINVAL) {
        struct yaml_node here = {.line = fault.line, .column = fault.column};
        return problem(walk, &here, "", fault.error.message);
    }
    if (r < 0 || root == NULL || (root->kind == YAML_TEXT && root->is_empty))
        return r;
    return root->kind == YAML_MAP ? take_section(walk, root, walk->config, "")
                                  : problem(walk, root, "", "expected sections such as `server:`");
}

static int take_defaults(const struct walk *walk)
{
    struct error err = {0};
    int r = 0;

    for (size_t i = 0; r == 0 && i < config_key_count; i++) {
        const struct config_key *key = &config_keys[i];
        if (config_key_is_in_group(key))
            continue;
        r = config_key_is_list(key)
                ? config_value_set_list(walk->config->memory, key, walk->config, key->otherwise, &err)
                : config_value_set(walk->config->memory, key, walk->config, key->otherwise, &err);
        if (r == -EINVAL)
            config_problem_add(walk->problems, "default", key->path, err.message);
    }
    for (size_t i = 0; r == 0 && i < config_group_count; i++) {
        char text[2048];
        const struct config_group *group = &config_groups[i];
        int n = snprintf(text, sizeof text, "%s:%s%s", group->path, group->otherwise[0] != '\0' ? "\n" : " {}\n",
                         group->otherwise);
        r = take_file(walk, text, (size_t)n);
    }
    return r;
}

bool config_is_beyond_loopback(const struct config *config)
{
    for (size_t i = 0; i < config->server.listen.count; i++) {
        if (!config_value_is_loopback(config->server.listen.items[i]))
            return true;
    }
    return false;
}

uint64_t config_largest_disk_mb(const struct config *config)
{
    uint64_t largest = config->sandbox.max_disk_mb;

    if (config->sandbox.limits.disk_mb > largest)
        largest = config->sandbox.limits.disk_mb;
    for (size_t i = 0; i < config->profile_count; i++) {
        uint64_t disk_mb = config->profiles[i].limits.disk_mb;
        if (disk_mb != CONFIG_NOT_GIVEN && disk_mb > largest)
            largest = disk_mb;
    }
    return largest;
}

static void check_template(const struct walk *walk, const char *key, const char *name)
{
    struct config_hint hint = config_hint_init(name);
    struct error err;

    if (strcmp(name, "host") == 0 || config_template_find(walk->config, name) != NULL)
        return;
    config_hint_offer(&hint, "host");
    for (size_t i = 0; i < walk->config->template_count; i++)
        config_hint_offer(&hint, walk->config->templates[i].name);
    if (hint.best[0] != '\0')
        (void)error_set(&err, ERROR_INVALID, 0, "there is no template '%.60s'; did you mean %s?", name, hint.best);
    else
        (void)error_set(&err, ERROR_INVALID, 0, "there is no template '%.60s'; the section templates names them", name);
    config_problem_add(walk->problems, walk->file, key, err.message);
}

static void check_server(const struct walk *walk)
{
    const struct config_server *server = &walk->config->server;

    if (server->auth == CONFIG_AUTH_OFF && config_is_beyond_loopback(walk->config))
        config_problem_add(
            walk->problems, walk->file, "server.auth",
            "off is for loopback addresses only, and server.listen has others; anybody could run commands "
            "here");
    if ((server->tls_certificate[0] == '\0') != (server->tls_key[0] == '\0'))
        config_problem_add(walk->problems, walk->file,
                           server->tls_key[0] == '\0' ? "server.tls_key" : "server.tls_certificate",
                           "a certificate and its key go together; one of them is missing");
    if (server->listen.count == 0 && strcmp(server->unix_socket, "off") == 0)
        config_problem_add(walk->problems, walk->file, "server.listen",
                           "with no address and server.unix_socket off, nobody could call");
}

static void check_sandbox(const struct walk *walk)
{
    const struct config_sandbox *sandbox = &walk->config->sandbox;

    check_template(walk, "sandbox.default_template", sandbox->default_template);
    if (sandbox->pool_min_idle > sandbox->pool_max_idle)
        config_problem_add(walk->problems, walk->file, "sandbox.pool.min_idle", "is more than sandbox.pool.max_idle");
    if (sandbox->id_first % IDS_PER_SANDBOX != 0 || (sandbox->id_last + 1) % IDS_PER_SANDBOX != 0)
        config_problem_add(walk->problems, walk->file, "sandbox.id_first",
                           "the range of ids must begin at a multiple of 65536 and end right before one");
    if (sandbox->id_last < sandbox->id_first)
        config_problem_add(walk->problems, walk->file, "sandbox.id_last", "is less than sandbox.id_first");
}

static void check_profile(const struct walk *walk, const struct config_profile *profile)
{
    char key[PATH_SIZE];
    const char *name = profile->template_name != NULL ? profile->template_name : walk->config->sandbox.default_template;
    const struct config_template *template = config_template_find(walk->config, name);
    bool is_host = template == NULL || strcmp(template->folder, "host") == 0;

    (void)snprintf(key, sizeof key, "profiles.%s.template", profile->name);
    if (profile->template_name != NULL)
        check_template(walk, key, profile->template_name);
    (void)snprintf(key, sizeof key, "profiles.%s.root", profile->name);
    if (profile->root == CONFIG_ROOT_RW && is_host)
        config_problem_add(walk->problems, walk->file, key, "template host can't be written: rw needs a folder");
}

static void check_share(const struct walk *walk, const struct config_share *share)
{
    char key[PATH_SIZE];

    (void)snprintf(key, sizeof key, "shares.%s", share->name);
    if (share->folder == NULL || share->access == CONFIG_NOT_GIVEN)
        config_problem_add(walk->problems, walk->file, key, "expected both folder and access");
}

/* What no single key can know. */
static void check_whole(const struct walk *walk)
{
    const struct config *config = walk->config;

    check_server(walk);
    check_sandbox(walk);
    if (config_template_find(config, "host") != NULL)
        config_problem_add(walk->problems, walk->file, "templates.host",
                           "this name is taken: it is this machine's /usr");
    for (size_t i = 0; i < config->profile_count; i++)
        check_profile(walk, &config->profiles[i]);
    for (size_t i = 0; i < config->share_count; i++)
        check_share(walk, &config->shares[i]);
}

static int load(const struct walk *walk, const char *text, size_t length, char *const *environment)
{
    int r = take_defaults(walk);

    if (r == 0)
        r = take_file(walk, text, length);
    if (r == 0)
        r = config_environment_apply(walk->config, environment, walk->problems);
    if (r == 0 && walk->problems->count == 0)
        check_whole(walk);
    if (r == 0 && walk->problems->count > 0)
        r = -EINVAL;
    return r;
}

int config_load(const char *name, const char *text, size_t length, char *const *environment, struct config **ret_config,
                struct config_problems *problems)
{
    struct config *config = calloc(1, sizeof *config);
    struct walk walk = {.config = config, .problems = problems, .file = name};

    if (config == NULL || (config->memory = config_memory_new()) == NULL) {
        free(config);
        return -ENOMEM;
    }
    int r = load(&walk, text, length, environment);
    if (r < 0) {
        config_free(config);
        return r;
    }
    *ret_config = config;
    return 0;
}

void config_free(struct config *config)
{
    if (config == NULL)
        return;
    config_memory_free(config->memory);
    free(config);
}

const struct config_profile *config_profile_find(const struct config *config, const char *name)
{
    for (size_t i = 0; i < config->profile_count; i++) {
        if (strcmp(config->profiles[i].name, name) == 0)
            return &config->profiles[i];
    }
    return NULL;
}

const struct config_template *config_template_find(const struct config *config, const char *name)
{
    for (size_t i = 0; i < config->template_count; i++) {
        if (strcmp(config->templates[i].name, name) == 0)
            return &config->templates[i];
    }
    return NULL;
}

const struct config_share *config_share_find(const struct config *config, const char *name)
{
    for (size_t i = 0; i < config->share_count; i++) {
        if (strcmp(config->shares[i].name, name) == 0)
            return &config->shares[i];
    }
    return NULL;
}
