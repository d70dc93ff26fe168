#include "engine_cases.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum { MIB = 1 << 20 };

static void runs_commands(struct world *world)
{
    struct sandbox *sandbox = make(world);
    struct heard heard = {0};

    CHECK(run(world, sandbox, "echo out; echo err >&2; exit 3", &heard));
    CHECK(says(&heard, EXEC_STDOUT, "out\n") && says(&heard, EXEC_STDERR, "err\n") && heard.is_whole);
    CHECK(heard.result.end == EXEC_EXITED && heard.result.value == 3 && exec_exit_code(&heard.result) == 3);
    CHECK(heard.result.totals[0] == 4 && heard.result.totals[1] == 4 && !heard.result.truncated);
    heard_release(&heard);
    CHECK(run(world, sandbox, "kill -9 $$", &heard) && exec_exit_code(&heard.result) == 137 && !heard.result.oom);
    heard_release(&heard);

    const char *const argv[] = {"/nowhere", NULL};
    struct exec_settings settings = {.argv = argv, .uid = WORLD_USER, .filter = WIRE_FILTER_STANDARD};
    struct exec *exec = start_with(sandbox, &settings);
    CHECK(exec != NULL && follow(exec, 0, &heard) && WORLD_UNTIL(world, heard.end < 0));
    CHECK(heard.result.end == EXEC_NOT_STARTED && exec_exit_code(&heard.result) == 127);
    heard_release(&heard);
    CHECK(world->exec_count == 3 && world->execs[0].is_whole && world->execs[0].has_ended);
    CHECK(world->execs[0].output.length == 8 && world->sandboxes[0].state == SANDBOX_READY);
    CHECK(drain(world) && world->sandboxes[0].state == SANDBOX_GONE && world->sandboxes[0].reason == SANDBOX_DRAINED);
}

static void takes_environment(struct world *world)
{
    struct sandbox_settings settings = world_settings("alice");
    const char *const env[] = {"COLOUR=red", "SIZE=1", NULL};
    const char *const own[] = {"SIZE=2", NULL};
    struct exec_settings shell = world_shell("echo $COLOUR $SIZE $HOME; pwd");
    struct outcome outcome;
    struct heard heard = {0};

    settings.env = env;
    struct sandbox *sandbox = make_with(world, &settings, &outcome);
    shell.env = own;
    shell.folder = "/tmp";
    struct exec *exec = start_with(sandbox, &shell);
    CHECK(exec != NULL && follow(exec, 0, &heard) && WORLD_UNTIL(world, heard.end < 0));
    CHECK(says(&heard, EXEC_STDOUT, "red 2 /home/sandbox\n/tmp\n"));
    heard_release(&heard);
}

void type(void *data, struct exec *exec, const struct error *err)
{
    struct typed *typed = data;
    struct error failure = {0};
    size_t taken = 1;

    (void)err;
    while (typed->sent < typed->size && taken > 0) {
        if (exec_write(exec, typed->data + typed->sent, typed->size - typed->sent, true, &taken, &failure) < 0)
            return;
        typed->sent += taken;
    }
    if (typed->sent < typed->size)
        exec_on_room(exec, type, typed);
}

static void takes_input(struct world *world)
{
    struct sandbox *sandbox = make(world);
    struct exec_settings settings = world_shell("cat");
    _cleanup_free_ uint8_t *data = malloc(3 * MIB);
    struct heard heard = {0};

    for (size_t i = 0; data != NULL && i < 3 * MIB; i++)
        data[i] = (uint8_t)(i * 7 + i / 1000);
    settings.has_stdin = true;
    settings.mode = EXEC_STREAM;
    struct exec *exec = start_with(sandbox, &settings);
    struct typed typed = {.size = 3 * MIB, .data = data};
    CHECK(exec != NULL && follow(exec, 0, &heard));
    type(&typed, exec, NULL);
    CHECK(WORLD_UNTIL(world, heard.end < 0) && heard.is_whole && heard.bytes == 3 * MIB);
    CHECK(heard.streams[0].length == 3 * MIB && memcmp(heard.streams[0].data, data, 3 * MIB) == 0);
    heard_release(&heard);
}

