/* Capabilities do not come back: each test drops them in a process of its own, which exits with what it found. */
#include "test.h"
#include "wire/capability.h"

#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

struct sets {
    uint64_t effective;
    uint64_t permitted;
    uint64_t inheritable;
    uint64_t bounding;
};

static struct sets read_sets(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2] = {0};
    struct sets sets = {0};

    if (syscall(SYS_capget, &header, data) < 0)
        _exit(100);
    for (unsigned i = 0; i < 2; i++) {
        sets.effective |= (uint64_t)data[i].effective << (32 * i);
        sets.permitted |= (uint64_t)data[i].permitted << (32 * i);
        sets.inheritable |= (uint64_t)data[i].inheritable << (32 * i);
    }
    for (unsigned long i = 0; i < 64; i++) {
        if (prctl(PR_CAPBSET_READ, i, 0, 0, 0) == 1)
            sets.bounding |= UINT64_C(1) << i;
    }
    return sets;
}

static void assert_in_child(int (*check)(uint64_t argument), uint64_t argument)
{
    int status;
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0)
        _exit(check(argument));
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static int check_set(uint64_t allowed)
{
    uint64_t bounding = read_sets().bounding;

    if (capability_set(allowed) != 0)
        return 1;
    struct sets sets = read_sets();
    if (sets.effective != allowed || sets.permitted != allowed || sets.inheritable != 0)
        return 2;
    if (sets.bounding != bounding)
        return 3;
    /* What is gone can't be had back. */
    return capability_set(allowed | CAPABILITY(CAP_SYS_ADMIN)) == -EPERM ? 0 : 4;
}

TEST(test_set)
{
    assert_in_child(check_set, CAPABILITIES_NONE);
    assert_in_child(check_set, CAPABILITIES_ROOT);
    assert_in_child(check_set, CAPABILITIES_INIT);
}

static int check_bound_all(uint64_t allowed)
{
    return capability_bound(CAPABILITIES_ALL, allowed) == 0 && read_sets().bounding == allowed ? 0 : 1;
}

/* Only those in the first set are looked at. */
static int check_bound_some(uint64_t allowed)
{
    uint64_t before = read_sets().bounding;

    return capability_bound(CAPABILITIES_INIT, allowed) == 0 &&
                   read_sets().bounding == (before & ~(CAPABILITIES_INIT & ~allowed))
               ? 0
               : 1;
}

static int check_bound_denied(uint64_t allowed)
{
    return capability_set(CAPABILITIES_NONE) == 0 && capability_bound(CAPABILITIES_ALL, allowed) == -EPERM ? 0 : 1;
}

TEST(test_bound)
{
    assert_in_child(check_bound_all, CAPABILITIES_NONE);
    assert_in_child(check_bound_all, CAPABILITIES_ROOT);
    assert_in_child(check_bound_some, CAPABILITIES_NONE);
    assert_in_child(check_bound_some, CAPABILITIES_ROOT);
    assert_in_child(check_bound_denied, CAPABILITIES_NONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_set), cmocka_unit_test(test_bound)};
    return cmocka_run_group_tests_name("wire/capability", tests, NULL, NULL);
}
