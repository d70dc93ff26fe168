#include "gateway/config/environment.h"

#include "gateway/config/problem.h"
#include "gateway/config/values.h"

#include <ctype.h>
#include <string.h>

#define PREFIX "HUTCH_"

enum { NAME_SIZE = 96, SHOWN = 80 };

static int variable_of(const struct config_key *key, char *name, size_t size)
{
    struct buf text = buf_init(size - 1);
    int r = config_key_variable(key, &text);

    if (r == 0) {
        memcpy(name, text.data, text.length);
        name[text.length] = '\0';
    }
    buf_release(&text);
    return r;
}

/* HUTCH_SERVER_... is ours, HUTCH_STATE is the command line's. */
static bool is_of_section(const char *variable)
{
    const char *rest = variable + strlen(PREFIX);

    for (size_t i = 0; i < config_key_count; i++) {
        size_t length = strcspn(config_keys[i].path, ".");
        size_t same = 0;
        while (same < length && rest[same] == toupper((unsigned char)config_keys[i].path[same]))
            same++;
        if (same == length && rest[length] == '_')
            return true;
    }
    return false;
}

static void refuse_unknown(const char *variable, struct config_problems *problems)
{
    struct config_hint hint = config_hint_init(variable);
    struct error err = {0};
    char name[NAME_SIZE];

    for (size_t i = 0; i < config_key_count; i++) {
        if (!config_key_is_in_group(&config_keys[i]) && variable_of(&config_keys[i], name, sizeof name) == 0)
            config_hint_offer(&hint, name);
    }
    if (hint.best[0] != '\0')
        (void)error_set(&err, ERROR_INVALID, 0, "there is no such key; did you mean %s?", hint.best);
    else
        (void)error_set(&err, ERROR_INVALID, 0,
                        "there is no such key (profiles, templates and shares can be set in the file only)");
    config_problem_add(problems, variable, "", err.message);
}

static int apply(struct config *config, const char *variable, const char *value, struct config_problems *problems)
{
    char name[NAME_SIZE];
    struct error err = {0};

    for (size_t i = 0; i < config_key_count; i++) {
        const struct config_key *key = &config_keys[i];
        if (config_key_is_in_group(key) || variable_of(key, name, sizeof name) < 0 || strcmp(name, variable) != 0)
            continue;
        int r = config_key_is_list(key) ? config_value_set_list(config->memory, key, config, value, &err)
                                        : config_value_set(config->memory, key, config, value, &err);
        if (r == -EINVAL)
            config_problem_add(problems, variable, key->path, err.message);
        return r == -EINVAL ? 0 : r;
    }
    if (is_of_section(variable))
        refuse_unknown(variable, problems);
    return 0;
}

int config_environment_apply(struct config *config, char *const *environment, struct config_problems *problems)
{
    int r = 0;

    for (; r == 0 && environment != NULL && *environment != NULL; environment++) {
        char variable[NAME_SIZE];
        size_t length = strcspn(*environment, "=");
        if (strncmp(*environment, PREFIX, strlen(PREFIX)) != 0 || (*environment)[length] != '=')
            continue;
        if (length >= sizeof variable)
            length = SHOWN; /* none of ours is as long */
        memcpy(variable, *environment, length);
        variable[length] = '\0';
        r = apply(config, variable, strchr(*environment, '=') + 1, problems);
    }
    return r;
}
