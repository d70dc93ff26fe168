/* Groups of commands in a real cgroup, below a root of our own. */
#include "base/cleanup.h"
#include "base/fd.h"
#include "base/sys.h"
#include "init/group.h"
#include "test.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WAIT_MS = 2000 };

static char root[96];
static struct groups groups;

static int set_up(void **state)
{
    (void)state;
    bool is_unified = access("/sys/fs/cgroup/cgroup.controllers", F_OK) == 0;

    (void)snprintf(root, sizeof root, "/sys/fs/cgroup/%shutch-test-group-%d", is_unified ? "" : "unified/", getpid());
    if (mkdir(root, 0755) < 0)
        return -1;
    groups = (struct groups){.root_fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
    return groups.root_fd < 0 ? -1 : 0;
}

static int tear_down(void **state)
{
    (void)state;
    while (groups.spare_count > 0) {
        struct group group = groups.spares[--groups.spare_count];
        group.is_spent = true;
        groups_give_back(&groups, &group);
    }
    close_fd(&groups.root_fd);
    return rmdir(root);
}

static size_t folders(void)
{
    DIR *folder = opendir(root);
    const struct dirent *entry;
    size_t count = 0;

    assert_non_null(folder);
    while ((entry = readdir(folder)) != NULL)
        count += entry->d_type == DT_DIR && entry->d_name[0] != '.' ? 1 : 0;
    (void)closedir(folder);
    return count;
}

/* A process in the group that sleeps until it is killed. */
static pid_t sleeper(const struct group *group)
{
    _cleanup_fd_ int fd = group_open(&groups, group);
    struct clone_args args = {.flags = CLONE_INTO_CGROUP, .exit_signal = SIGCHLD, .cgroup = (uint64_t)(unsigned)fd};

    assert_true(fd >= 0);
    pid_t pid = sys_clone3(&args);
    assert_true(pid >= 0);
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;)
            (void)pause();
    }
    return pid;
}

static void reap(pid_t pid, int signal_number)
{
    int status = 0;

    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, signal_number);
}

static void one_that_emptied_serves_again(void **state)
{
    (void)state;
    struct group first = GROUP_NONE;
    struct group again = GROUP_NONE;

    groups_prepare(&groups);
    groups_prepare(&groups);
    assert_int_equal(folders(), 1);
    assert_int_equal(groups_take(&groups, &first), 0);
    assert_int_equal(folders(), 1);
    assert_true(group_is_empty(&groups, &first));
    pid_t pid = sleeper(&first);
    assert_false(group_is_empty(&groups, &first));
    assert_int_equal(group_signal(&groups, &first, SIGTERM), 0);
    reap(pid, SIGTERM);
    assert_true(group_is_empty(&groups, &first));
    uint32_t number = first.number;
    groups_give_back(&groups, &first);
    assert_false(first.is_there);
    assert_int_equal(groups_take(&groups, &again), 0);
    assert_int_equal(again.number, number);
    assert_int_equal(folders(), 1);
    groups_give_back(&groups, &again);
}

static void one_that_was_killed_does_not(void **state)
{
    (void)state;
    struct group first = GROUP_NONE;
    struct group next = GROUP_NONE;

    assert_int_equal(groups_take(&groups, &first), 0);
    pid_t pid = sleeper(&first);
    assert_int_equal(group_signal(&groups, &first, SIGKILL), 0);
    reap(pid, SIGKILL);
    groups_give_back(&groups, &first);
    assert_int_equal(folders(), 0);
    assert_int_equal(groups_take(&groups, &next), 0);
    pid = sleeper(&next);
    assert_int_equal(waitpid(pid, NULL, WNOHANG), 0);
    assert_int_equal(group_signal(&groups, &next, SIGTERM), 0);
    reap(pid, SIGTERM);
    groups_give_back(&groups, &next);
}

static void only_a_few_wait(void **state)
{
    (void)state;
    struct group taken[GROUPS_SPARE + 3];
    const size_t count = sizeof taken / sizeof *taken;

    for (size_t i = 0; i < count; i++)
        assert_int_equal(groups_take(&groups, &taken[i]), 0);
    for (size_t i = 0; i < count; i++)
        assert_true(i == 0 || taken[i].number != taken[i - 1].number);
    assert_int_equal(folders(), count);
    for (size_t i = 0; i < count; i++)
        groups_give_back(&groups, &taken[i]);
    assert_int_equal(folders(), GROUPS_SPARE);
}

static void its_end_can_be_waited_for(void **state)
{
    (void)state;
    struct group group = GROUP_NONE;

    assert_int_equal(groups_take(&groups, &group), 0);
    pid_t pid = sleeper(&group);
    group_wait(&groups, &group);
    assert_true(group.events_fd >= 0);
    struct pollfd event = {.fd = group.events_fd, .events = POLLPRI};
    assert_false(group_is_empty(&groups, &group));
    assert_int_equal(poll(&event, 1, 0), 0);
    assert_int_equal(group_signal(&groups, &group, SIGKILL), 0);
    assert_int_equal(poll(&event, 1, WAIT_MS), 1);
    assert_true(group_is_empty(&groups, &group));
    reap(pid, SIGKILL);
    groups_give_back(&groups, &group);
    assert_int_equal(group.events_fd, -1);
    assert_int_equal(folders(), 0);
}

static void without_cgroups_nothing_is_prepared(void **state)
{
    (void)state;
    struct groups none = {.root_fd = -1};

    groups_prepare(&none);
    assert_int_equal(none.spare_count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(one_that_emptied_serves_again, set_up, tear_down),
        cmocka_unit_test_setup_teardown(one_that_was_killed_does_not, set_up, tear_down),
        cmocka_unit_test_setup_teardown(only_a_few_wait, set_up, tear_down),
        cmocka_unit_test_setup_teardown(its_end_can_be_waited_for, set_up, tear_down),
        cmocka_unit_test(without_cgroups_nothing_is_prepared),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
