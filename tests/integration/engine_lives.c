#include "engine_cases.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MIB = 1 << 20, MANY = 50 };

/* How many children of `parent` have a name that starts like this; the last one's pid. */
static size_t count_children(pid_t parent, const char *name, pid_t *ret_pid)
{
    DIR *proc = opendir("/proc");
    size_t count = 0;

    for (const struct dirent *entry; proc != NULL && (entry = readdir(proc)) != NULL;) {
        char path[64];
        char stat[256] = "";
        int its_parent = 0;
        (void)snprintf(path, sizeof path, "/proc/%.20s/stat", entry->d_name);
        _cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0 || read(fd, stat, sizeof stat - 1) <= 0)
            continue;
        const char *start = strchr(stat, '(');
        const char *end = strrchr(stat, ')');
        if (end == NULL || sscanf(end + 1, " %*c %d", &its_parent) != 1 || its_parent != parent ||
            strncmp(start + 1, name, strlen(name)) != 0)
            continue;
        *ret_pid = (pid_t)strtol(stat, NULL, 10);
        count++;
    }
    if (proc != NULL)
        (void)closedir(proc);
    return count;
}

/* The PID 1 of the only sandbox: a child of the keeper, which is us. */
static pid_t find_init(void)
{
    pid_t found = -1;

    return count_children(getpid(), "hutch-init", &found) > 0 ? found : -1;
}

static void belongs_to_its_owner(struct world *world)
{
    struct sandbox *sandbox = make(world);
    struct sandbox_info info;
    struct outcome outcome = {0};

    CHECK(sandbox != NULL);
    sandbox_get(sandbox, &info);
    CHECK(info.state == SANDBOX_READY && strlen(info.id) == 29 && strncmp(info.id, "sb_", 3) == 0);
    CHECK((info.features & (WIRE_HELLO_TREE_KILL | WIRE_HELLO_TERMINAL)) ==
          (WIRE_HELLO_TREE_KILL | WIRE_HELLO_TERMINAL));
    CHECK(sandbox_find(world->engine, info.id, "mallory") == NULL &&
          sandbox_find(world->engine, info.id, NULL) != NULL);
    CHECK(sandbox_after(world->engine, 0, "mallory") == NULL && sandbox_after(world->engine, 0, "alice") == sandbox);
    CHECK(sandbox_after(world->engine, info.order, "alice") == NULL);
    char id[ENGINE_ID_SIZE];
    (void)snprintf(id, sizeof id, "%s", info.id);
    sandbox_destroy(sandbox, SANDBOX_DESTROYED, outcome_note, &outcome);
    CHECK(sandbox_find(world->engine, id, "alice") == NULL);
    CHECK(WORLD_UNTIL(world, outcome.is_done) && outcome.err.code == ERROR_NONE);
    CHECK(WORLD_UNTIL(world, world_sandbox(world, id)->state == SANDBOX_GONE));
    CHECK(world_sandbox(world, id)->reason == SANDBOX_DESTROYED);
}

static void ends_execs_with_it(struct world *world)
{
    struct sandbox *sandbox = make(world);
    struct exec_settings settings = world_shell("echo first; sleep 1000");
    struct heard heard = {0};

    settings.mode = EXEC_STREAM;
    struct exec *exec = start_with(sandbox, &settings);
    CHECK(exec != NULL && follow(exec, 0, &heard) && WORLD_UNTIL(world, heard.bytes == 6));
    sandbox_destroy(sandbox_after(world->engine, 0, NULL), SANDBOX_DESTROYED, NULL, NULL);
    CHECK(WORLD_UNTIL(world, heard.end < 0) && heard.result.end == EXEC_LOST &&
          heard.result.value == SANDBOX_DESTROYED && heard.result.killed);
    heard_release(&heard);
    /* Its result outlives the sandbox. */
    CHECK(WORLD_UNTIL(world, world->sandboxes[0].state == SANDBOX_GONE));
    CHECK(follow(exec_find(world->engine, world->execs[0].id, "alice"), 2, &heard) &&
          says(&heard, EXEC_STDOUT, "rst\n"));
    heard_release(&heard);
}

static bool change(struct world *world, int (*what)(struct sandbox *, sandbox_done, void *, struct error *),
                   struct sandbox *sandbox)
{
    struct outcome outcome = {0};

