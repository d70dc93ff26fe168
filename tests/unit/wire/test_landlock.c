/* Each attempt is a process of its own: nobody leaves a domain. */
#include "test.h"
#include "wire/landlock.h"

#include <linux/landlock.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/un.h>
#include <sys/wait.h>

static const struct landlock_rules scopes = {.scoped = LANDLOCK_SCOPED_SIGNALS | LANDLOCK_SCOPED_SOCKETS};

/* What it exited with. */
static int attempt(int (*try)(void))
{
    int status = 0;
    pid_t pid = fork();

    if (pid == 0)
        _exit(try());
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static bool enter(const struct landlock_rules *rules)
{
    int fd = landlock_new(rules);

    return fd >= 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && landlock_enter(fd) == 0 && close(fd) == 0;
}

static int signal_outside(void)
{
    return kill(getppid(), 0) == 0 ? 0 : errno;
}

static int enter_and_signal_outside(void)
{
    return enter(&scopes) ? signal_outside() : 255;
}

static int enter_and_signal_inside(void)
{
    int status = 0;
    pid_t pid = enter(&scopes) ? fork() : -1;

    if (pid == 0) {
        (void)pause();
        _exit(0);
    }
    if (pid < 0 || kill(pid, SIGTERM) < 0 || waitpid(pid, &status, 0) != pid)
        return errno;
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM ? 0 : 255;
}

static struct sockaddr_un abstract(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    (void)snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "hutch-unit-landlock-%d", getpid());
    return address;
}

static struct sockaddr_un outside;

static int connect_outside(void)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    return connect(fd, (const struct sockaddr *)&outside, sizeof outside) == 0 ? 0 : errno;
}

static int enter_and_connect_outside(void)
{
    return enter(&scopes) ? connect_outside() : 255;
}

static int enter_and_execute(void)
{
    static const struct landlock_rules no_programs = {.fs = LANDLOCK_ACCESS_FS_EXECUTE};
    static char name[] = "true";
    char *const argv[] = {name, NULL};

    if (!enter(&no_programs))
        return 255;
    (void)execv("/bin/true", argv);
    return errno;
}

TEST(test_version)
{
    int version = landlock_version();

    assert_true(version > 0 || version == -ENOSYS || version == -EOPNOTSUPP);
    if (version > 0)
        assert_int_equal(attempt(enter_and_execute), EACCES);
}

TEST(test_scopes)
{
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (landlock_version() < LANDLOCK_VERSION_OF_SCOPES) {
        assert_true(landlock_new(&scopes) < 0);
        (void)close(listener);
        return;
    }
    outside = abstract();
    assert_return_code(bind(listener, (const struct sockaddr *)&outside, sizeof outside), errno);
    assert_return_code(listen(listener, 4), errno);
    assert_int_equal(attempt(signal_outside), 0);
    assert_int_equal(attempt(connect_outside), 0);
    assert_int_equal(attempt(enter_and_signal_outside), EPERM);
    assert_int_equal(attempt(enter_and_connect_outside), EPERM);
    assert_int_equal(attempt(enter_and_signal_inside), 0);
    (void)close(listener);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_version), cmocka_unit_test(test_scopes)};
    return cmocka_run_group_tests_name("wire/landlock", tests, NULL, NULL);
}
