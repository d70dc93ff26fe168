/*
 * hutchd: the daemon's command line.
 */
#include "base/fd.h"
#include "base/nearest.h"
#include "keeper/daemon.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define USUAL_STATE "/var/lib/hutch"

enum { EXIT_USAGE = 2 };

struct arguments {
    struct daemon_options options;
    bool check;
    bool version;
    bool help;
};

static const struct option {
    const char *name;
    const char *value;
    const char *help;
    size_t offset; /* of a text, or of a switch */
} options[] = {
    {"--config", "FILE", "the configuration (default /etc/hutch/hutch.yaml, if it is there)",
     offsetof(struct arguments, options.config)},
    {"--state", "FOLDER", "where Hutch keeps its files (default " USUAL_STATE ", or HUTCH_STATE)",
     offsetof(struct arguments, options.state)},
    {"--listen", "HOST:PORT", "serve HTTP there, in place of server.listen; several between commas",
     offsetof(struct arguments, options.listen)},
    {"--check-config", NULL, "say whether the configuration is in order, and end", offsetof(struct arguments, check)},
    {"--version", NULL, "print the version", offsetof(struct arguments, version)},
    {"--help", NULL, "this text", offsetof(struct arguments, help)},
};

static void print_help(void)
{
    printf(
        "usage: hutchd [options]\n\nRuns the service in the foreground, until SIGTERM. SIGHUP reads the configuration "
        "again.\n\n");
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        printf("  %-15s %-10s %s\n", options[i].name, options[i].value != NULL ? options[i].value : "",
               options[i].help);
    printf(
        "\nHUTCH_ADMIN_PASSWORD and HUTCH_API_KEY preset the first credentials. Every key of the configuration can be\n"
        "set as HUTCH_SECTION_KEY; hutch.yaml(5) has them all.\n");
}

static int refuse(const char *word)
{
    struct nearest nearest = nearest_init(word);

    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        nearest_offer(&nearest, options[i].name);
    (void)fprintf(stderr, "hutchd: unknown option '%.60s'", word);
    if (nearest.best != NULL)
        (void)fprintf(stderr, "; did you mean %s?\n", nearest.best);
    else
        (void)fprintf(stderr, "; 'hutchd --help' lists them\n");
    return -EINVAL;
}

static const struct option *find(const char *word)
{
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        if (strcmp(options[i].name, word) == 0)
            return &options[i];
    }
    return NULL;
}

/* --name value, --name=value or --name. */
static int parse(char **argv, struct arguments *arguments)
{
    for (; *argv != NULL; argv++) {
        char *equals = strchr(*argv, '=');
        const char *value = equals != NULL ? equals + 1 : NULL;
        if (equals != NULL)
            *equals = '\0';
        const struct option *option = find(*argv);
        if (option == NULL)
            return refuse(*argv);
        void *field = (char *)arguments + option->offset;
        if (option->value == NULL && value == NULL) {
            *(bool *)field = true;
            continue;
        }
        if (option->value != NULL && value == NULL && argv[1] != NULL)
            value = *++argv;
        if (option->value == NULL || value == NULL || value[0] == '\0') {
            (void)fprintf(stderr, "hutchd: %s takes %s\n", option->name,
                          option->value != NULL ? option->value : "no value");
            return -EINVAL;
        }
        *(const char **)field = value;
    }
    return 0;
}

int main(int argc, char **argv)
{
    struct arguments arguments = {0};
    struct daemon_options *chosen = &arguments.options;
    const char *state = getenv("HUTCH_STATE");

    if (fd_occupy_standard() < 0)
        return 1;
    if (argc > 0 && parse(argv + 1, &arguments) < 0)
        return EXIT_USAGE;
    if (arguments.help) {
        print_help();
        return 0;
    }
    if (arguments.version) {
        printf("hutchd %s\n", HUTCH_VERSION);
        return 0;
    }
    if (geteuid() != 0) {
        (void)fprintf(stderr,
                      "hutchd: making sandboxes needs root (the gateway, and what runs in them, has none): sudo "
                      "hutchd ...\n");
        return 1;
    }
    if (chosen->state == NULL)
        chosen->state = state != NULL && state[0] != '\0' ? state : USUAL_STATE;
    chosen->is_usual_state = strcmp(chosen->state, USUAL_STATE) == 0;
    return arguments.check ? daemon_check(chosen) : daemon_run(chosen);
}
