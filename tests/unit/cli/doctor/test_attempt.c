#include "cli/doctor/attempt.h"
#include "keeper/instance.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SHORT_MS = 300 };

static struct finding *shared;
static char *claimed; /* an instance's id, shared as well */

static void say_yes(struct probe *probe)
{
    finding_yes(probe, "%s", probe->state);
}

static void say_no(struct probe *probe)
{
    finding_no(probe, EPERM, "trying");
}

static void say_nothing(struct probe *probe)
{
    (void)probe;
}

static void hang(struct probe *probe)
{
    finding_yes(probe, "too early");
    for (;;)
        (void)pause();
}

static void be_killed(struct probe *probe)
{
    finding_yes(probe, "too early");
    (void)kill(getpid(), SIGKILL);
}

static void leave(struct probe *probe)
{
    finding_yes(probe, "too early");
    _exit(3);
}

/* A child that nobody waits for, whose pid is what was found. */
static void leave_a_child(struct probe *probe)
{
    pid_t pid = fork();

    if (pid == 0)
        for (;;)
            (void)pause();
    finding_yes(probe, "%d", (int)pid);
}

static void try(void (*probe)(struct probe *probe), enum finding_state state, const char *found)
{
    const struct check check = {.name = "test", .probe = probe, .limit_ms = SHORT_MS};
    struct probe what = {.check = &check, .state = "/state", .finding = shared};

    memset(shared, 0, sizeof *shared);
    attempt(&what);
    assert_int_equal(shared->state, state);
    if (found != NULL)
        assert_string_equal(shared->found, found);
}

TEST(test_answers)
{
    try(say_yes, FINDING_YES, "/state");
    try(say_no, FINDING_NO, "trying: Operation not permitted");
}

/* What was said before is not an answer when the end was not a good one. */
TEST(test_bad_ends)
{
    try(hang, FINDING_NO, "the probe did not answer within 0.3 s");
    try(be_killed, FINDING_NO, "the probe was ended by signal 9 (Killed)");
    try(leave, FINDING_NO, "the probe ended without an answer");
    try(say_nothing, FINDING_NO, "the probe ended without an answer");
}

TEST(test_children)
{
    try(leave_a_child, FINDING_YES, NULL);
    pid_t pid = (pid_t)strtol(shared->found, NULL, 10);
    assert_true(pid > 0);
    /* Killed, and reaped before the answer came. */
    assert_int_equal(kill(pid, 0), -1);
    assert_int_equal(errno, ESRCH);
}

/* A process out of reach of the signal to the probe's group has a copy of its lock, and takes its time to end. */
static void hang_with_an_instance(struct probe *probe)
{
    struct instance instance;
    struct error err;

    if (instance_init(&instance, &err) < 0)
        _exit(1);
    memcpy(claimed, instance.id, sizeof instance.id);
    if (fork() == 0) {
        if (setsid() < 0)
            _exit(1);
        for (pid_t parent = getppid(); getppid() == parent;)
            (void)usleep(1000);
        (void)usleep(100000);
        _exit(0);
    }
    hang(probe);
}

TEST(test_instance_is_swept)
{
    char path[sizeof INSTANCES_FOLDER + INSTANCE_ID_SIZE];

    if (geteuid() != 0)
        skip();
    try(hang_with_an_instance, FINDING_NO, "the probe did not answer within 0.3 s");
    assert_int_equal(strlen(claimed), INSTANCE_ID_SIZE - 1);
    (void)snprintf(path, sizeof path, "%s/%s", INSTANCES_FOLDER, claimed);
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(errno, ENOENT);
}

TEST(test_nothing_left)
{
    size_t before = test_open_fds();

    try(hang, FINDING_NO, NULL);
    try(say_yes, FINDING_YES, NULL);
    assert_int_equal(test_open_fds(), before);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_answers), cmocka_unit_test(test_bad_ends),
                                       cmocka_unit_test(test_children), cmocka_unit_test(test_instance_is_swept),
                                       cmocka_unit_test(test_nothing_left)};

    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    claimed = mmap(NULL, INSTANCE_ID_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED || claimed == MAP_FAILED || prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
        return 1;
    return cmocka_run_group_tests_name("cli/doctor/attempt", tests, NULL, NULL);
}
