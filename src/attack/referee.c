/*
 * Theory of operation. For each attack: the attempt is made outside, for control; then in each kind of sandbox, while
 * the neighbour is asked all the time how it fares. A run is judged by how `hutch run` ended and by what the attempt
 * said; a try that was refused outside as well counts as absent. In the end no process may be left, the neighbour must
 * have answered in its usual time, and the host must be as it was. The worst of all that is the ruling.
 */
#include "attack/referee.h"

#include "attack/control.h"
#include "attack/launch.h"
#include "attack/script.h"
#include "attack/told.h"
#include "attack/visit.h"
#include "attack/words.h"
#include "base/clock.h"
#include "base/utf8.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    RUN_LIMIT_MS = 120000,
    CONTROL_LIMIT_MS = 20000,
    LEFT_LIMIT_MS = 20000, /* for the last process of a run to be gone */
    NOT_STARTED_FIRST = 125,
    NOT_STARTED_LAST = 127,
    KILLED = 128 + SIGKILL,
};

/* The first line, for people. */
static const char *first_line(struct buf *text)
{
    if (text->length == 0 || buf_append(text, "", 1) < 0)
        return "it said nothing";
    char *line = (char *)text->data;
    line[strcspn(line, "\n")] = '\0';
    return line;
}

static bool says(struct outcome *outcome, const char *words)
{
    return memmem(outcome->err.data, outcome->err.length, words, strlen(words)) != NULL ||
           memmem(outcome->out.data, outcome->out.length, words, strlen(words)) != NULL;
}

/* As a terminal may be shown it: UTF-8, and no control character but the line's end. */
static bool is_plain_text(const struct buf *text)
{
    for (size_t i = 0; i < text->length;) {
        size_t n = utf8_sequence(text->data + i, text->length - i);
        if (n == 0 || (text->data[i] < 0x20 && text->data[i] != '\n') || text->data[i] == 0x7f)
            return false;
        i += n;
    }
    return true;
}

static bool did_not_start(const struct attack *attack, const struct outcome *outcome)
{
    return attack->may_not_start && outcome->status >= NOT_STARTED_FIRST && outcome->status <= NOT_STARTED_LAST;
}

static bool judge_memory(const struct attack *attack, const struct told *told, const char *where, struct ruling *ruling)
{
    if (attack->memory_most == 0 || told->memory_peak_bytes <= attack->memory_most)
        return true;
    ruling_add(ruling, VERDICT_THROUGH, "%s: it had %llu KiB of memory", where,
               (unsigned long long)told->memory_peak_bytes >> 10);
    return false;
}

/* How `hutch run` ended. True when what the attempt said is worth reading. */
static bool judge_end(const struct attack *attack, struct outcome *outcome, const struct told *told, const char *where,
                      struct ruling *ruling)
{
    if (outcome->timed_out)
        ruling_add(ruling, VERDICT_THROUGH, "%s: hutch run did not end within %d s", where, RUN_LIMIT_MS / 1000);
    else if (!attack->streams && !is_plain_text(&outcome->out))
        ruling_add(ruling, VERDICT_THROUGH, "%s: hutch run --json printed control characters, or no UTF-8", where);
    else if (attack->may_be_killed && outcome->status == KILLED && strcmp(told->limit, "memory") == 0)
        return judge_memory(attack, told, where, ruling);
    else if (outcome->status != attack->status)
        ruling_add(ruling, outcome->status == NOT_STARTED_FIRST ? VERDICT_UNTRIED : VERDICT_THROUGH,
                   "%s: hutch run ended with status %d instead of %d: %s", where, outcome->status, attack->status,
                   first_line(&outcome->err));
    else if (attack->says != NULL && !says(outcome, attack->says))
        ruling_add(ruling, VERDICT_THROUGH, "%s: hutch run did not say '%s' but: %s", where, attack->says,
                   first_line(&outcome->err));
    else if (attack->limit != NULL && (!told->has_limit || strcmp(told->limit, attack->limit) != 0))
        ruling_add(ruling, VERDICT_THROUGH, "%s: it was not ended by its limit (%s) but by: %s", where, attack->limit,
                   told->has_limit ? told->limit : "none");
    else if (outcome->out_bytes < attack->streams_at_least)
        ruling_add(ruling, VERDICT_THROUGH, "%s: only %llu bytes of its output came", where,
                   (unsigned long long)outcome->out_bytes);
    else
        return judge_memory(attack, told, where, ruling);
    return false;
}

/* What the attempt said. */
static void judge_tries(struct referee *referee, const struct attack *attack, bool was_killed, const char *where,
                        struct ruling *ruling)
{
    struct tries *tries = &referee->tries;
    bool ends_early = attack->status != 0 || attack->streams || was_killed;