    return what(sandbox, outcome_note, &outcome, &outcome.err) == 0 && WORLD_UNTIL(world, outcome.is_done) &&
           outcome.err.code == ERROR_NONE;
}

static void pauses(struct world *world)
{
    struct sandbox *sandbox = make(world);
    struct exec_settings settings = world_shell("while :; do echo tick; sleep 0.01; done");
    struct heard heard = {0};
    struct error err = {0};
    struct exec *none = NULL;

    settings.mode = EXEC_STREAM;
    settings.timeout_ms = 700;
    struct exec *exec = start_with(sandbox, &settings);
    CHECK(exec != NULL && follow(exec, 0, &heard) && WORLD_UNTIL(world, heard.bytes > 20));
    CHECK(change(world, sandbox_pause, sandbox));
    world_pass(world, 50);
    uint64_t before = heard.bytes;
    world_pass(world, 1000);
    CHECK(heard.bytes == before && heard.end == 0); /* its time stands still too */
    CHECK(exec_start(sandbox, &settings, NULL, NULL, &none, &err) < 0 && engine_is_not_running(&err));
    CHECK(sandbox_pause(sandbox, outcome_note, NULL, &err) < 0 && engine_is_not_running(&err));
    CHECK(change(world, sandbox_resume, sandbox) && WORLD_UNTIL(world, heard.bytes > before));
    CHECK(WORLD_UNTIL(world, heard.end < 0) && heard.result.timed_out);
    heard_release(&heard);
    /* One that is paused can be destroyed. */
    CHECK(change(world, sandbox_pause, sandbox) && drain(world));
}

static void note_usage(void *data, const struct sandbox_usage *usage, const struct error *err)
{
    if (err == NULL)
        *(struct sandbox_usage *)data = *usage;
}

static struct sandbox_usage measure(struct world *world, struct sandbox *sandbox)
{
    struct sandbox_usage usage = {0};
    struct error err = {0};

    CHECK(sandbox_measure(sandbox, note_usage, &usage, &err) == 0 && WORLD_UNTIL(world, usage.cpu_us > 0));
    return usage;
}

/* What a stop leaves is the files, and init, who holds them. */
static void stops_and_starts(struct world *world)
{
    struct sandbox *sandbox = make(world);
    struct exec_settings settings = world_shell("echo kept > file; sleep 1000 & "
                                                "x=$(head -c 30000000 /dev/zero | tr '\\0' x); echo x; sleep 1000");
    struct heard heard = {0};
    struct error err = {0};
    struct exec *none = NULL;

    settings.mode = EXEC_STREAM;
    struct exec *exec = start_with(sandbox, &settings);
    CHECK(exec != NULL && follow(exec, 0, &heard) && WORLD_UNTIL(world, heard.bytes == 2));
    struct sandbox_usage before = measure(world, sandbox);
    CHECK(before.processes >= 3 && before.memory_bytes > 28 * MIB);
    CHECK(change(world, sandbox_stop, sandbox) && heard.end < 0 && heard.result.killed);
    heard_release(&heard);
    struct sandbox_usage after = measure(world, sandbox);
    CHECK(after.processes == 1 && after.memory_bytes < 8 * MIB);
    CHECK(world->sandboxes[0].state == SANDBOX_STOPPED);
    CHECK(exec_start(sandbox, &settings, NULL, NULL, &none, &err) < 0 && engine_is_not_running(&err));
    CHECK(change(world, sandbox_restart, sandbox) && run_says(world, sandbox, "cat file", "kept\n"));
}

static void runs_out_of_memory(struct world *world)
{
    struct sandbox *sandbox = make(world);
    struct sandbox_limits limits = {.memory_bytes = 48 * MIB, .processes = 32};
    struct sandbox_usage usage = {0};
    struct outcome outcome = {0};
    struct heard heard = {0};

    CHECK(sandbox_set_limits(sandbox, &limits, outcome_note, &outcome, &outcome.err) == 0 &&
          WORLD_UNTIL(world, outcome.is_done) && outcome.err.code == ERROR_NONE);
    CHECK(run(world, sandbox, "tail /dev/zero; sleep 1000", &heard));
    CHECK(heard.result.oom && exec_exit_code(&heard.result) == 137);
    heard_release(&heard);
    CHECK(run(world, sandbox, "exec tail /dev/zero", &heard) && heard.result.oom);
    heard_release(&heard);
    CHECK(run_says(world, sandbox, "echo alive", "alive\n"));
    CHECK(sandbox_measure(sandbox, note_usage, &usage, &outcome.err) == 0 &&
          WORLD_UNTIL(world, usage.memory_peak_bytes > 0));
    CHECK(usage.oom_kills >= 2 && usage.cpu_us > 0 && usage.disk_free_bytes > 32 * MIB);
    limits.memory_bytes = 1;
    outcome = (struct outcome){0};
    CHECK(sandbox_set_limits(sandbox, &limits, outcome_note, &outcome, &outcome.err) == 0 &&
          WORLD_UNTIL(world, outcome.is_done) && outcome.err.code == ERROR_INVALID);
}

