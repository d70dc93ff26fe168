/*
 * A copy of a sandbox's settings lies in one block: the vectors first, then the text.
 */
#include "gateway/engine/internal.h"

#include <stdlib.h>
#include <string.h>

enum { VECTOR_MAX = 4096 };

struct block {
    char *text;
    const char **vectors;
};

static size_t text_size(const char *text)
{
    return text == NULL ? 1 : strlen(text) + 1;
}

static const char *add_text(struct block *block, const char *text)
{
    size_t size = text_size(text);
    char *copy = block->text;

    memcpy(copy, text == NULL ? "" : text, size);
    block->text += size;
    return copy;
}

static int measure(const char *const *vector, size_t *count, size_t *bytes)
{
    for (size_t i = 0; vector != NULL && vector[i] != NULL; i++) {
        if (i >= VECTOR_MAX)
            return -E2BIG;
        ++*count;
        *bytes += text_size(vector[i]);
    }
    ++*count;
    return 0;
}

static const char *const *add_vector(struct block *block, const char *const *vector)
{
    const char **copy = block->vectors;

    if (vector == NULL)
        return NULL;
    for (; *vector != NULL; vector++)
        *block->vectors++ = add_text(block, *vector);
    *block->vectors++ = NULL;
    return copy;
}

static int check(const struct sandbox_settings *settings, size_t env_bytes, struct error *err)
{
    if (text_size(settings->owner) > ENGINE_OWNER_SIZE)
        return error_set(err, ERROR_INVALID, 0, "the owner's name is too long");
    if (text_size(settings->agent) > SANDBOX_TEXT_MAX || text_size(settings->class.template_name) > SANDBOX_TEXT_MAX)
        return error_set(err, ERROR_INVALID, 0, "names may be %d bytes long", SANDBOX_TEXT_MAX - 1);
    if (text_size(settings->extra) > SANDBOX_SETTINGS_MAX || env_bytes > SANDBOX_ENV_MAX)
        return error_set(err, ERROR_LIMIT, E2BIG, "the settings and the environment may be %d KiB each",
                         SANDBOX_ENV_MAX / 1024);
    return 0;
}

int settings_copy(const struct sandbox_settings *settings, struct sandbox_settings *ret_settings, void **ret_block,
                  struct error *err)
{
    size_t count = 0;
    size_t env_bytes = 0;
    size_t only_bytes = 0;

    if (measure(settings->env, &count, &env_bytes) < 0 || measure(settings->class.only, &count, &only_bytes) < 0)
        return error_set(err, ERROR_LIMIT, E2BIG, "the environment or the list of programs is too long");
    int r = check(settings, env_bytes, err);
    if (r < 0)
        return r;
    size_t text = env_bytes + only_bytes + text_size(settings->owner) + text_size(settings->agent) +
                  text_size(settings->extra) + text_size(settings->class.template_name);
    const char **memory = malloc(count * sizeof *memory + text);
    if (memory == NULL)
        return error_set(err, ERROR_SYSTEM, ENOMEM, "keeping a sandbox's settings");
    struct block block = {.vectors = memory, .text = (char *)(memory + count)};
    *ret_settings = *settings;
    ret_settings->env = add_vector(&block, settings->env);
    ret_settings->class.only = add_vector(&block, settings->class.only);
    ret_settings->owner = add_text(&block, settings->owner);
    ret_settings->agent = add_text(&block, settings->agent);
    ret_settings->extra = add_text(&block, settings->extra);
    ret_settings->class.template_name = add_text(&block, settings->class.template_name);
    ret_settings->class.root_fd = -1;
    *ret_block = memory;
    return 0;
}

static bool is_same_list(const char *const *a, const char *const *b)
{
    size_t i = 0;

    if (a == NULL || b == NULL)
        return (a == NULL || a[0] == NULL) && (b == NULL || b[0] == NULL);
    while (a[i] != NULL && b[i] != NULL && strcmp(a[i], b[i]) == 0)
        i++;
    return a[i] == NULL && b[i] == NULL;
}

bool settings_is_same_class(const struct sandbox_class *a, const struct sandbox_class *b)
{
    return strcmp(a->template_name == NULL ? "" : a->template_name, b->template_name == NULL ? "" : b->template_name) ==
               0 &&
           a->user == b->user && a->filter == b->filter && a->network == b->network &&
           a->root_is_writable == b->root_is_writable && a->disk_is_image == b->disk_is_image &&
           a->disk_bytes == b->disk_bytes && a->disk_inodes == b->disk_inodes &&
           a->policy_generation == b->policy_generation && is_same_list(a->only, b->only);
}
