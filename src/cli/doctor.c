/*
 * Theory of operation. The table in doctor/checks.c is gone through from top to bottom. A check whose needs are not met
 * is not tried: one cause is told once. Every other one is tried for real by its probe, in a process of its own
 * (doctor/attempt.h) that writes what it found into memory shared with us. The last of the needed ones makes a real
 * sandbox, through the same session code as `hutch run`. Then everything is printed at once.
 */
#include "cli/doctor.h"

#include "base/fd.h"
#include "base/nearest.h"
#include "cli/doctor/attempt.h"
#include "cli/doctor/report.h"
#include "cli/options.h"
#include "cli/result.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <unistd.h>

enum { EXIT_NO_SANDBOX = 1, REPORT_MAX = 256 << 10 };

struct doctor_options {
    const char *state;
    bool json;
    bool help;
};

static const struct {
    const char *name;
    const char *value; /* NULL: takes none */
    const char *help;
} rows[] = {
    {"--json", NULL, "print one JSON object instead of the table"},
    {"--state", "FOLDER", "where Hutch keeps its files (default /var/lib/hutch, or HUTCH_STATE)"},
    {"--help", NULL, "this text"},
};

static void print_help(void)
{
    printf("usage: hutch doctor [options]\n\n"
           "Tries everything a sandbox is made of on this machine, makes a real one, and says what is missing,\n"
           "what that means and what mends it. Leaves nothing behind but the caches of a run in the state folder.\n\n");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char left[64];
        (void)snprintf(left, sizeof left, "%s%s%s", rows[i].name, rows[i].value != NULL ? " " : "",
                       rows[i].value != NULL ? rows[i].value : "");
        printf("  %-24s %s\n", left, rows[i].help);
    }
    printf("\nExit status: 0 a sandbox can be made here; 1 none can; 125 hutch doctor itself failed.\n\n"
           "  sudo hutch doctor\n");
}

static int unknown_option(const char *name, struct error *err)
{
    struct nearest nearest = nearest_init(name);

    if (name[0] != '-')
        return error_set(err, ERROR_INVALID, 0, "'%.60s': hutch doctor takes options alone", name);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        nearest_offer(&nearest, rows[i].name);
    if (nearest.best != NULL)
        return error_set(err, ERROR_INVALID, 0, "unknown option %.60s; did you mean %s?", name, nearest.best);
    return error_set(err, ERROR_INVALID, 0, "unknown option %.60s; 'hutch doctor --help' lists them", name);
}

/* One option at *argv, which moves behind it. */
static int take_option(char ***argv, struct doctor_options *options, struct error *err)
{
    const char *word = *(*argv)++;
    const char *equals = word[0] == '-' ? strchr(word, '=') : NULL;
    char name[64];
    size_t row = 0;

    (void)snprintf(name, sizeof name, "%.*s", equals != NULL ? (int)(equals - word) : 63, word);
    if (strcmp(name, "-h") == 0)
        (void)snprintf(name, sizeof name, "--help");
    while (row < sizeof rows / sizeof *rows && strcmp(name, rows[row].name) != 0)
        row++;
    if (row == sizeof rows / sizeof *rows)
        return unknown_option(name, err);
    if (rows[row].value == NULL && equals != NULL)
        return error_set(err, ERROR_INVALID, 0, "%s takes no value", name);
    options->json = options->json || strcmp(name, "--json") == 0;
    options->help = options->help || strcmp(name, "--help") == 0;
    if (rows[row].value == NULL)
        return 0;
    options->state = equals != NULL ? equals + 1 : **argv;
    if (options->state == NULL || options->state[0] == '\0')
        return error_set(err, ERROR_INVALID, 0, "%s needs a value: %s %s", name, name, rows[row].value);
    *argv += equals != NULL ? 0 : 1;
    return 0;
}

static size_t find(const char *name)
{
    size_t i = 0;

    while (i < check_count && strcmp(checks[i].name, name) != 0)
        i++;
    return i;
}

/* The check that said no and without which this one can't be tried, or NULL. */
static const char *unmet_need(const struct check *check, const struct finding *findings)
{
    for (size_t n = 0; n < CHECK_NEEDS_MAX && check->needs[n] != NULL; n++) {
        size_t i = find(check->needs[n]);
        if (findings[i].state == FINDING_NO)
            return checks[i].name;
        if (findings[i].state == FINDING_UNKNOWN)
            return unmet_need(&checks[i], findings);
    }
    return NULL;
}

static void examine(const struct doctor_options *options, struct finding *findings)
{
    for (size_t i = 0; i < check_count; i++) {
        struct probe probe = {.check = &checks[i], .state = options->state, .finding = &findings[i]};
        const char *need = unmet_need(&checks[i], findings);
        if (need != NULL)
            (void)snprintf(findings[i].found, sizeof findings[i].found, "not tried: needs %s", need);
        else
            attempt(&probe);
    }
}

static bool wants_colour(void)
{
    const char *no_colour = getenv("NO_COLOR");
    const char *terminal = getenv("TERM");

    return isatty(STDOUT_FILENO) != 0 && (no_colour == NULL || no_colour[0] == '\0') &&
           (terminal == NULL || strcmp(terminal, "dumb") != 0);
}

static int print_report(const struct doctor_options *options, const struct report *report, struct error *err)
{
    struct buf text = buf_init(REPORT_MAX);
    int r = options->json ? report_json(report, &text) : report_text(report, wants_colour(), &text);

    if (r == 0)
        r = fd_write_all(STDOUT_FILENO, text.data, text.length);
    buf_release(&text);
    return r < 0 ? error_set(err, ERROR_SYSTEM, -r, "writing standard output") : 0;
}

static int run(const struct doctor_options *options, struct error *err)
{
    struct utsname name = {0};
    struct finding *findings =
        mmap(NULL, check_count * sizeof *findings, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (findings == MAP_FAILED)
        return error_errno(err, "making memory for what is found");
    examine(options, findings);
    (void)uname(&name);
    struct report report = {
        .checks = checks, .findings = findings, .count = check_count, .version = HUTCH_VERSION, .kernel = name.release};
    int r = print_report(options, &report, err);
    int status = report_can_make_sandbox(&report) ? 0 : EXIT_NO_SANDBOX;
    (void)munmap(findings, check_count * sizeof *findings);
    return r < 0 ? r : status;
}

int doctor_main(char **argv)
{
    struct doctor_options options = {.state = options_default_state()};
    struct error err = {0};
    int r = 0;

    ignore_result(fd_occupy_standard());
    /* A caller may ignore it, and then nothing could be waited for. */
    (void)signal(SIGCHLD, SIG_DFL);
    (void)signal(SIGPIPE, SIG_IGN);
    while (r == 0 && *argv != NULL && !options.help)
        r = take_option(&argv, &options, &err);
    if (r == 0 && options.help) {
        print_help();
        return 0;
    }
    if (r == 0)
        r = run(&options, &err);
    if (r >= 0)
        return r;
    result_print_error(&err, STEP_NONE, options.json);
    return EXIT_HUTCH;
}