enum { FILLERS = 8 };

/* More than the link takes at once, for commands that do not read: it is busy until the loop runs again. */
static bool make_busy(const struct world *world, struct sandbox *sandbox)
{
    struct exec_settings settings = world_shell("sleep 1000");
    _cleanup_free_ uint8_t *data = calloc(1, WIRE_WINDOW);
    struct error err = {0};
    bool is_busy = false;
    int fds[FILLERS];
    size_t count = world_guest_fds(world, fds, FILLERS);

    for (size_t i = 0; i < count && i < FILLERS; i++)
        CHECK(setsockopt(fds[i], SOL_SOCKET, SO_SNDBUF, &(int){WIRE_DATA_MAX}, sizeof(int)) == 0);
    settings.has_stdin = true;
    settings.mode = EXEC_STREAM;
    for (int i = 0; i < FILLERS && data != NULL && !is_busy; i++) {
        struct exec *exec = start_with(sandbox, &settings);
        size_t taken = 0;
        if (exec == NULL || exec_write(exec, data, WIRE_WINDOW, false, &taken, &err) < 0)
            return false;
        is_busy = !exec_has_input(exec);
    }
    return is_busy;
}

static void type_end(void *data, struct exec *exec, const struct error *err)
{
    struct error failure = {0};
    struct exec_info info;
    size_t taken = 0;

    (void)err;
    *(int *)data += 1;
    CHECK(exec_write(exec, "", 0, true, &taken, &failure) == 0);
    exec_get(exec, &info);
    if (!info.stdin_ended)
        exec_on_room(exec, type_end, data);
}

static void ends_input_on_a_busy_link(struct world *world)
{
    struct sandbox *sandbox = make(world);
    struct exec_settings settings = world_shell("cat; echo end");
    struct heard typed = {0};
    struct heard given = {0};
    int attempts = 0;

    settings.has_stdin = true;
    struct exec *exec = start_with(sandbox, &settings);
    CHECK(exec != NULL && follow(exec, 0, &typed) && make_busy(world, sandbox));
    type_end(&attempts, exec, NULL);
    settings.stdin_text = "";
    exec = start_with(sandbox, &settings);
    CHECK(exec != NULL && follow(exec, 0, &given));
    CHECK(WORLD_UNTIL(world, typed.end < 0 && given.end < 0) && attempts == 2);
    CHECK(says(&typed, EXEC_STDOUT, "end\n") && says(&given, EXEC_STDOUT, "end\n"));
    heard_release(&typed);
    heard_release(&given);
}

/* It counts as written all the same: whoever says offsets may go on. */
static void counts_what_nobody_reads(struct world *world)
{
    struct sandbox *sandbox = make(world);
    struct exec_settings settings = world_shell("exec <&-; echo closed; sleep 1000");
    struct heard heard = {0};
    struct exec_info info = {0};
    struct error err = {0};
    size_t taken = 0;

    settings.has_stdin = true;
    settings.mode = EXEC_STREAM;
    struct exec *exec = start_with(sandbox, &settings);
    CHECK(exec != NULL && follow(exec, 0, &heard) && WORLD_UNTIL(world, heard.bytes == 7));
    CHECK(exec_write(exec, "0123456789", 10, false, &taken, &err) == 0 && taken == 10);
    CHECK(WORLD_UNTIL(world, (exec_get(exec, &info), info.is_stdin_closed)) && info.stdin_next == 10);
    CHECK(exec_write(exec, "0123456789", 10, false, &taken, &err) == 0 && taken == 10);
    exec_get(exec, &info);
    CHECK(info.stdin_next == 20 && !info.stdin_ended);
    CHECK(exec_write(exec, "", 0, true, &taken, &err) == 0 && taken == 0);
    exec_get(exec, &info);
    CHECK(info.stdin_next == 20 && info.stdin_ended);
    heard_release(&heard);
}

