#include "attack/options.h"

#include "attack/table.h"
#include "base/nearest.h"

#include <stdio.h>
#include <string.h>

enum row { ROW_JSON, ROW_LIST, ROW_STATE, ROW_HUTCH, ROW_HELP, ROW_COUNT };

static const struct {
    const char *name;
    const char *value; /* NULL: takes none */
    const char *help;
} rows[ROW_COUNT] = {
    [ROW_JSON] = {"--json", NULL, "print one JSON object instead of the table"},
    [ROW_LIST] = {"--list", NULL, "print the attacks and what they try, and make none"},
    [ROW_STATE] = {"--state", "FOLDER", "where Hutch keeps its files (default /var/lib/hutch, or HUTCH_STATE)"},
    [ROW_HUTCH] = {"--hutch", "FILE", "the program to attack (default: the one that was called)"},
    [ROW_HELP] = {"--help", NULL, "this text"},
};

void options_print_help(void)
{
    printf(
        "usage: hutch attack [options] [NAME...]\n\n"
        "Attacks this machine's sandboxes from inside, one after the other, each in a sandbox of its own, and looks\n"
        "from outside whether it was refused, whether the host is as it was and whether a neighbour sandbox fares\n"
        "as usual. Then attacks the service: calls a hutchd of its own, the one that lies beside hutch, on a free\n"
        "port and a temporary folder. Every attempt is harmless also where it is not refused. Leaves nothing "
        "behind.\n\n");
    for (size_t i = 0; i < (size_t)ROW_COUNT; i++) {
        char left[64];
        (void)snprintf(left, sizeof left, "%s%s%s", rows[i].name, rows[i].value != NULL ? " " : "",
                       rows[i].value != NULL ? rows[i].value : "");
        printf("  %-24s %s\n", left, rows[i].help);
    }
    printf("\nExit status: 0 everything was refused; 1 something got through, or could not be tried; 125 hutch attack\n"
           "itself failed.\n\n"
           "  sudo hutch attack\n"
           "  sudo hutch attack io-uring fork-bomb\n");
}

static int unknown_option(const char *name, struct error *err)
{
    struct nearest nearest = nearest_init(name);

    for (size_t i = 0; i < (size_t)ROW_COUNT; i++)
        nearest_offer(&nearest, rows[i].name);
    if (nearest.best != NULL)
        return error_set(err, ERROR_INVALID, 0, "unknown option %.60s; did you mean %s?", name, nearest.best);
    return error_set(err, ERROR_INVALID, 0, "unknown option %.60s; 'hutch attack --help' lists them", name);
}

static int take_name(struct attack_options *options, const char *name, struct error *err)
{
    struct nearest nearest = nearest_init(name);

    if (options->name_count == ATTACK_NAMES_MAX)
        return error_set(err, ERROR_LIMIT, 0, "at most %d names", ATTACK_NAMES_MAX);
    if (table_find(name) != NULL) {
        options->names[options->name_count++] = name;
        return 0;
    }
    for (size_t i = 0; i < table_count; i++)
        nearest_offer(&nearest, table_attacks[i]->name);
    if (nearest.best != NULL)
        return error_set(err, ERROR_NOT_FOUND, 0, "there is no attack '%.60s'; did you mean %s?", name, nearest.best);
    return error_set(err, ERROR_NOT_FOUND, 0, "there is no attack '%.60s'; 'hutch attack --list' lists them", name);
}

/* One option at *argv, which moves behind it. */
static int take_option(char ***argv, struct attack_options *options, struct error *err)
{
    const char *word = *(*argv)++;
    const char *equals = strchr(word, '=');
    char name[64];
    size_t row = 0;

    (void)snprintf(name, sizeof name, "%.*s", equals != NULL ? (int)(equals - word) : 63, word);
    while (row < (size_t)ROW_COUNT && strcmp(strcmp(name, "-h") == 0 ? "--help" : name, rows[row].name) != 0)
        row++;
    if (row == (size_t)ROW_COUNT)
        return unknown_option(name, err);
    if (rows[row].value == NULL) {
        options->json = options->json || row == ROW_JSON;
        options->list = options->list || row == ROW_LIST;
        options->help = options->help || row == ROW_HELP;
        return equals != NULL ? error_set(err, ERROR_INVALID, 0, "%s takes no value", name) : 0;
    }
    const char *value = equals != NULL ? equals + 1 : **argv;
    if (value == NULL || value[0] == '\0')
        return error_set(err, ERROR_INVALID, 0, "%s needs a value: %s %s", name, name, rows[row].value);
    *argv += equals != NULL ? 0 : 1;
    *(row == ROW_STATE ? &options->state : &options->hutch) = value;
    return 0;
}

int options_parse(char **argv, struct attack_options *ret_options, struct error *err)
{
    int r = 0;

    *ret_options = (struct attack_options){0};
    while (r == 0 && *argv != NULL && !ret_options->help) {
        if ((*argv)[0] == '-')
            r = take_option(&argv, ret_options, err);
        else
            r = take_name(ret_options, *argv++, err);
    }
    if (r == 0 && ret_options->hutch == NULL && !ret_options->help && !ret_options->list)
        return error_set(err, ERROR_INVALID, 0, "--hutch is missing: call 'hutch attack'");
    return r;
}

bool options_want(const struct attack_options *options, const struct attack *attack)
{
    for (size_t i = 0; i < options->name_count; i++) {
        if (strcmp(options->names[i], attack->name) == 0)
            return true;
    }
    return options->name_count == 0;
}
