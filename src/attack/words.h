/*
 * words: the command lines that the referee starts. They point into the referee and the attack, and into themselves.
 */
#pragma once

#include "attack/referee.h"

enum { WORDS_MAX = 64 };

struct words {
    const char *argv[WORDS_MAX];
    const char *envp[GROUND_VARIABLES + DOOR_VARIABLES + 3];
    char dir[GROUND_PATH_SIZE + 32];
    char program[GROUND_PATH_SIZE + 32];
    char round_option[128];
    char placed[2][GROUND_PATH_SIZE + 64];
};

void words_for_sandbox(struct words *words, const struct referee *referee, const struct attack *attack,
                       enum attack_variant variant, unsigned round);
void words_for_neighbour(struct words *words, const struct referee *referee);
void words_for_control(struct words *words, const struct referee *referee, const struct attack *attack);
void words_for_call(struct words *words, const struct referee *referee, const struct attack *attack);

/* A sandbox's kind, for people. */
const char *words_variant(enum attack_variant variant);
