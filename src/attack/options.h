/*
 * options: what `hutch attack` was asked for. Pure: parses argv, opens nothing.
 */
#pragma once

#include "attack/attack.h"

#include <stddef.h>

enum { ATTACK_NAMES_MAX = 64 };

struct attack_options {
    const char *hutch;
    const char *state; /* NULL: the default of `hutch run` */
    bool json;
    bool list;
    bool help;
    const char *names[ATTACK_NAMES_MAX];
    size_t name_count; /* 0: all there are */
};

/* 0 or -EINVAL with a message that says what to write instead. */
_must_use_ int options_parse(char **argv, struct attack_options *ret_options, struct error *err);
void options_print_help(void);

bool options_want(const struct attack_options *options, const struct attack *attack);