/* Of two, the one that has not grown goes on. */
static void blames_the_right_one(struct world *world)
{
    struct sandbox *sandbox = make(world);
    struct exec_settings settings = world_shell("sleep 2; echo whole");
    struct heard innocent = {0};
    struct heard guilty = {0};

    struct exec *exec = start_with(sandbox, &settings);
    CHECK(exec != NULL && follow(exec, 0, &innocent));
    CHECK(run(world, sandbox, "exec tail /dev/zero", &guilty) && guilty.result.oom);
    CHECK(WORLD_UNTIL(world, innocent.end < 0) && !innocent.result.oom && says(&innocent, EXEC_STDOUT, "whole\n"));
    heard_release(&innocent);
    heard_release(&guilty);
}

static void survives_a_crash_of_init(struct world *world)
{
    struct sandbox *sandbox = make(world);
    struct exec_settings settings = world_shell("sleep 1000");
    struct heard heard = {0};

    struct exec *exec = start_with(sandbox, &settings);
    CHECK(exec != NULL && follow(exec, 0, &heard));
    world_pass(world, 50);
    pid_t init = find_init();
    CHECK(init > 0 && kill(init, SIGKILL) == 0);
    CHECK(WORLD_UNTIL(world, heard.end < 0) && heard.result.end == EXEC_LOST && heard.result.value == SANDBOX_CRASHED);
    heard_release(&heard);
    CHECK(WORLD_UNTIL(world, world->sandboxes[0].state == SANDBOX_GONE) &&
          world->sandboxes[0].reason == SANDBOX_CRASHED);
    CHECK(run_says(world, make(world), "echo another", "another\n"));
}

static void ends_when_idle(struct world *world)
{
    struct sandbox_settings settings = world_settings("alice");
    struct outcome outcome;

    settings.idle_timeout_ms = 300;
    struct sandbox *sandbox = make_with(world, &settings, &outcome);
    CHECK(run_says(world, sandbox, "sleep 0.6; echo busy", "busy\n"));
    CHECK(sandbox_find(world->engine, outcome.id, "alice") != NULL);
    CHECK(WORLD_UNTIL(world, world->sandboxes[0].state == SANDBOX_GONE) && world->sandboxes[0].reason == SANDBOX_IDLE);
    settings.idle_timeout_ms = 0;
    settings.lifetime_ms = 300;
    sandbox = make_with(world, &settings, &outcome);
    struct heard heard = {0};
    CHECK(run(world, sandbox, "sleep 1000", &heard) && heard.result.end == EXEC_LOST &&
          heard.result.value == SANDBOX_EXPIRED);
    heard_release(&heard);
}

