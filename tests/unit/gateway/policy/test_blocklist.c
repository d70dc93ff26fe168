#include "base/clock.h"
#include "gateway/policy/blocklist.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>

static struct blocklist *defaults(void)
{
    struct blocklist *list = NULL;
    struct error err = {0};

    if (blocklist_new(&list, &err) < 0 || blocklist_add_defaults(list, &err) < 0)
        fail_msg("%s", err.message);
    assert_true(blocklist_count(list) > 5);
    return list;
}

static struct blocklist *of(const char *pattern)
{
    struct blocklist *list = NULL;
    struct error err = {0};

    if (blocklist_new(&list, &err) < 0 || blocklist_add(list, pattern, &err) < 0)
        fail_msg("%s", err.message);
    return list;
}

static struct blocklist_verdict check(const struct blocklist *list, const char *command)
{
    return blocklist_check(list, command, strlen(command));
}

static const char *const blocked[] = {
    "rm -rf /",
    "rm -fr /",
    "rm -r -f /",
    "rm -f -r /",
    "rm -R /",
    "rm / -rf",
    "rm --recursive --force /",
    "rm -rf --no-preserve-root /",
    "rm -rf -- /",
    "rm -rf /*",
    "rm -rf //",
    "rm -rf /.",
    "rm -rf /../",
    "rm -rf /tmp/x /",
    "rm  -rf\t/",
    "rm -rf / --verbose",
    "rm -rfv / && echo done",
    "cd /tmp; rm -rf /;",
    "(rm -rf /)",
    "/bin/rm -rf /",
    "/usr/bin/../bin/rm -rf /",
    "sudo rm -rf /",
    "\\rm -rf /",
    "'rm' -rf /",
    "r\\m -rf /",
    "\"r\"m -rf \"/\"",
    "rm -rf '/'",
    "rm${IFS}-rf${IFS}/",
    "rm$IFS-rf$IFS/",
    "rm \\\n -rf \\\n /",
    "echo hi\nrm -rf /\n",
    "sh -c 'rm -rf /'",
    "find . | xargs rm -rf /",
    ":(){ :|:& };:",
    ":() { : | : & } ; :",
    "bomb() { bomb | bomb & }; bomb",
    "function f { f|f& }; f",
    "perl -e 'fork while fork'",
    "perl -e 'fork while 1'",
    "python3 -c 'import os\nwhile True: os.fork()'",
    "shutdown",
    "shutdown -h now",
    "/sbin/shutdown now",
    "sudo reboot",
    "sudo -n reboot",
    "ls; reboot",
    "true && halt",
    "poweroff",
    "env A=b poweroff -f",
    "A=b reboot",
    "sh -c reboot",
    "bash -c 'sleep 1; reboot'",
    "if true; then reboot; fi",
    "echo $(reboot)",
    "echo `halt`",
    "systemctl reboot",
    "systemctl --force poweroff",
    "init 0",
    "sudo init 6",
    "busybox reboot",
    "mkfs /dev/sda",
    "mkfs.ext4 -F /dev/sda1",
    "sudo mkfs.xfs disk.img",
    "mke2fs x",
    "dd if=/dev/zero of=/dev/sda",
    "dd of=/dev/nvme0n1 if=x bs=1M",
    "dd if=x of=//dev//vda",
    "echo x > /dev/sda",
    "cat x >/dev/vda1",
    "echo x >> /dev/nvme0n1p1",
    "echo x >| /dev/mmcblk0",
    "cat x > /dev/mapper/root",
    "cat x | tee /dev/sdb",
    "cp x /dev/sda",
    "shred -n1 /dev/sda",
    "wipefs -a /dev/sda",
};

TEST(what_is_blocked_by_default)
{
    struct blocklist *list = defaults();

    for (size_t i = 0; i < COUNT(blocked); i++) {
        struct blocklist_verdict verdict = check(list, blocked[i]);
        assert_row(blocked[i], verdict.blocked && !verdict.gave_up);
        assert_non_null(verdict.pattern);
    }
    blocklist_free(list);
}