static void cuts_what_it_collects(struct world *world)
{
    struct sandbox *sandbox = make(world);
    struct exec_settings settings =
        world_shell("i=0; while [ $i -lt 1000 ]; do printf 'a\\303\\244'; i=$((i+1)); done");
    struct heard heard = {0};

    settings.stdout_cap = 101; /* two bytes beyond 33 times three: in the middle of a character */
    struct exec *exec = start_with(sandbox, &settings);
    CHECK(exec != NULL && follow(exec, 0, &heard) && WORLD_UNTIL(world, heard.end < 0));
    CHECK(heard.result.truncated && heard.result.totals[0] == 3000 && heard.result.kept[0] == 100);
    CHECK(heard.streams[0].length == 100);
    heard_release(&heard);
}

static void streams_to_followers(struct world *world)
{
    struct sandbox *sandbox = make(world);
    struct exec_settings settings = world_shell("seq 1 2000000");
    struct heard heard[2] = {{0}, {0}};

    settings.mode = EXEC_STREAM;
    struct exec *exec = start_with(sandbox, &settings);
    CHECK(exec != NULL && follow(exec, 0, &heard[0]) && follow(exec, 0, &heard[1]));
    CHECK(WORLD_UNTIL(world, heard[0].end < 0 && heard[1].end < 0));
    for (int i = 0; i < 2; i++) {
        CHECK(heard[i].is_whole && heard[i].bytes == 14888896 && heard[i].end == -ENODATA);
        heard_release(&heard[i]);
    }
    CHECK(world->execs[0].is_whole && world->execs[0].output.length == 14888896);
}

static void keeps_the_newest(struct world *world)
{
    struct sandbox *sandbox = make(world);
    struct exec_settings settings = world_shell("seq 1 1000000; echo end");
    struct heard heard = {0};
    struct exec_info info;

    settings.mode = EXEC_STREAM;
    settings.stdout_cap = EXEC_STREAM_CAP_MIN;
    struct exec *exec = start_with(sandbox, &settings);
    exec_get(exec, &info);
    char id[ENGINE_ID_SIZE];
    (void)snprintf(id, sizeof id, "%s", info.id);
    CHECK(WORLD_UNTIL(world, (exec_get(exec_find(world->engine, id, "alice"), &info), info.result != NULL)));
    CHECK(info.seq_next == 6888900 && info.seq_first == info.seq_next - EXEC_STREAM_CAP_MIN && info.result->truncated);
    /* A cursor that lies before what is kept goes on at the first byte there is; one inside goes on there. */
    CHECK(follow(exec_find(world->engine, id, "alice"), info.seq_next - 11, &heard) && heard.end == -ENODATA);
    CHECK(says(&heard, EXEC_STDOUT, "000000\nend\n"));
    heard_release(&heard);
    CHECK(exec_find(world->engine, id, "mallory") == NULL && exec_find(world->engine, id, NULL) != NULL);
    struct exec_follower *none = NULL;
    struct error err = {0};
    CHECK(exec_follow(exec_find(world->engine, id, NULL), &(struct exec_follow_options){.after = info.seq_next + 1},
                      NULL, NULL, &none, &err) < 0 &&
          err.code == ERROR_INVALID);
}

static void drops_who_stalls(struct world *world)
{
    struct sandbox *sandbox = make(world);
    struct exec_settings settings = world_shell("seq 1 1000000");
    struct heard slow = {0};
    struct heard quick = {0};

    settings.mode = EXEC_STREAM;
    struct exec *exec = start_with(sandbox, &settings);
    CHECK(exec != NULL && follow(exec, 0, &slow) && follow(exec, 0, &quick));
    slow.is_deaf = true;
    world_pass(world, 500);
    /* The command waits for the slow one, and so does the quick one. */
    CHECK(quick.bytes > 0 && quick.bytes < 2 * MIB && quick.end == 0);
    CHECK(WORLD_UNTIL(world, quick.end < 0) && quick.is_whole && quick.bytes == 6888896);
    hear_now(&slow);
    CHECK(slow.end == -ETIME);
    heard_release(&slow);
    heard_release(&quick);
}

