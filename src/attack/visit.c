#include "attack/visit.h"

#include "attack/control.h"
#include "attack/launch.h"
#include "attack/words.h"

#include <stdio.h>

enum { CALL_LIMIT_MS = 120000 };

static void judge_tries(struct referee *referee, const struct outcome *outcome, struct ruling *ruling)
{
    struct tries *tries = &referee->tries;

    tries->count = 0;
    if (outcome->timed_out) {
        ruling_add(ruling, VERDICT_THROUGH, "the attempt did not end within %d s", CALL_LIMIT_MS / 1000);
        return;
    }
    if (tries_parse((const char *)outcome->out.data, outcome->out.length, tries) < 0) {
        ruling_add(ruling, VERDICT_UNTRIED, "the attempt said what none says");
        return;
    }
    ruling->tries += (unsigned)tries->count;
    const struct try *through = tries_first(tries, TRY_THROUGH);
    const struct try *absent = tries_first(tries, TRY_ABSENT);
    if (through != NULL)
        ruling_add(ruling, VERDICT_THROUGH, "%s: %s", through->what, through->detail);
    else if (!tries->done || tries->count == 0)
        ruling_add(ruling, VERDICT_UNTRIED, "the attempt did not come to its end (status %d)", outcome->status);
    else if (absent != NULL)
        ruling_add(ruling, tries_first(tries, TRY_REFUSED) == NULL ? VERDICT_ABSENT : VERDICT_REFUSED,
                   "not on this machine: %s (%s)", absent->what, absent->detail);
    else
        ruling_add(ruling, VERDICT_REFUSED, "%s", "");
}

static void judge_daemon(struct referee *referee, const struct attack *attack, struct ruling *ruling)
{
    char harm[DOOR_HARM_SIZE];

    if (attack->ends_daemon) {
        int status = door_close(&referee->door);
        if (status != 0)
            ruling_add(ruling, VERDICT_THROUGH, "the daemon did not end well: %d", status);
    } else if (!door_is_well(&referee->door, attack->memory_most, attack->as_operator, harm)) {
        ruling_add(ruling, VERDICT_THROUGH, "%s", harm);
        /* The next attack finds another one. */
        (void)door_close(&referee->door);
    }
}

/* What can't be opened is not tried again for every attack. */
static bool has_door(struct referee *referee, struct ruling *ruling)
{
    struct door *door = &referee->door;
    struct error err = {0};
    int r = 0;

    if (door->pid == 0 && door->unable[0] == '\0')
        r = door_open(door, &referee->ground, referee->hutch, &err);
    if (r < 0 && err.code == ERROR_NOT_FOUND) {
        ruling_add(ruling, VERDICT_ABSENT, "not on this machine: %s", err.message);
        return false;
    }
    if (r < 0)
        (void)snprintf(door->unable, sizeof door->unable, "%.200s", err.message);
    if (door->pid == 0)
        ruling_add(ruling, VERDICT_UNTRIED, "%s", door->unable);
    return door->pid != 0;
}

void visit_judge(struct referee *referee, const struct attack *attack, struct ruling *ruling)
{
    struct door *door = &referee->door;
    struct words words;
    struct outcome outcome;
    struct error err = {0};

    if (!has_door(referee, ruling))
        return;
    door_begin(door);
    words_for_call(&words, referee, attack);
    struct launch launch = {.process = {.argv = words.argv,
                                        .envp = words.envp,
                                        .before = attack->as_operator ? control_beside : control_nobody},
                            .limit_ms = CALL_LIMIT_MS,
                            .neighbour = attack->ends_daemon ? NULL : &door->pulse};
    if (launch_run(&launch, &outcome, &err) < 0)
        ruling_add(ruling, VERDICT_UNTRIED, "%s", err.message);
    else
        judge_tries(referee, &outcome, ruling);
    outcome_release(&outcome);
    judge_daemon(referee, attack, ruling);
    referee_judge_surroundings(referee, ruling);
}
