/*
 * hutch-gateway: started by hutchd, never by a person but for what it prints.
 */
#include "base/fd.h"
#include "gateway/certificate.h"
#include "gateway/config/print.h"
#include "gateway/config/root_part.h"
#include "gateway/gateway.h"
#include "wire/link.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CERTIFICATE_FD = WIRE_KEEPER_FD + 1, KEY_FD, EXIT_USAGE = 2 };

static int tell_keeper(const struct config *config)
{
    struct config_root_part part;
    int r = config_root_part_init(&part, config);

    if (r == 0)
        r = link_send(WIRE_KEEPER_FD, &part.message, NULL, 0);
    if (r == -ENOBUFS || r == -EMSGSIZE)
        (void)fprintf(stderr, "there are too many templates and shares\n");
    else if (r < 0)
        (void)fprintf(stderr, "answering the keeper: %s\n", strerror(-r));
    config_root_part_release(&part);
    return r < 0 ? 1 : 0;
}

static int read_config(const char *name)
{
    struct config_problems problems = config_problems_init();
    static char text[CONFIG_BYTES_MAX + 1];
    struct config *config = NULL;
    int status = 1;
    ssize_t n = fd_read_all(STDIN_FILENO, text, sizeof text);
    int r =
        n < 0 ? (int)n : config_load(name != NULL ? name : "hutch.yaml", text, (size_t)n, environ, &config, &problems);

    if (r == 0)
        status = tell_keeper(config);
    else if (r == -EINVAL && problems.text.data != NULL)
        (void)fwrite(problems.text.data, problems.text.length, 1, stderr);
    else
        (void)fprintf(stderr, "reading the configuration: %s\n", strerror(-r));
    config_problems_release(&problems);
    config_free(config);
    return status;
}

static int check_certificate(const char *argument)
{
    struct error err = {0};

    (void)argument;
    if (certificate_check(CERTIFICATE_FD, KEY_FD, &err) == 0)
        return 0;
    ignore_result(fd_write_all(WIRE_KEEPER_FD, err.message, strlen(err.message)));
    return 1;
}

static int serve(const char *argument)
{
    struct handover handover;
    struct error err = {0};

    (void)argument;
    if (handover_take(WIRE_KEEPER_FD, &handover, &err) < 0) {
        (void)fprintf(stderr, "hutch-gateway: %s\n", err.message);
        return 1;
    }
    int status = gateway_run(&handover);
    handover_release(&handover);
    return status;
}

static int print(int (*fill)(struct buf *text))
{
    struct buf text = buf_init(CONFIG_PRINT_MAX);
    int r = fill(&text);

    if (r == 0)
        r = fd_write_all(STDOUT_FILENO, text.data, text.length);
    buf_release(&text);
    return r < 0 ? 1 : 0;
}

static int print_example(const char *argument)
{
    (void)argument;
    return print(config_print_example);
}

static int print_manual(const char *argument)
{
    (void)argument;
    return print(config_print_manual);
}

static int print_version(const char *argument)
{
    (void)argument;
    printf("hutch-gateway %s\n", HUTCH_VERSION);
    return 0;
}

static int print_help(const char *argument);

static const struct {
    const char *name;
    int (*main)(const char *argument);
    const char *help;
} verbs[] = {
    {"--print-example", print_example, "print a commented hutch.yaml that means the defaults"},
    {"--print-manual", print_manual, "print the manual page hutch.yaml(5)"},
    {"--version", print_version, "print the version"},
    {"--help", print_help, "this text"},
    {"--serve", serve, "serve; for hutchd only, which hands everything over"},
    {"--read-config", read_config, "read a configuration from standard input; for hutchd only"},
    {"--check-certificate", check_certificate, "see whether a certificate fits its key; for hutchd only"},
};

static int print_help(const char *argument)
{
    (void)argument;
    printf("usage: hutch-gateway VERB\n\n");
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
        printf("  %-20s %s\n", verbs[i].name, verbs[i].help);
    return 0;
}

int main(int argc, char **argv)
{
    for (size_t i = 0; argc >= 2 && argc <= 3 && i < sizeof verbs / sizeof *verbs; i++) {
        if (strcmp(argv[1], verbs[i].name) == 0)
            return verbs[i].main(argv[2]);
    }
    (void)fprintf(stderr, "hutch-gateway: this is started by hutchd; 'hutch-gateway --help' says what else there is\n");
    return EXIT_USAGE;
}
