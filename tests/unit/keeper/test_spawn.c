#include "keeper/spawn.h"
#include "test.h"

static const char dirs[] = "/a\0/b\0/c\0/d\0/e\0/f\0/g\0/h\0/i\0/j\0/k\0/l\0/m\0/n\0/o\0/p";

/* No two descriptors are alike, so that none can be taken for another. */
static struct spawn make_spawn(uint32_t flags, size_t tasks, size_t layers, size_t dir_count)
{
    struct spawn spawn;

    memset(&spawn, 0, sizeof spawn);
    spawn.sandbox = 77;
    spawn.flags = flags;
    spawn.uid_first = 65536;
    spawn.user = 33;
    spawn.disk_bytes = 88;
    spawn.disk_inodes = 99;
    spawn.hostname = wire_str("host");
    spawn.dirs = (struct wire_strv){dirs, (uint32_t)dir_count * 3, (uint32_t)dir_count};
    spawn.guest_fd = 100;
    spawn.init_fd = 101;
    spawn.cgroup_fd = 102;
    spawn.usr_fd = (flags & WIRE_SPAWN_USR) != 0 ? 103 : -1;
    spawn.disk_fd = (flags & WIRE_SPAWN_IMAGE) != 0 ? 106 : -1;
    spawn.policy_fd = (flags & WIRE_SPAWN_ONLY) != 0 ? 107 : -1;
    spawn.programs = (struct wire_strv){dirs, 6, 2};
    spawn.task_count = tasks;
    spawn.layer_count = layers;
    spawn.dir_count = dir_count;
    for (int i = 0; i < WIRE_DIRS_MAX; i++) {
        if ((size_t)i < tasks)
            spawn.task_fds[i] = 200 + i;
        if ((size_t)i < layers)
            spawn.layer_fds[i] = 300 + i;
        if ((size_t)i < dir_count)
            spawn.dir_fds[i] = 400 + i;
    }
    return spawn;
}

static void assert_fds_equal(const int *a, const int *b, size_t count)
{
    for (size_t i = 0; i < count; i++)
        assert_int_equal(a[i], b[i]);
}

static void assert_same(const struct spawn *a, const struct spawn *b)
{
    assert_true(a->sandbox == b->sandbox && a->flags == b->flags && a->uid_first == b->uid_first && a->user == b->user);
    assert_true(a->disk_bytes == b->disk_bytes && a->disk_inodes == b->disk_inodes);
    assert_true(a->hostname.text == b->hostname.text && a->hostname.length == b->hostname.length);
    assert_true(a->dirs.data == b->dirs.data && a->dirs.length == b->dirs.length && a->dirs.count == b->dirs.count);
    assert_true(a->guest_fd == b->guest_fd && a->init_fd == b->init_fd && a->cgroup_fd == b->cgroup_fd);
    assert_true(a->usr_fd == b->usr_fd && a->disk_fd == b->disk_fd && a->policy_fd == b->policy_fd);
    assert_true(a->programs.data == b->programs.data && a->programs.count == b->programs.count);
    assert_true(a->task_count == b->task_count && a->layer_count == b->layer_count && a->dir_count == b->dir_count);
    assert_fds_equal(a->task_fds, b->task_fds, a->task_count);
    assert_fds_equal(a->layer_fds, b->layer_fds, a->layer_count);
    assert_fds_equal(a->dir_fds, b->dir_fds, a->dir_count);
}

static void check_round_trip(uint32_t flags, size_t tasks, size_t layers, size_t dir_count)
{
    struct spawn sent = make_spawn(flags, tasks, layers, dir_count);
    struct spawn received;
    struct wire_spawn message;
    int fds[FD_PASS_MAX];
    size_t count = spawn_to_message(&sent, &message, fds);

    assert_true(count <= FD_PASS_MAX);
    assert_int_equal(spawn_from_message(&message, fds, count, &received), 0);
    assert_same(&sent, &received);
    for (size_t wrong = 0; wrong <= FD_PASS_MAX; wrong++) {
        if (wrong != count)
            assert_int_equal(spawn_from_message(&message, fds, wrong, &received), -EBADMSG);
    }
}

TEST(test_every_layout)
{
    for (size_t i = 0; i < 8U * (SPAWN_TASKS_MAX + 1) * SPAWN_LAYERS_MAX * (WIRE_DIRS_MAX + 1); i++) {
        uint32_t flags = (i & 1 ? WIRE_SPAWN_USR : 0) | (i & 2 ? WIRE_SPAWN_IMAGE : 0) | (i & 4 ? WIRE_SPAWN_ONLY : 0);
        size_t rest = i / 8;
        size_t tasks = rest % (SPAWN_TASKS_MAX + 1);
        rest /= SPAWN_TASKS_MAX + 1;
        check_round_trip(flags, tasks, rest % SPAWN_LAYERS_MAX + 1, rest / SPAWN_LAYERS_MAX);
    }
}

/* Counts that the arrays have no room for, with as many descriptors as they ask for. */
TEST(test_too_many)
{
    static const struct {
        uint8_t tasks;
        uint8_t layers;
        uint32_t dirs;
    } rows[] = {
        {SPAWN_TASKS_MAX + 1, 1, 0},
        {0, SPAWN_LAYERS_MAX + 1, 0},
        {0, 1, WIRE_DIRS_MAX + 1},
        {0, 0, 0},
        {255, 1, 0},
        {0, 255, 0},
        {0, 1, UINT32_MAX},
    };
    static const int fds[600];
    struct spawn least = make_spawn(0, 0, 1, 0);
    struct wire_spawn message;
    int some[FD_PASS_MAX];
    size_t fixed = spawn_to_message(&least, &message, some) - 1;

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct spawn spawn;
        message = (struct wire_spawn){.tasks = rows[i].tasks, .layers = rows[i].layers, .dirs.count = rows[i].dirs};
        size_t count = fixed + rows[i].tasks + rows[i].layers + rows[i].dirs;
        assert_int_equal(spawn_from_message(&message, fds, count, &spawn), -EBADMSG);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_layout), cmocka_unit_test(test_too_many)};
    return cmocka_run_group_tests_name("keeper/spawn", tests, NULL, NULL);
}