static void ends_in_time(struct world *world)
{
    struct sandbox *sandbox = make(world);
    struct exec_settings settings = world_shell("echo before; (setsid sleep 1000 &); sleep 1000");
    struct heard heard = {0};

    settings.timeout_ms = 200;
    struct exec *exec = start_with(sandbox, &settings);
    CHECK(exec != NULL && follow(exec, 0, &heard) && WORLD_UNTIL(world, heard.end < 0));
    CHECK(heard.result.timed_out && exec_exit_code(&heard.result) == -1 && says(&heard, EXEC_STDOUT, "before\n"));
    CHECK(heard.result.duration_ns > 150000000 && heard.result.duration_ns < 5000000000);
    heard_release(&heard);
    CHECK(run_says(world, sandbox, "cat /proc/[0-9]*/comm | grep -c sleep", "0\n"));
}

static void obeys_signals(struct world *world)
{
    struct sandbox *sandbox = make(world);
    struct exec_settings settings =
        world_shell("trap 'echo caught; exit 7' TERM; echo ready; while :; do sleep 0.01; done");
    struct heard heard = {0};
    struct error err = {0};

    settings.mode = EXEC_STREAM;
    struct exec *exec = start_with(sandbox, &settings);
    CHECK(exec != NULL && follow(exec, 0, &heard) && WORLD_UNTIL(world, heard.bytes == 6));
    exec = exec_follower_exec(heard.follower);
    CHECK(exec_signal(exec, 65, WIRE_SCOPE_PROCESS, &err) < 0 && err.code == ERROR_INVALID);
    CHECK(exec_signal(exec, SIGTERM, WIRE_SCOPE_PROCESS, &err) == 0);
    CHECK(WORLD_UNTIL(world, heard.end < 0) && heard.result.value == 7 && !heard.result.killed);
    CHECK(says(&heard, EXEC_STDOUT, "ready\ncaught\n"));
    heard_release(&heard);

    settings = world_shell("sleep 1000");
    exec = start_with(sandbox, &settings);
    CHECK(exec != NULL && follow(exec, 0, &heard));
    exec_kill(exec);
    CHECK(WORLD_UNTIL(world, heard.end < 0) && heard.result.killed && exec_exit_code(&heard.result) == 137);
    heard_release(&heard);
}

static void has_terminals(struct world *world)
{
    struct sandbox *sandbox = make(world);
    struct exec_settings settings = world_shell("stty size; read line; stty size; echo got $line");
    struct heard heard = {0};
    struct error err = {0};
    size_t taken = 0;

    settings.mode = EXEC_STREAM;
    settings.has_terminal = settings.has_stdin = true;
    settings.rows = 24;
    settings.columns = 80;
    struct exec *exec = start_with(sandbox, &settings);
    CHECK(exec != NULL && follow(exec, 0, &heard) && WORLD_UNTIL(world, heard.bytes == 7));
    exec = exec_follower_exec(heard.follower);
    CHECK(exec_resize(exec, 50, 132, &err) == 0 && exec_write(exec, "hi\n", 3, false, &taken, &err) == 0 && taken == 3);
    CHECK(WORLD_UNTIL(world, heard.end < 0));
    CHECK(says(&heard, EXEC_STDOUT, "24 80\r\nhi\r\n50 132\r\ngot hi\r\n"));
    heard_release(&heard);
}