TEST(what_is_not)
{
    static const char *const commands[] = {
        "",
        "ls -la /",
        "rm -rf /tmp/build",
        "rm -rf ./",
        "rm -rf .",
        "rm -rf build/*",
        "rm -rf node_modules && npm ci",
        "rm file /tmp/x",
        "rm /",
        "rm -f /tmp/../tmp/x",
        "npm rm -r foo; ls /",
        "rm -rf x; ls /",
        "rm -rf x\nls /",
        "grep -r alarm /",
        "charm -r /",
        "./rm-old -rf /tmp",
        "cat shutdown.log",
        "grep reboot /var/log/syslog",
        "./reboot.sh",
        "echo halting",
        "git commit -m 'handle shutdown'",
        "python3 shutdown_test.py",
        "halt-and-catch-fire",
        "npm init",
        "git init",
        "init 3",
        "systemctl status sshd",
        "ls mkfs",
        "mkfsx",
        "dd if=/dev/zero of=/tmp/x bs=1M count=1",
        "dd if=/dev/zero of=/dev/null",
        "dd if=x of=/dev/stdout",
        "dd if=x of=/dev/shm/x",
        "echo x > /dev/null",
        "echo x 2>/dev/null >/tmp/y",
        "echo x >/dev/stderr",
        "cat x > /dev/tty",
        "cat /dev/urandom | head -c 5",
        "cp x /dev/shm/y",
        "f() { g | h & }; f",
        "f() { echo f; }; f | cat &",
        "while true; do sleep 1; done",
        "python3 -c 'import os; pid = os.fork()'",
    };
    struct blocklist *list = defaults();

    for (size_t i = 0; i < COUNT(commands); i++) {
        struct blocklist_verdict verdict = check(list, commands[i]);
        if (verdict.blocked)
            fail_msg("%s: %s", commands[i], verdict.pattern);
    }
    assert_false(check(NULL, "rm -rf /").blocked);
    blocklist_free(list);
}

TEST(bad_utf8_and_nul_bytes)
{
    struct blocklist *list = defaults();

    assert_true(check(list, "echo \xff\xfe; rm -rf /").blocked);
    assert_true(check(list, "rm -rf / \xc3").blocked);
    assert_true(blocklist_check(list, "echo\0x\nrm -rf /", 15).blocked);
    assert_false(check(list, "echo \xff\xfe\xc3").blocked);
    blocklist_free(list);
}

TEST(a_pattern_that_is_wrong_says_where)
{
    static const struct {
        const char *pattern;
        const char *where;
    } rows[] = {
        {"abc(", "character 5"}, {"[z-a]", "character 4"}, {"x{2,1}", "character"},
        {"(?<a", "character"},   {"\\C", "character"},     {"a**", "character"},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct blocklist *list = NULL;
        struct error err = {0};
        assert_int_equal(blocklist_new(&list, &err), 0);
        int r = blocklist_add(list, rows[i].pattern, &err);
        if (r == 0) { /* a** is possessive to some */
            blocklist_free(list);
            continue;
        }
        assert_int_equal(r, -EINVAL);
        assert_row(err.message, strstr(err.message, rows[i].where) != NULL);
        assert_row(err.message, strstr(err.message, rows[i].pattern) != NULL);
        assert_int_equal(blocklist_count(list), 0);
        blocklist_free(list);
    }
}

TEST(lines_and_comments)
{
    static const char text[] = "# comment\n\nfoo\r\nb.r\n#x\nlast";
    static const char wrong[] = "ok\n# fine\n(\n";
    struct blocklist *list = NULL;
    struct error err = {0};

    assert_int_equal(blocklist_new(&list, &err), 0);
    assert_int_equal(blocklist_add_lines(list, text, sizeof text - 1, &err), 0);
    assert_int_equal(blocklist_count(list), 3);
    assert_string_equal(check(list, "a foo").pattern, "foo");
    assert_string_equal(check(list, "bar").pattern, "b.r");
    assert_true(check(list, "at last").blocked);
    assert_int_equal(blocklist_add_lines(list, wrong, sizeof wrong - 1, &err), -EINVAL);
    assert_non_null(strstr(err.message, "line 3"));
    blocklist_free(list);
}

TEST(caps)
{
    static char pattern[BLOCKLIST_PATTERN_MAX + 2];
    static char command[BLOCKLIST_COMMAND_MAX + 1];
    struct blocklist *list = NULL;
    struct error err = {0};

    memset(pattern, 'x', sizeof pattern - 1);
    assert_int_equal(blocklist_new(&list, &err), 0);
    assert_int_equal(blocklist_add(list, pattern, &err), -EINVAL);
    assert_int_equal(blocklist_add(list, "", &err), -EINVAL);
    for (int i = 0; i < BLOCKLIST_PATTERNS_MAX; i++)
        assert_int_equal(blocklist_add(list, "y", &err), 0);
    assert_int_equal(blocklist_add(list, "y", &err), -ENOBUFS);
    memset(command, 'z', sizeof command);
    assert_false(blocklist_check(list, command, BLOCKLIST_COMMAND_MAX).blocked);
    assert_true(blocklist_check(list, command, BLOCKLIST_COMMAND_MAX + 1).gave_up);
    blocklist_free(list);
}

