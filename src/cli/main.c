/*
 * hutch: the command line. Its verbs need no daemon and so this program links nothing but libc, base, wire and the
 * keeper.
 */
#include "cli/attack.h"
#include "cli/doctor.h"
#include "cli/result.h"
#include "cli/run.h"

#include <stdio.h>
#include <string.h>

static int print_help(char **argv)
{
    (void)argv;
    printf("usage: hutch VERB [options]\n\n"
           "  run       run a command in a sandbox of its own ('hutch run --help')\n"
           "  doctor    say whether a sandbox can be made on this machine, and what is missing\n"
           "  attack    attack this machine's sandboxes and service, and see everything refused\n"
           "  version   print the version\n"
           "  help      this text\n");
    return 0;
}

static int print_version(char **argv)
{
    (void)argv;
    printf("hutch %s\n", HUTCH_VERSION);
    return 0;
}

static const struct {
    const char *name;
    int (*main)(char **argv);
} verbs[] = {
    {"run", run_main},      {"doctor", doctor_main}, {"attack", attack_main},    {"help", print_help},
    {"--help", print_help}, {"-h", print_help},      {"version", print_version}, {"--version", print_version},
};

int main(int argc, char **argv)
{
    if (argc < 2) {
        (void)fprintf(stderr, "hutch: no verb; 'hutch help' lists them\n");
        return EXIT_HUTCH;
    }
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++) {
        if (strcmp(argv[1], verbs[i].name) == 0)
            return verbs[i].main(argv + 2);
    }
    (void)fprintf(stderr, "hutch: unknown verb '%.60s'; 'hutch help' lists them\n", argv[1]);
    return EXIT_HUTCH;
}
