/*
 * problem: adding a line to what is wrong with a configuration, with what was perhaps meant.
 */
#pragma once

#include "base/nearest.h"
#include "gateway/config/config.h"

struct config_hint {
    struct nearest nearest;
    char best[64]; /* "" for none */
};

struct config_hint config_hint_init(const char *word);

/* For config_key_offer(). */
void config_hint_offer(void *context, const char *candidate);

/* `where` is FILE:LINE:COLUMN or a variable, `key` may be empty. Lines beyond the cap are counted only. */
void config_problem_add(struct config_problems *problems, const char *where, const char *key, const char *what);
