/*
 * hutch-attack: `hutch attack` executes it. With --inside, --neighbour or --rights it is the command in a sandbox, with
 * --call or --pulse a caller of the service.
 */
#include "attack/options.h"
#include "attack/pulse.h"
#include "attack/report.h"
#include "attack/resident.h"
#include "attack/rights.h"
#include "attack/table.h"
#include "base/fd.h"

#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

enum { EXIT_THROUGH = 1, EXIT_HUTCH = 125, REPORT_MAX = 1 << 20 };

static volatile sig_atomic_t interrupted;

static void interrupt(int signal_number)
{
    (void)signal_number;
    interrupted = 1;
}

static int attempt(const char *name, bool is_call)
{
    const struct attack *attack = table_find(name);
    attempt_fn *made = attack == NULL ? NULL : is_call ? attack->calls : attack->inside;

    if (made == NULL) {
        (void)fprintf(stderr, "hutch-attack: no attack '%.60s' is made like that\n", name);
        return EXIT_HUTCH;
    }
    return attempt_run(made);
}

static bool wants_colour(void)
{
    const char *no_colour = getenv("NO_COLOR");

    return isatty(STDOUT_FILENO) != 0 && (no_colour == NULL || no_colour[0] == '\0');
}

/* Print what is in the buffer and empty it. */
static int print(int r, struct buf *text, struct error *err)
{
    if (r == 0)
        r = fd_write_all(STDOUT_FILENO, text->data, text->length);
    text->length = 0;
    return r < 0 ? error_set(err, ERROR_SYSTEM, -r, "writing standard output") : 0;
}

static int judge_all(struct referee *referee, const struct attack_options *options, struct ruling *rulings,
                     struct buf *text, struct error *err)
{
    struct utsname name = {0};
    const struct attack *last = NULL;
    int r = 0;

    (void)uname(&name);
    struct report report = {.attacks = table_attacks,
                            .rulings = rulings,
                            .count = table_count,
                            .version = HUTCH_VERSION,
                            .kernel = name.release};
    for (size_t i = 0; r == 0 && interrupted == 0 && i < table_count; i++) {
        if (!options_want(options, table_attacks[i]))
            continue;
        referee_judge(referee, table_attacks[i], &rulings[i]);
        if (!options->json)
            r = print(report_row(&report, i, last, wants_colour(), text), text, err);
        last = table_attacks[i];
    }
    if (r == 0 && interrupted != 0)
        r = error_set(err, ERROR_SYSTEM, EINTR, "attacking");
    if (r == 0)
        r = print(options->json ? report_json(&report, text) : report_summary(&report, wants_colour(), text), text,
                  err);
    return r < 0 ? r : report_is_good(&report) ? 0 : EXIT_THROUGH;
}

static int attack(const struct attack_options *options, struct error *err)
{
    static struct referee referee;
    static char own[PATH_MAX];
    struct sigaction action = {.sa_handler = interrupt};
    struct buf text = buf_init(REPORT_MAX);
    struct ruling *rulings = calloc(table_count, sizeof *rulings);
    ssize_t n = readlink("/proc/self/exe", own, sizeof own - 1);
    int r = 0;

    if (geteuid() != 0)
        r = error_set(err, ERROR_DENIED, 0, "making sandboxes needs root: sudo hutch attack ...");
    else if (rulings == NULL || n <= 0)
        r = error_set(err, ERROR_SYSTEM, rulings == NULL ? ENOMEM : errno, "finding this program");
    (void)signal(SIGPIPE, SIG_IGN);
    (void)signal(SIGCHLD, SIG_DFL);
    (void)sigaction(SIGINT, &action, NULL);
    (void)sigaction(SIGTERM, &action, NULL);
    if (r == 0) {
        r = referee_init(&referee, options->hutch, own, options->state, err);
        if (r == 0)
            r = judge_all(&referee, options, rulings, &text, err);
        referee_release(&referee);
    }
    free(rulings);
    buf_release(&text);
    return r;
}

static int list(struct error *err)
{
    struct buf text = buf_init(REPORT_MAX);
    struct report report = {.attacks = table_attacks, .count = table_count};
    int r = print(report_list(&report, &text), &text, err);

    buf_release(&text);
    return r;
}

int main(int argc, char **argv)
{
    struct attack_options options;
    struct error err = {0};

    if (argc == 3 && strcmp(argv[1], "--inside") == 0)
        return attempt(argv[2], false);
    if (argc == 3 && strcmp(argv[1], "--call") == 0)
        return attempt(argv[2], true);
    if (argc == 2 && strcmp(argv[1], "--pulse") == 0)
        return pulse_beat();
    if (argc == 2 && strcmp(argv[1], "--neighbour") == 0)
        return resident_live();
    if (argc == 2 && strcmp(argv[1], "--rights") == 0)
        return rights_tell();
    ignore_result(fd_occupy_standard());
    int r = options_parse(argv + 1, &options, &err);
    if (r == 0 && options.help)
        options_print_help();
    else if (r == 0 && options.list)
        r = list(&err);
    else if (r == 0)
        r = attack(&options, &err);
    if (r >= 0)
        return r;
    (void)fprintf(stderr, "hutch: %s\n", err.message);
    return EXIT_HUTCH;
}
