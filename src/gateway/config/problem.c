#include "gateway/config/problem.h"

#include <stdio.h>

struct config_hint config_hint_init(const char *word)
{
    return (struct config_hint){.nearest = nearest_init(word)};
}

void config_hint_offer(void *context, const char *candidate)
{
    struct config_hint *hint = context;

    hint->nearest.best = NULL;
    nearest_offer(&hint->nearest, candidate);
    if (hint->nearest.best != NULL)
        (void)snprintf(hint->best, sizeof hint->best, "%s", candidate);
}

void config_problem_add(struct config_problems *problems, const char *where, const char *key, const char *what)
{
    problems->count++;
    ignore_result(buf_printf(&problems->text, "%s: %s%s%s\n", where, key, key[0] != '\0' ? ": " : "", what));
}