static void dies_with_its_followers(struct world *world)
{
    struct sandbox *sandbox = make(world);
    struct exec_settings settings = world_shell("sleep 1000");
    struct heard heard = {0};
    struct heard other = {0};

    settings.is_attached = true;
    struct exec *exec = start_with(sandbox, &settings);
    CHECK(exec != NULL && follow(exec, 0, &heard) && follow(exec, 0, &other));
    heard_release(&heard);
    world_pass(world, 50);
    CHECK(!world->execs[0].has_ended);
    exec_detach(exec_follower_exec(other.follower));
    heard_release(&other);
    world_pass(world, 50);
    CHECK(!world->execs[0].has_ended);
    exec = start_with(sandbox, &settings);
    CHECK(exec != NULL && follow(exec, 0, &heard));
    heard_release(&heard);
    CHECK(WORLD_UNTIL(world, world->execs[1].has_ended) && world->execs[1].result.killed);
}

static void forgets_results(struct world *world)
{
    struct sandbox *sandbox = make(world);
    struct heard heard = {0};
    struct exec_info info;

    CHECK(run(world, sandbox, "echo kept", &heard));
    heard_release(&heard);
    struct exec *exec = exec_find(world->engine, world->execs[0].id, "alice");
    CHECK(exec != NULL);
    exec_get(exec, &info);
    CHECK(info.result != NULL && exec_next_of(world->engine, info.sandbox, NULL) == exec &&
          exec_next_of(world->engine, info.sandbox, exec) == NULL);
    exec_forget(exec);
    CHECK(exec_find(world->engine, world->execs[0].id, "alice") == NULL);
}

static void needs_records(struct world *world)
{
    struct sandbox *sandbox = make(world);
    struct exec_settings settings = world_shell("sleep 1000");
    struct heard heard = {0};
    struct error err = {0};
    struct exec *exec = NULL;

    world->failure = -ENOSPC;
    exec = start_with(sandbox, &settings);
    CHECK(exec != NULL && follow(exec, 0, &heard) && WORLD_UNTIL(world, heard.end < 0) && heard.end == -EIO);
    heard_release(&heard);
    CHECK(exec_start(sandbox, &settings, NULL, NULL, &exec, &err) < 0 && err.code == ERROR_SYSTEM);
    world->failure = 0;
    world_pass(world, 1100);
    CHECK(run_says(world, sandbox, "echo again; cat /proc/[0-9]*/comm | grep -c sleep", "again\n0\n"));
}

static void is_not_delayed_by_a_flood(struct world *world)
{
    struct sandbox *sandbox = make(world);
    struct exec_settings settings = world_shell("exec cat /dev/zero");
    struct engine_figures figures;
    struct exec *floods[3];

    settings.mode = EXEC_STREAM;
    world->is_brief = true; /* nobody could keep it all */
    for (int i = 0; i < 3; i++)
        floods[i] = start_with(sandbox, &settings);
    world_pass(world, 300);
    CHECK(run_says(world, sandbox, "echo quick", "quick\n"));
    engine_figures(world->engine, &figures);
    CHECK(figures.execs == 3 && figures.result_bytes < 4 * MIB);
    for (int i = 0; i < 3; i++)
        exec_kill(floods[i]);
    world_pass(world, 300);
    engine_figures(world->engine, &figures);
    CHECK(figures.execs == 0);
}

const struct engine_case engine_cases_execs[] = {
    {"runs commands", runs_commands},
    {"gives them an environment and a folder", takes_environment},
    {"types into them", takes_input},
    {"ends their input also when the link is busy", ends_input_on_a_busy_link},
    {"counts input that nobody reads", counts_what_nobody_reads},
    {"cuts what it collects between characters", cuts_what_it_collects},
    {"streams to followers", streams_to_followers},
    {"keeps the newest output", keeps_the_newest},
    {"drops a follower that stalls", drops_who_stalls},
    {"ends a tree that takes too long", ends_in_time},
    {"signals and kills", obeys_signals},
    {"has terminals", has_terminals},
    {"ends an attached exec with its last follower", dies_with_its_followers},
    {"forgets results", forgets_results},
    {"starts nothing that can't be recorded", needs_records},
    {"is not delayed by floods", is_not_delayed_by_a_flood},
    {NULL, NULL},
};
