/* On this machine's own /usr. */
#include "keeper/whitelist.h"
#include "test.h"

#include <limits.h>
#include <stdlib.h>

static int resolve(const char *names, size_t length, struct buf *programs, struct error *err)
{
    struct wire_strv list = {.data = names, .length = (uint32_t)length};
    int usr = open("/usr", O_PATH | O_CLOEXEC);

    for (size_t i = 0; i < length; i++)
        list.count += names[i] == '\0';
    *programs = buf_init(WHITELIST_BYTES_MAX);
    int r = whitelist_resolve(usr, list, programs, err);
    (void)close(usr);
    return r;
}

#define RESOLVE(names, programs, err) resolve(names, sizeof(names), programs, err)

static size_t count(const struct buf *programs)
{
    size_t strings = 0;

    for (size_t i = 0; i < programs->length; i++)
        strings += programs->data[i] == '\0';
    return strings;
}

TEST(test_links)
{
    struct error err = {0};
    struct buf programs;
    char real[PATH_MAX];

    assert_int_equal(RESOLVE("sh\0true\0/usr/bin/sh", &programs, &err), 0);
    assert_non_null(realpath("/usr/bin/sh", real));
    assert_true(whitelist_has(&programs, real + strlen("/usr/")));
    assert_true(whitelist_has(&programs, "bin/true"));
    assert_false(whitelist_has(&programs, "bin/tru") || whitelist_has(&programs, ""));
    assert_int_equal(count(&programs), 3); /* and one loader */
    buf_release(&programs);
}

TEST(test_scripts)
{
    struct error err = {0};
    struct buf programs;

    assert_true(RESOLVE("ldd", &programs, &err) < 0);
    assert_non_null(strstr(err.message, "'ldd' is a script for /bin/bash: list that too"));
    buf_release(&programs);
    assert_int_equal(RESOLVE("ldd\0bash", &programs, &err), 0);
    assert_true(whitelist_has(&programs, "bin/ldd"));
    buf_release(&programs);
}

TEST(test_refusals)
{
    static const struct {
        const char *name;
        const char *why;
    } rows[] = {
        {"hutch-no-such-program", "there is no program 'hutch-no-such-program' in "},
        {"trueX", "; did you mean true?"},
        {"/usr/bin/hutch-no-such", "there is no program /usr/bin/hutch-no-such"},
        {"/usr/bin", "/usr/bin can't be executed"},
        {"/usr/lib/os-release", "can't be executed"},
        {"/usr/lib64/ld-linux-x86-64.so.2", "is neither a program for this machine nor a script"},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct error err = {0};
        struct buf programs;
        assert_row(rows[i].name, resolve(rows[i].name, strlen(rows[i].name) + 1, &programs, &err) < 0);
        if (strstr(err.message, rows[i].why) == NULL)
            fail_msg("%s: %s", rows[i].name, err.message);
        buf_release(&programs);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_links), cmocka_unit_test(test_scripts),
                                       cmocka_unit_test(test_refusals)};
    return cmocka_run_group_tests_name("keeper/whitelist", tests, NULL, NULL);
}