static void makes_many_at_once(struct world *world)
{
    struct sandbox_settings settings = world_settings("alice");
    static struct outcome outcomes[MANY + 1];
    static struct heard heard[MANY];
    struct exec_settings shell = world_shell("echo hello");
    struct sandbox *sandbox;
    struct error err = {0};
    size_t done = 0;
    int fds[1];

    memset(outcomes, 0, sizeof outcomes);
    for (int i = 0; i < MANY; i++)
        CHECK(sandbox_create(world->engine, &settings, outcome_note, &outcomes[i], &sandbox, &err) == 0);
    CHECK(WORLD_UNTIL(world, ({
                          for (done = 0;
                               done < MANY && outcomes[done].is_done && outcomes[done].err.code == ERROR_NONE;)
                              done++;
                          done == MANY;
                      })));
    CHECK(world_guest_fds(world, fds, 1) == MANY);
    for (int i = 0; i < MANY; i++) {
        struct exec *exec = start_with(sandbox_find(world->engine, outcomes[i].id, "alice"), &shell);
        CHECK(exec != NULL && follow(exec, 0, &heard[i]));
    }
    for (int i = 0; i < MANY; i++) {
        CHECK(WORLD_UNTIL(world, heard[i].end < 0) && says(&heard[i], EXEC_STDOUT, "hello\n"));
        heard_release(&heard[i]);
    }
    for (int i = MANY; i < 64; i++)
        CHECK(sandbox_create(world->engine, &settings, outcome_note, &outcomes[MANY], &sandbox, &err) == 0);
    CHECK(sandbox_create(world->engine, &settings, outcome_note, &outcomes[MANY], &sandbox, &err) < 0 &&
          err.code == ERROR_LIMIT);
    CHECK(drain(world) && world_guest_fds(world, fds, 1) == 0);
    CHECK(sandbox_create(world->engine, &settings, outcome_note, &outcomes[MANY], &sandbox, &err) < 0);
}

static void refuses_nonsense(struct world *world)
{
    struct sandbox_settings settings = world_settings("alice");
    struct outcome outcome = {0};
    struct sandbox *sandbox = NULL;

    settings.limits.memory_bytes = 1;
    CHECK(sandbox_create(world->engine, &settings, outcome_note, &outcome, &sandbox, &outcome.err) == 0 &&
          WORLD_UNTIL(world, outcome.is_done) && outcome.err.code == ERROR_INVALID);
    CHECK(sandbox_find(world->engine, outcome.id, NULL) == NULL && world->sandbox_count == 0);
    settings = world_settings("an owner whose name is longer than sixty-three bytes, which is too long");
    CHECK(sandbox_create(world->engine, &settings, outcome_note, &outcome, &sandbox, &outcome.err) < 0 &&
          outcome.err.code == ERROR_INVALID);
}

static void claims_from_the_pool(struct world *world)
{
    struct sandbox_settings settings = world_settings("alice");
    struct pool_target target = {.class = settings.class, .limits = settings.limits, .min_idle = 3, .max_idle = 4};
    struct pool_figures figures = {0};
    struct sandbox_info info;
    struct outcome outcome;
    struct error err = {0};

    CHECK(pool_set(world->engine, &target, 1, &err) == 0);
    CHECK(WORLD_UNTIL(world, (pool_figures(world->engine, &figures), figures.idle == 3)));
    CHECK(world->sandbox_count == 0); /* nobody's yet */
    struct sandbox *sandbox = make_with(world, &settings, &outcome);
    CHECK(sandbox != NULL);
    sandbox_get(sandbox, &info);
    CHECK(info.was_pooled && info.state == SANDBOX_READY && strcmp(info.settings->owner, "alice") == 0);
    CHECK(run_says(world, sandbox, "hostname; ls -A", "sandbox\n"));
    settings.limits.memory_bytes = 40 * MIB;
    sandbox = make_with(world, &settings, &outcome);
    struct heard heard = {0};
    sandbox_get(sandbox, &info);
    CHECK(info.was_pooled && run(world, sandbox, "head -c 60m /dev/zero | tail", &heard) && heard.result.oom);
    heard_release(&heard);
    settings.class.disk_bytes *= 2;
    sandbox = make_with(world, &settings, &outcome);
    CHECK(sandbox == NULL && outcome.err.code == ERROR_INVALID); /* of its own making: more disk than memory */
    settings.limits.memory_bytes = 256 * MIB;
    sandbox = make_with(world, &settings, &outcome);
    sandbox_get(sandbox, &info);
    CHECK(!info.was_pooled);
    CHECK(WORLD_UNTIL(world, (pool_figures(world->engine, &figures), figures.idle == 3)));
    CHECK(figures.in_use == 2 && figures.claimed == 2 && figures.missed == 0 && figures.classes == 1);
    CHECK(pool_drain(world->engine) == 3);
    CHECK(WORLD_UNTIL(world, (pool_figures(world->engine, &figures), figures.idle == 3)));
    CHECK(pool_set(world->engine, NULL, 0, &err) == 0);
    pool_figures(world->engine, &figures);
    CHECK(figures.idle == 0 && figures.making == 0);
    CHECK(drain(world));
}