static uint64_t time_of(const struct blocklist *list, const char *command, size_t length, const char *name)
{
    uint64_t start_ns = clock_now_ns();
    struct blocklist_verdict verdict = blocklist_check(list, command, length);
    uint64_t took_ms = (clock_now_ns() - start_ns) / 1000000U;

    if (getenv("HUTCH_TEST_TIMES") != NULL)
        (void)fprintf(stderr, "# %s: %llu ms, blocked %d, gave up %d\n", name, (unsigned long long)took_ms,
                      verdict.blocked, verdict.gave_up);
    return took_ms;
}

/* Expressions that explode end soon, and then the command is blocked. */
TEST(no_expression_takes_for_ever)
{
    static const char *const patterns[] = {
        "(a+)+b",    "a.*[0-9]",    "a[^0-9]*[0-9]", "a[^0-9]*+[0-9]",     "(?=a.*[0-9])z?", "(a|a)*b",
        "(a|aa)+$x", ".*.*.*.*.*x", "(.*)*x",        "(?:(?:(?:a*)*)*)*b", "(a?){40}a{40}b", "a*a*a*a*a*b",
    };
    static char command[BLOCKLIST_COMMAND_MAX];

    memset(command, 'a', sizeof command);
    memcpy(command + sizeof command - 4, "-bx-", 4); /* what the expressions must end with is there */
    for (size_t i = 0; i < COUNT(patterns); i++) {
        struct blocklist *list = of(patterns[i]);
        assert_row(patterns[i], time_of(list, command, sizeof command, patterns[i]) < 500);
        blocklist_free(list);
    }
}

/* The default ones on commands that were made to be slow. */
TEST(no_command_takes_for_ever)
{
    static const char *const units[] = {
        "rm ",         "rm -r ", "rm -r /x ", "dd ",     "dd of=/dev/null ", ":() {",  "f(){f|",  "sudo ", "sudo -n ",
        "A=b ",        "-c ",    "cp /dev/",  "tee /x ", "> /dev/",          "/////",  "while 1", "(((((", ";;;;;",
        "function f ", "../",    "a/",        "\\ \\ ",  "''\"\"",           "${IFS}", "\n\n\n",
    };
    static char command[BLOCKLIST_COMMAND_MAX];
    struct blocklist *list = defaults();

    for (size_t i = 0; i < COUNT(units); i++) {
        size_t unit = strlen(units[i]);
        for (size_t at = 0; at < sizeof command; at++)
            command[at] = units[i][at % unit];
        assert_row(units[i], time_of(list, command, sizeof command, units[i]) < 1000);
    }
    blocklist_free(list);
}

TEST(bare_commands)
{
    static const struct {
        const char *command;
        const char *bare;
    } rows[] = {
        {"ls", "ls"},     {"'l's", "ls"},      {"l\\s \\\"x", "ls \"x"},
        {"a\\\nb", "ab"}, {"a${IFS}b", "a b"}, {"a$IFS$IFSb", "a  b"},
        {"$I", "$I"},     {"x\\", "x"},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        char bare[64];
        size_t length = blocklist_bare(rows[i].command, strlen(rows[i].command), bare);
        assert_row(rows[i].command, length == strlen(rows[i].bare) && memcmp(bare, rows[i].bare, length) == 0);
    }
}

TEST(the_default_has_a_name)
{
    struct blocklist *named = NULL;
    struct blocklist *list = defaults();
    struct error err;

    assert_int_equal(blocklist_new(&named, &err), 0);
    assert_int_equal(blocklist_add(named, BLOCKLIST_DEFAULT, &err), 0);
    assert_int_equal(blocklist_count(named), blocklist_count(list));
    assert_true(blocklist_check(named, "rm -rf /", 8).blocked);
    assert_false(blocklist_check(named, "@default", 8).blocked);
    blocklist_free(named);
    blocklist_free(list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_default_has_a_name),
        cmocka_unit_test(what_is_blocked_by_default),
        cmocka_unit_test(what_is_not),
        cmocka_unit_test(bad_utf8_and_nul_bytes),
        cmocka_unit_test(a_pattern_that_is_wrong_says_where),
        cmocka_unit_test(lines_and_comments),
        cmocka_unit_test(caps),
        cmocka_unit_test(no_expression_takes_for_ever),
        cmocka_unit_test(no_command_takes_for_ever),
        cmocka_unit_test(bare_commands),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
