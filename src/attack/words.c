#include "attack/words.h"

#include "attack/script.h"

#include <stdio.h>
#include <stdlib.h>

#define INSIDE_PROGRAM "/attack/hutch-attack"

struct list {
    struct words *words;
    size_t count;
};

/* The longest command line is known; one that were longer would lack its end and so not start. */
static void add(struct list *list, const char *word)
{
    if (list->count < WORDS_MAX - 1)
        list->words->argv[list->count++] = word;
    list->words->argv[list->count] = NULL;
}

static void add_pair(struct list *list, const char *option, const char *value)
{
    add(list, option);
    add(list, value);
}

/* Nothing of the caller's, who may be anybody's sudo. */
static void set_environment(struct words *words, const struct referee *referee, bool with_canaries)
{
    static const char *const passed_on[] = {"ASAN_OPTIONS", "HUTCH_STATE"};
    static char kept[2][4096];
    size_t count = 0;

    words->envp[count++] = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
    for (size_t i = 0; i < 2; i++) {
        const char *value = getenv(passed_on[i]);
        if (value == NULL || with_canaries)
            continue;
        (void)snprintf(kept[i], sizeof kept[i], "%s=%s", passed_on[i], value);
        words->envp[count++] = kept[i];
    }
    for (size_t i = 0; with_canaries && i < GROUND_VARIABLES; i++)
        words->envp[count++] = referee->ground.variables[i];
    words->envp[count] = NULL;
}

static struct list begin(struct words *words, const struct referee *referee)
{
    struct list list = {.words = words};

    set_environment(words, referee, false);
    add(&list, referee->hutch);
    add(&list, "run");
    if (referee->state != NULL)
        add_pair(&list, "--state", referee->state);
    for (size_t i = 0; i < GROUND_VARIABLES; i++)
        add_pair(&list, "--env", referee->ground.variables[i]);
    return list;
}

static void show_program(struct list *list, const struct referee *referee)
{
    (void)snprintf(list->words->dir, sizeof list->words->dir, "%s:/attack:ro", referee->ground.program);
    add_pair(list, "--dir", list->words->dir);
}

/* The format is the attack's own, with one %u. */
static void add_round(struct list *list, const char *format, unsigned round)
{
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    (void)snprintf(list->words->round_option, sizeof list->words->round_option, format, round);
#pragma GCC diagnostic pop
    add(list, list->words->round_option);
}

/* A word that begins with @ is a path on the ground. */
static void add_option(struct list *list, const struct referee *referee, const char *word, size_t *placed)
{
    char *place = list->words->placed[*placed % 2];

    if (word[0] != '@') {
        add(list, word);
        return;
    }
    (void)snprintf(place, sizeof *list->words->placed, "%s%s", referee->ground.folder, word + 1);
    *placed += 1;
    add(list, place);
}

static void add_command(struct list *list, const struct attack *attack)
{
    add(list, "--");
    if (attack->script != NULL) {
        add(list, "python3");
        add_pair(list, "-c", script_begin);
        add(list, attack->script);
    } else if (attack->command != NULL) {
        add(list, attack->command);
    } else {
        add(list, INSIDE_PROGRAM);
        add_pair(list, "--inside", attack->name);
    }
}

static struct list begin_sandbox(struct words *words, const struct referee *referee, const struct attack *attack,
                                 enum attack_variant variant)
{
    struct list list = begin(words, referee);

    if (!attack->streams)
        add(&list, "--json");
    if (attack->prepare != NULL)
        add_pair(&list, "--root", referee->ground.root);
    else
        show_program(&list, referee);
    add_pair(&list, "--timeout", "60s");
    add_pair(&list, "--user", variant == AS_ROOT ? "root" : "nobody");
    add_pair(&list, "--filter", variant == WITH_TIGHT ? "tight" : "standard");
    return list;
}

void words_for_sandbox(struct words *words, const struct referee *referee, const struct attack *attack,
                       enum attack_variant variant, unsigned round)
{
    struct list list = begin_sandbox(words, referee, attack, variant);
    size_t placed = 0;

    for (size_t i = 0; i < ATTACK_OPTIONS_MAX && attack->options[i] != NULL; i++)
        add_option(&list, referee, attack->options[i], &placed);
    if (attack->round_option != NULL)
        add_round(&list, attack->round_option, round);
    add_command(&list, attack);
}

void words_for_neighbour(struct words *words, const struct referee *referee)
{
    struct list list = begin(words, referee);

    show_program(&list, referee);
    add_pair(&list, "--", INSIDE_PROGRAM);
    add(&list, "--neighbour");
}

void words_for_control(struct words *words, const struct referee *referee, const struct attack *attack)
{
    struct list list = {.words = words};

    if (attack->control == CONTROL_WITHOUT) {
        list = begin_sandbox(words, referee, attack, AS_NOBODY);
        add_command(&list, attack);
        return;
    }
    set_environment(words, referee, true);
    (void)snprintf(words->program, sizeof words->program, "%s/hutch-attack", referee->ground.program);
    add(&list, words->program);
    add_pair(&list, "--inside", attack->name);
}

void words_for_call(struct words *words, const struct referee *referee, const struct attack *attack)
{
    struct list list = {.words = words};
    size_t count = 0;

    set_environment(words, referee, true);
    while (words->envp[count] != NULL)
        count++;
    for (size_t i = 0; i < DOOR_VARIABLES; i++)
        words->envp[count++] = referee->door.variables[i];
    words->envp[count] = NULL;
    (void)snprintf(words->program, sizeof words->program, "%s/hutch-attack", referee->ground.program);
    add(&list, words->program);
    add_pair(&list, "--call", attack->name);
}

const char *words_variant(enum attack_variant variant)
{
    return variant == AS_ROOT ? "as root" : variant == WITH_TIGHT ? "with the filter tight" : "as nobody";
}