/* Its output goes on at the right byte, and what nobody knows of is ended. */
static void resumes_after_a_crash(struct world *world)
{
    struct sandbox *sandbox = make(world);
    struct exec_settings settings =
        world_shell("for i in 0 1 2 3 4 5; do seq $((i * 500000 + 1)) $((i * 500000 + 500000)); sleep 0.2; done");
    struct exec_settings collect = world_shell("sleep 1; echo collected; exit 5");
    struct error err = {0};
    struct heard heard = {0};
    char expected[16];

    settings.mode = EXEC_STREAM;
    CHECK(start_with(sandbox, &settings) != NULL && start_with(sandbox, &collect) != NULL);
    for (int crash = 0; crash < 3; crash++) {
        world_pass(world, 30);
        CHECK(!world->execs[0].has_ended && world_crash(world, &err) == 0);
    }
    struct exec *exec = exec_find(world->engine, world->execs[0].id, "alice");
    struct exec_info info = {0};
    CHECK(exec != NULL);
    exec_get(exec, &info);
    CHECK(follow(exec, info.seq_next, &heard) && WORLD_UNTIL(world, heard.end < 0) && heard.is_whole);
    heard_release(&heard);
    const struct noted_exec *note = &world->execs[0];
    CHECK(note->is_whole && note->has_ended && note->result.value == 0 && note->output.length == 22888896);
    size_t at = 0;
    bool is_right = note->output.length == 22888896;
    for (int i = 1; is_right && i <= 3000000; i++) {
        int length = snprintf(expected, sizeof expected, "%d\n", i);
        is_right = memcmp(note->output.data + at, expected, (size_t)length) == 0;
        at += (size_t)length;
    }
    CHECK(is_right);
    CHECK(WORLD_UNTIL(world, world->execs[1].has_ended) && world->execs[1].result.value == 5 &&
          world->execs[1].output.length == 10);
    CHECK(run_says(world, sandbox_after(world->engine, 0, "alice"), "echo new", "new\n"));
}

/* It says something all the time, also between the adoption of its sandbox and its own: that is not its end. */
static void hears_nothing_too_early(struct world *world)
{
    struct sandbox *sandbox = make(world);
    struct exec_settings settings = world_shell("i=0; while [ $i -lt 100 ]; do echo $i; i=$((i+1)); sleep 0.004; done");
    struct error err = {0};

    settings.mode = EXEC_STREAM;
    CHECK(start_with(sandbox, &settings) != NULL);
    world_pass(world, 30);
    CHECK(!world->execs[0].has_ended && world_crash(world, &err) == 0);
    CHECK(WORLD_UNTIL(world, world->execs[0].has_ended));
    CHECK(world->execs[0].result.end == EXEC_EXITED && world->execs[0].result.value == 0);
    CHECK(world->execs[0].is_whole && world->execs[0].output.length == 290);
}

/* Each gateway writes a part of it, and the next goes on where init says. */
static void goes_on_with_input(struct world *world)
{
    enum { SIZE = 6 * MIB, CRASHES = 3 };
    struct sandbox *sandbox = make(world);
    struct exec_settings settings =
        world_shell("while head -c 100000 > part && [ -s part ]; do cat part; sleep 0.005; done");
    _cleanup_free_ uint8_t *data = malloc(SIZE);
    struct error err = {0};
    struct exec_info info = {0};
    size_t before = 0;

    for (size_t i = 0; data != NULL && i < SIZE; i++)
        data[i] = (uint8_t)(i * 7 + i / 1000);
    settings.has_stdin = true;
    settings.mode = EXEC_STREAM;
    struct exec *exec = start_with(sandbox, &settings);
    struct typed typed = {.data = data, .size = SIZE};
    CHECK(exec != NULL && data != NULL);
    for (int crash = 0; crash < CRASHES; crash++) {
        type(&typed, exec, NULL);
        CHECK(WORLD_UNTIL(world, typed.sent > before + MIB));
        before = typed.sent;
        CHECK(before < SIZE && world_crash(world, &err) == 0);
        exec = exec_find(world->engine, world->execs[0].id, "alice");
        CHECK(exec != NULL && WORLD_UNTIL(world, (exec_get(exec, &info), info.is_stdin_known)));
        /* What waited in the gateway that crashed is lost, and nothing else. */
        CHECK(info.stdin_next <= typed.sent && info.stdin_next > 0 && !info.stdin_ended);
        typed.sent = (size_t)info.stdin_next;
    }
    type(&typed, exec, NULL);
    CHECK(WORLD_UNTIL(world, world->execs[0].has_ended));
    CHECK(world->execs[0].output.length == SIZE && memcmp(world->execs[0].output.data, data, SIZE) == 0);
}