    tries_compare(tries, &referee->control);
    const struct try *through = tries_first(tries, TRY_THROUGH);
    const struct try *absent = tries_first(tries, TRY_ABSENT);
    ruling->tries += (unsigned)tries->count;
    if (through != NULL)
        ruling_add(ruling, VERDICT_THROUGH, "%s: %s: %s", where, through->what, through->detail);
    else if (!tries->done && !ends_early)
        ruling_add(ruling, VERDICT_UNTRIED, "%s: the attempt did not come to its end", where);
    else if (tries->count == 0 && !ends_early)
        ruling_add(ruling, VERDICT_UNTRIED, "%s: nothing was tried", where);
    else if (absent != NULL && tries_first(tries, TRY_REFUSED) == NULL)
        ruling_add(ruling, VERDICT_ABSENT, "not on this kernel: %s (%s)", absent->what, absent->detail);
    else if (absent != NULL)
        ruling_add(ruling, VERDICT_REFUSED, "not on this kernel: %s (%s)", absent->what, absent->detail);
    else
        ruling_add(ruling, VERDICT_REFUSED, "%s", "");
}

static void judge_run(struct referee *referee, const struct attack *attack, struct outcome *outcome, const char *where,
                      struct ruling *ruling)
{
    struct told told = {0};
    int r = 0;

    if (did_not_start(attack, outcome)) {
        ruling->tries++;
        ruling_add(ruling, VERDICT_REFUSED, "%s", "");
        return;
    }
    referee->tries.count = 0;
    referee->tries.done = false;
    if (!attack->streams && outcome->status != NOT_STARTED_FIRST)
        r = told_parse((const char *)outcome->out.data, outcome->out.length, &told);
    if (r == 0 && (attack->inside != NULL || attack->script != NULL) && !attack->streams)
        r = tries_parse((const char *)told.out.data, told.out.length, &referee->tries);
    if (r < 0)
        ruling_add(ruling, VERDICT_UNTRIED, "%s: the attempt said what none says: %s", where,
                   first_line(&outcome->err));
    else if (judge_end(attack, outcome, &told, where, ruling))
        judge_tries(referee, attack, outcome->status == KILLED, where, ruling);
    else
        ruling->tries += (unsigned)referee->tries.count;
    if (attack->status != 0 || attack->streams || outcome->status == KILLED)
        ruling->tries++; /* the run itself */
    told_release(&told);
}

static void run_once(struct referee *referee, const struct attack *attack, enum attack_variant variant, unsigned round,
                     struct ruling *ruling)
{
    struct words words;
    struct outcome outcome;
    struct error err = {0};

    words_for_sandbox(&words, referee, attack, variant, round);
    struct launch launch = {.process = {.argv = words.argv, .envp = words.envp},
                            .limit_ms = RUN_LIMIT_MS,
                            .count_only = attack->streams,
                            .neighbour = &referee->neighbour};
    if (launch_run(&launch, &outcome, &err) < 0)
        ruling_add(ruling, VERDICT_UNTRIED, "%s", err.message);
    else
        judge_run(referee, attack, &outcome, words_variant(variant), ruling);
    outcome_release(&outcome);
}

static int read_control(const struct attack *attack, const struct outcome *outcome, struct tries *ret_tries)
{
    struct told told = {0};
    int r = 0;

    if (attack->control != CONTROL_WITHOUT)
        return tries_parse((const char *)outcome->out.data, outcome->out.length, ret_tries);
    r = told_parse((const char *)outcome->out.data, outcome->out.length, &told);
    if (r == 0)
        r = tries_parse((const char *)told.out.data, told.out.length, ret_tries);
    told_release(&told);
    return r;
}

/* What stays unknown is left out of the comparison: a control that can't be made proves nothing. */
static void run_control(struct referee *referee, const struct attack *attack, struct ruling *ruling)
{
    struct words words;
    struct outcome outcome;
    struct error err = {0};

    referee->control.count = 0;
    referee->control.done = false;
    if (attack->control == CONTROL_NONE)
        return;
    words_for_control(&words, referee, attack);
    struct launch launch = {
        .process = {.argv = words.argv,
                    .envp = words.envp,
                    .before = attack->control == CONTROL_APART ? control_apart : control_beside},
        .limit_ms = CONTROL_LIMIT_MS,
    };
    if (launch_run(&launch, &outcome, &err) < 0 || read_control(attack, &outcome, &referee->control) < 0)
        referee->control.count = 0;
    if (attack->control == CONTROL_WITHOUT && !referee->control.done)
        ruling_add(ruling, VERDICT_UNTRIED, "not all of it works in a sandbox without %s", attack->options[0]);
    outcome_release(&outcome);
    ground_forgive(&referee->ground);
}

