#include "base/cleanup.h"
#include "keeper/instance.h"
#include "test.h"

#include <stdio.h>
#include <sys/stat.h>

#define DEAD "00000000deadbeef"

static struct instance make_instance(void)
{
    struct instance instance;
    struct error err;

    assert_int_equal(instance_init(&instance, &err), 0);
    return instance;
}

static bool exists(const struct instance *instance, const char *id)
{
    return faccessat(instance->instances_fd, id, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

TEST(test_claim)
{
    struct stat st;
    struct instance a = make_instance();
    struct instance b = make_instance();

    assert_string_not_equal(a.id, b.id);
    assert_int_equal(strspn(a.id, "0123456789abcdef"), INSTANCE_ID_SIZE - 1);
    assert_true(exists(&a, a.id) && exists(&a, b.id));
    assert_return_code(fstat(a.instances_fd, &st), errno);
    assert_int_equal(st.st_mode & 07777, 0700);
    instance_release(&b);
    assert_true(exists(&a, a.id));
    assert_false(exists(&a, b.id));
    instance_release(&a);
    assert_int_equal(access(INSTANCES_FOLDER, F_OK), 0);
    assert_int_equal(a.lock_fd, -1);
}

/* Who holds the lock through another descriptor may end the instance in its place. */
TEST(test_adopt)
{
    struct instance instance = make_instance();
    struct instance adopted;

    assert_int_equal(instance_adopt(&adopted, instance.id), 0);
    assert_string_equal(adopted.id, instance.id);
    assert_true(exists(&instance, instance.id));
    assert_int_equal(instance_forget(&adopted), 0);
    assert_false(exists(&instance, instance.id));
    assert_int_equal(adopted.instances_fd, -1);
    instance_release(&instance);
}

/* Notes whom it was asked about; what it answers is for the test to say. */
struct sweep {
    bool answer;
    size_t calls;
    char id[INSTANCE_ID_SIZE];
};

static bool note(void *context, const char *id)
{
    struct sweep *sweep = context;

    sweep->calls++;
    memcpy(sweep->id, id, INSTANCE_ID_SIZE);
    return sweep->answer;
}

/* Neither those that live, nor what is no instance at all, nor what a symlink leads to. */
TEST(test_sweep)
{
    static const char *const others[] = {"deadbeef", DEAD "0", "00000000DEADBEEF", "00000000deadbeeg"};
    struct instance a = make_instance();
    struct instance b = make_instance();
    struct sweep sweep = {.answer = false};

    for (size_t i = 0; i < COUNT(others); i++)
        test_write(a.instances_fd, others[i], "");
    assert_return_code(symlinkat("deadbeef", a.instances_fd, "1111111111111111"), errno);
    instance_sweep(&a, note, &sweep);
    assert_int_equal(sweep.calls, 0);

    test_write(a.instances_fd, DEAD, "");
    instance_sweep(&a, note, &sweep);
    assert_int_equal(sweep.calls, 1);
    assert_string_equal(sweep.id, DEAD);
    assert_true(exists(&a, DEAD));
    sweep.answer = true;
    instance_sweep(&a, note, &sweep);
    assert_int_equal(sweep.calls, 2);
    assert_false(exists(&a, DEAD));

    assert_true(exists(&a, a.id) && exists(&a, b.id));
    for (size_t i = 0; i < COUNT(others); i++)
        assert_true(exists(&a, others[i]));
    instance_release(&a);
    instance_release(&b);
}

/* A keeper that was killed leaves its file but not its lock. */
TEST(test_sweep_killed)
{
    struct instance a = make_instance();
    struct instance killed = make_instance();
    struct sweep sweep = {.answer = true};

    close_fd(&killed.lock_fd);
    instance_sweep(&a, note, &sweep);
    assert_int_equal(sweep.calls, 1);
    assert_string_equal(sweep.id, killed.id);
    assert_false(exists(&a, killed.id));
    instance_release(&killed);
    instance_release(&a);
}

/* A folder that another user made or can write to is not ours. */
TEST(test_foreign_folder)
{
    static const struct {
        const char *path;
        uid_t owner;
        mode_t mode;
        bool may;
    } rows[] = {
        {"/run/hutch", 0, 0755, true},     {"/run/hutch", 0, 0775, false},     {"/run/hutch", 0, 0757, false},
        {"/run/hutch", 1, 0755, false},    {INSTANCES_FOLDER, 0, 0770, false}, {INSTANCES_FOLDER, 1, 0700, false},
        {INSTANCES_FOLDER, 0, 0700, true},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct instance instance;
        struct error err;
        size_t open_before = test_open_fds();
        assert_return_code(chown(rows[i].path, rows[i].owner, 0), errno);
        assert_return_code(chmod(rows[i].path, rows[i].mode), errno);
        int r = instance_init(&instance, &err);
        assert_int_equal(r, rows[i].may ? 0 : -EPERM);
        if (r == 0)
            instance_release(&instance);
        else
            assert_int_equal(err.code, ERROR_DENIED);
        assert_int_equal(test_open_fds(), open_before);
        assert_return_code(chown(rows[i].path, 0, 0), errno);
        assert_return_code(chmod(rows[i].path, 0700), errno);
    }
    assert_return_code(rename("/run/hutch", "/run/elsewhere"), errno);
    assert_return_code(symlink("/run/elsewhere", "/run/hutch"), errno);
    struct instance instance;
    struct error err;
    assert_true(instance_init(&instance, &err) < 0);
}

static int hide_run(void **state)
{
    (void)state;
    test_hide("/run");
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_claim),        cmocka_unit_test(test_adopt),          cmocka_unit_test(test_sweep),
        cmocka_unit_test(test_sweep_killed), cmocka_unit_test(test_foreign_folder),
    };
    return cmocka_run_group_tests_name("keeper/instance", tests, hide_run, NULL);
}