/* EXEC was sent, its record never written: nobody was told of it, and nothing of it may stay. */
static void ends_what_was_not_recorded(struct world *world)
{
    struct sandbox *sandbox = make(world);
    struct exec_settings settings = world_shell("sleep 1000");
    struct file_question question = {
        .operation = WIRE_FILE_WRITE, .uid = WORLD_USER, .path = "half", .mode = 0644, .length = WIRE_FILE_ALL};
    struct file_callbacks callbacks = {0};
    struct file_job *job = NULL;
    struct error err = {0};
    pid_t init = find_init();
    pid_t child;

    CHECK(run_says(world, sandbox, "echo one", "one\n"));
    CHECK(file_start(sandbox, &question, &callbacks, NULL, &job, &err) == 0);
    world->is_stuck = true;
    CHECK(start_with(sandbox, &settings) != NULL);
    world_pass(world, 50);
    CHECK(count_children(init, "", &child) == 2);
    CHECK(world_crash(world, &err) == 0);
    sandbox = sandbox_after(world->engine, 0, "alice");
    CHECK(run_says(world, sandbox, "sleep 0.1; cat /proc/[0-9]*/comm | grep -c sleep", "0\n"));
    CHECK(count_children(init, "", &child) == 0);

    /* The same for a gateway that never got to record any. */
    world->is_stuck = true;
    CHECK(start_with(sandbox, &settings) != NULL);
    world_pass(world, 50);
    CHECK(count_children(init, "", &child) == 1 && world_crash(world, &err) == 0);
    world_pass(world, 200);
    CHECK(count_children(init, "", &child) == 0);
}

static void count_event(void *data, struct event_subscriber *subscriber)
{
    char *log = data;
    struct event event;

    while (events_next(subscriber, &event) > 0) {
        (void)strncat(log, event_kind_name(event.kind), 400 - strlen(log));
        (void)strncat(log, " ", 400 - strlen(log));
    }
}

static void tells_what_happens(struct world *world)
{
    struct event_subscriber *mine = NULL;
    struct event_subscriber *others = NULL;
    struct error err = {0};
    char log[512] = "";
    char nothing[512] = "";

    CHECK(events_subscribe(world->engine, 0, "alice", count_event, log, &mine, &err) == 0);
    CHECK(events_subscribe(world->engine, 0, "mallory", count_event, nothing, &others, &err) == 0);
    struct sandbox *sandbox = make(world);
    CHECK(run_says(world, sandbox, "echo x", "x\n"));
    CHECK(change(world, sandbox_pause, sandbox) && change(world, sandbox_resume, sandbox));
    sandbox_destroy(sandbox, SANDBOX_DESTROYED, NULL, NULL);
    CHECK(strcmp(log, "sandbox.created sandbox.ready exec.started exec.ended sandbox.paused sandbox.resumed "
                      "sandbox.ended ") == 0);
    CHECK(strcmp(nothing, "") == 0);
    events_unsubscribe(mine);
    events_unsubscribe(others);
}

const struct engine_case engine_cases_lives[] = {
    {"shows a sandbox to its owner alone", belongs_to_its_owner},
    {"ends execs with their sandbox", ends_execs_with_it},
    {"pauses and resumes", pauses},
    {"stops and starts", stops_and_starts},
    {"runs out of memory", runs_out_of_memory},
    {"blames the right exec", blames_the_right_one},
    {"survives a crash of init", survives_a_crash_of_init},
    {"ends sandboxes that are idle or too old", ends_when_idle},
    {"makes fifty at once", makes_many_at_once},
    {"refuses nonsense", refuses_nonsense},
    {"claims from the pool", claims_from_the_pool},
    {"resumes after a crash of the gateway", resumes_after_a_crash},
    {"hears nothing before everything is adopted", hears_nothing_too_early},
    {"goes on with standard input after a crash of the gateway", goes_on_with_input},
    {"ends what was never recorded", ends_what_was_not_recorded},
    {"tells what happens", tells_what_happens},
    {NULL, NULL},
};