static pid_t start_meanwhile(const struct referee *referee, const struct attack *attack)
{
    pid_t parent = getpid();
    pid_t pid = attack->meanwhile != NULL ? fork() : 0;

    if (attack->meanwhile == NULL || pid != 0)
        return pid > 0 ? pid : 0;
    while (getppid() == parent)
        attack->meanwhile(&referee->ground);
    _exit(0);
}

static void run_all(struct referee *referee, const struct attack *attack, struct ruling *ruling)
{
    enum attack_variant variants = attack->variants != 0 ? attack->variants : ALL_VARIANTS;
    pid_t meanwhile = start_meanwhile(referee, attack);

    for (enum attack_variant variant = AS_NOBODY; variant < ALL_VARIANTS; variant <<= 1) {
        for (unsigned round = 0; (variants & variant) != 0 && round < (attack->rounds != 0 ? attack->rounds : 1);
             round++)
            run_once(referee, attack, variant, round, ruling);
    }
    (void)process_end(&meanwhile);
}

void referee_judge_surroundings(struct referee *referee, struct ruling *ruling)
{
    pid_t known[] = {referee->neighbour.pid, referee->ground.process, referee->door.pid, referee->door.pulse.pid};
    char harm[GROUND_HARM_SIZE];

    if (!process_reap_others(known, sizeof known / sizeof *known, LEFT_LIMIT_MS))
        ruling_add(ruling, VERDICT_THROUGH, "a process of its was left behind");
    if (!neighbour_is_well(&referee->neighbour))
        ruling_add(ruling, VERDICT_THROUGH, "%s", referee->neighbour.harm);
    if (!ground_is_unharmed(&referee->ground, harm))
        ruling_add(ruling, VERDICT_THROUGH, "on the host: %s", harm);
}

static int start_neighbour(struct referee *referee, struct error *err)
{
    struct words words;

    words_for_neighbour(&words, referee);
    return neighbour_start(&referee->neighbour, "the neighbour sandbox", words.argv, words.envp, err);
}

static void judge_sandboxes(struct referee *referee, const struct attack *attack, struct ruling *ruling)
{
    int r = 0;

    if (attack->prepare != NULL) {
        r = ground_make_root(&referee->ground);
        r = r < 0 ? r : attack->prepare(&referee->ground);
    }
    if (r < 0) {
        ruling_add(ruling, VERDICT_UNTRIED, "preparing a root folder: %s", strerror(-r));
    } else {
        run_control(referee, attack, ruling);
        neighbour_begin(&referee->neighbour);
        run_all(referee, attack, ruling);
        referee_judge_surroundings(referee, ruling);
    }
    ground_remove_root(&referee->ground);
}

void referee_judge(struct referee *referee, const struct attack *attack, struct ruling *ret_ruling)
{
    uint64_t start_ns = clock_now_ns();
    struct error err = {0};
    const char *lacks = attack->script != NULL ? script_lacks() : NULL;
    int r = 0;

    *ret_ruling = (struct ruling){0};
    if (lacks != NULL) {
        ruling_add(ret_ruling, VERDICT_ABSENT, "not on this machine: %s", lacks);
        return;
    }
    /* An attack before may have been the end of it. */
    if (referee->neighbour.harm[0] != '\0') {
        neighbour_end(&referee->neighbour);
        r = start_neighbour(referee, &err);
    }
    if (r < 0) {
        ruling_add(ret_ruling, VERDICT_UNTRIED, "%s", err.message);
        return;
    }
    if (attack->calls != NULL) {
        neighbour_begin(&referee->neighbour);
        visit_judge(referee, attack, ret_ruling);
    } else {
        judge_sandboxes(referee, attack, ret_ruling);
    }
    ret_ruling->took_ns = clock_now_ns() - start_ns;
}

int referee_init(struct referee *referee, const char *hutch, const char *own, const char *state, struct error *err)
{
    referee->hutch = hutch;
    referee->door = DOOR_EMPTY;
    referee->state = state;
    referee->neighbour = NEIGHBOUR_EMPTY;
    referee->ground = GROUND_EMPTY;
    int r = process_adopt_orphans();
    if (r < 0)
        return error_set(err, ERROR_SYSTEM, -r, "becoming the reaper of orphans");
    r = ground_init(&referee->ground, hutch, own, err);
    return r < 0 ? r : start_neighbour(referee, err);
}

void referee_release(struct referee *referee)
{
    (void)door_close(&referee->door);
    neighbour_end(&referee->neighbour);
    (void)process_reap_others(&referee->ground.process, 1, LEFT_LIMIT_MS);
    ground_release(&referee->ground);
}
