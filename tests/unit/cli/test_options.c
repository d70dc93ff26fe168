#include "cli/options.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>

#define MIB (UINT64_C(1) << 20)

struct parsed {
    int result;
    struct run_options options;
    struct error err;
};

/* The words end in NULL and live as long as what was parsed from them. The caller releases the options. */
static struct parsed parse(const char *const words[])
{
    struct parsed parsed = {0};

    parsed.result = options_parse((char **)(uintptr_t)words, &parsed.options, &parsed.err);
    return parsed;
}

#define PARSE(...) parse((const char *const[]){__VA_ARGS__, NULL})

static bool contains(const char *text, const char *part)
{
    return strstr(text, part) != NULL;
}

TEST(test_defaults)
{
    struct parsed parsed = PARSE("--", "true");
    const struct run_options *options = &parsed.options;

    assert_int_equal(parsed.result, 0);
    assert_int_equal(options->memory_bytes, 512 * MIB);
    assert_int_equal(options->disk_bytes, 256 * MIB);
    assert_int_equal(options->processes, 256);
    assert_int_equal(options->open_files, 1024);
    assert_int_equal(options->uid, 65534);
    assert_int_equal(options->filter, WIRE_FILTER_STANDARD);
    assert_string_equal(options->folder, "/workspace");
    assert_string_equal(options->state, "/var/lib/hutch");
    assert_true(options->cpu_milli == 0 && options->file_bytes == 0 && options->timeout_ms == 0);
    assert_true(options->env_count == 0 && options->dir_count == 0 && options->root == NULL);
    assert_false(options->root_rw || options->stats || options->json || options->tty || options->help);
    options_release(&parsed.options);
}

#define NUMBER(option, value, field, number)                                                                           \
    option, value, offsetof(struct run_options, field), sizeof((struct run_options *)0)->field, number

static const struct {
    const char *option;
    const char *value; /* NULL: takes none */
    size_t offset;
    size_t size;
    uint64_t number;
} numbers[] = {
    {NUMBER("--memory", "512M", memory_bytes, 512 * MIB)},
    {NUMBER("--memory", "9223372036854775807", memory_bytes, INT64_MAX)},
    {NUMBER("--cpus", "0.5", cpu_milli, 500)},
    {NUMBER("--cpus", "2", cpu_milli, 2000)},
    {NUMBER("--cpus", "4294967.295", cpu_milli, UINT32_MAX)},
    {NUMBER("--processes", "1", processes, 1)},
    {NUMBER("--processes", "4294967295", processes, UINT32_MAX)},
    {NUMBER("--disk", "1", disk_bytes, 1)},
    {NUMBER("--disk", "512M", disk_bytes, 512 * MIB)},
    {NUMBER("--file-size", "10k", file_bytes, 10240)},
    {NUMBER("--open-files", "1048576", open_files, 1048576)},
    {NUMBER("--timeout", "500ms", timeout_ms, 500)},
    {NUMBER("--timeout", "2147483647ms", timeout_ms, INT32_MAX)},
    {NUMBER("--timeout", "1.5", timeout_ms, 1500)},
    {NUMBER("--user", "root", uid, 0)},
    {NUMBER("--user", "nobody", uid, 65534)},
    {NUMBER("--user", "65535", uid, 65535)},
    {NUMBER("--user", "0", uid, 0)},
    {NUMBER("--filter", "tight", filter, WIRE_FILTER_TIGHT)},
    {NUMBER("--filter", "standard", filter, WIRE_FILTER_STANDARD)},
    {NUMBER("--stats", NULL, stats, true)},
    {NUMBER("--json", NULL, json, true)},
    {NUMBER("--tty", NULL, tty, true)},
    {NUMBER("-t", NULL, tty, true)},
    {NUMBER("--help", NULL, help, true)},
    {NUMBER("-h", NULL, help, true)},
};

static uint64_t number_at(const struct run_options *options, size_t offset, size_t size)
{
    uint64_t number = 0;
    uint32_t number32;
    const uint8_t *at = (const uint8_t *)options + offset;

    if (size == 1)
        return *at;
    memcpy(size == 4 ? (void *)&number32 : (void *)&number, at, size);
    return size == 4 ? number32 : number;
}

/* Both as two words and as one. */
TEST(test_numbers)
{
    for (size_t i = 0; i < COUNT(numbers); i++) {
        const char *value = numbers[i].value;
        char word[64];
        (void)snprintf(word, sizeof word, "%s%s%s", numbers[i].option, value != NULL ? "=" : "",
                       value != NULL ? value : "");
        struct parsed two = value != NULL ? PARSE(numbers[i].option, value, "true") : PARSE(numbers[i].option, "true");
        struct parsed one = PARSE(word, "true");
        assert_row(word, two.result == 0 && one.result == 0);
        assert_row(word, number_at(&two.options, numbers[i].offset, numbers[i].size) == numbers[i].number);
        assert_row(word, number_at(&one.options, numbers[i].offset, numbers[i].size) == numbers[i].number);
        assert_row(word, one.options.help || strcmp(one.options.command[0], "true") == 0);
    }
}

static const struct {
    const char *option;
    const char *value;
} bad_values[] = {
    {"--template", "debian"},
    {"--template", ""},
    {"--memory", "0"},
    {"--memory", "-1"},
    {"--memory", "12X"},
    {"--memory", "1e30"},
    {"--memory", ""},
    {"--memory", "9223372036854775808"},
    {"--memory", "99999999999T"},
    {"--memory", "1.5G"},
    {"--cpus", "0"},
    {"--cpus", "-1"},
    {"--cpus", "1e30"},
    {"--cpus", "4294967.296"},
    {"--cpus", "many"},
    {"--processes", "0"},
    {"--processes", "-1"},
    {"--processes", "1.5"},
    {"--processes", "4294967296"},
    {"--processes", "1K"},
    {"--disk", "0"},
    {"--disk", "-1"},
    {"--disk", "12X"},
    {"--disk", "9223372036854775808"},
    {"--file-size", "0"},
    {"--file-size", "12X"},
    {"--file-size", "-1"},
    {"--open-files", "0"},
    {"--open-files", "-1"},
    {"--open-files", "1048577"},
    {"--timeout", "0"},
    {"--timeout", "-1s"},
    {"--timeout", "1d"},
    {"--timeout", "1e30"},
    {"--timeout", "2147483648ms"},
    {"--timeout", "0.1ms"},
    {"--user", "65536"},
    {"--user", "-1"},
    {"--user", "somebody"},
    {"--user", ""},
    {"--filter", "none"},
    {"--filter", ""},
    {"--env", ""},
    {"--env", "=value"},
    {"--workdir", "relative"},
    {"--workdir", ""},
    {"--dir", ""},
    {"--dir", ":/a"},
    {"--dir", "/a:relative"},
    {"--dir", "/a:/"},
    {"--dir", "/a:/proc"},
    {"--dir", "/a:/dev/x:ro"},
    {"--dir", "/a:/b/../c"},
    {"--dir", "/a:/b/:rw"},
    {"--put", ""},
    {"--put", "a"},
    {"--put", ":a"},
    {"--get", "a:"},
    {"--get", ":"},
};

/* The message names the option, and the value unless it is empty. */
TEST(test_bad_values)
{
    for (size_t i = 0; i < COUNT(bad_values); i++) {
        char row[64];
        (void)snprintf(row, sizeof row, "%s '%s'", bad_values[i].option, bad_values[i].value);
        struct parsed parsed = PARSE(bad_values[i].option, bad_values[i].value, "true");
        assert_row(row, parsed.result == -EINVAL);
        assert_row(row, contains(parsed.err.message, bad_values[i].option));
        options_release(&parsed.options);
    }
}

static const struct {
    const char *words[6];
    const char *message;
} refused[] = {
    {{NULL}, "no command"},
    {{"--", NULL}, "no command"},
    {{"--stats", NULL}, "no command"},
    {{"--", ""}, "empty word"},
    {{"--memory", NULL}, "--memory needs a value: --memory SIZE"},
    {{"--dir", NULL}, "--dir needs a value"},
    {{"--json=1", "true"}, "--json takes no value"},
    {{"-t=1", "true"}, "--tty takes no value"},
    {{"-T", "true"}, "unknown option -T"},
    {{"--tty", "--json", "true"}, "--tty shows a terminal's output, --json collects it: choose one"},
    {{"--stats=", "true"}, "--stats takes no value"},
    {{"--memroy", "1G", "true"}, "did you mean --memory?"},
    {{"--time-out=1", "true"}, "did you mean --timeout?"},
    {{"--cpu", "1", "true"}, "did you mean --cpus?"},
    {{"-memory", "1G", "true"}, "did you mean --memory?"},
    {{"--JSON", "true"}, "unknown option --JSON"},
    {{"--something-else", "true"}, "'hutch run --help' lists them"},
    {{"-x", "true"}, "'hutch run --help' lists them"},
    {{"-", "true"}, "unknown option -"},
    {{"---", "true"}, "unknown option ---"},
    {{"--rw-root", "true"}, "--rw-root needs --root"},
    {{"--memory", "1M", "--disk", "600K", "true"}, "at least 1M"},
};

TEST(test_refused)
{
    for (size_t i = 0; i < COUNT(refused); i++) {
        struct parsed parsed = parse(refused[i].words);
        assert_row(refused[i].message, parsed.result == -EINVAL);
        assert_row(parsed.err.message, contains(parsed.err.message, refused[i].message));
        options_release(&parsed.options);
    }
}

/* An unknown option may be as long as it likes. */
TEST(test_long_option)
{
    static char word[10000];

    memset(word, '-', sizeof word - 1);
    for (size_t length = 50; length < sizeof word - 1; length = length < 70 ? length + 1 : length * 3) {
        word[length] = '\0';
        assert_int_equal(PARSE(word, "true").result, -EINVAL);
        word[length] = '-';
    }
}

/* What follows the command or "--" is the command's. */
TEST(test_command)
{
    struct parsed plain = PARSE("--json", "ls", "--stats", "--memory");
    struct parsed after = PARSE("--json", "--", "--stats", "--", "x");

    assert_int_equal(plain.result, 0);
    assert_false(plain.options.stats);
    assert_string_equal(plain.options.command[0], "ls");
    assert_string_equal(plain.options.command[2], "--memory");
    assert_int_equal(after.result, 0);
    assert_string_equal(after.options.command[0], "--stats");
    assert_string_equal(after.options.command[1], "--");
}

TEST(test_texts)
{
    struct parsed parsed =
        PARSE("--template=host", "--root", "/srv/root", "--rw-root", "--workdir=/tmp", "--state", "/s", "true");

    assert_int_equal(parsed.result, 0);
    assert_string_equal(parsed.options.root, "/srv/root");
    assert_true(parsed.options.root_rw);
    assert_string_equal(parsed.options.folder, "/tmp");
    assert_string_equal(parsed.options.state, "/s");
}

TEST(test_state_from_environment)
{
    assert_return_code(setenv("HUTCH_STATE", "/elsewhere", 1), errno);
    assert_string_equal(PARSE("true").options.state, "/elsewhere");
    assert_string_equal(PARSE("--state=/here", "true").options.state, "/here");
    assert_return_code(setenv("HUTCH_STATE", "", 1), errno);
    assert_string_equal(PARSE("true").options.state, "/var/lib/hutch");
    assert_return_code(unsetenv("HUTCH_STATE"), errno);
}

/* Unless it is said how large, the disk is half the memory, and no more than 256 MiB. */
TEST(test_disk)
{
    assert_int_equal(PARSE("--memory", "100M", "true").options.disk_bytes, 50 * MIB);
    assert_int_equal(PARSE("--memory", "4G", "true").options.disk_bytes, 256 * MIB);
    assert_int_equal(PARSE("--memory", "4G", "--disk", "4G", "true").options.disk_bytes, 4096 * MIB);
    assert_true(PARSE("--memory", "4G", "--disk", "2049M", "true").options.disk_is_image);
    assert_false(PARSE("--memory", "4G", "--disk", "2048M", "true").options.disk_is_image);
    assert_false(PARSE("--memory", "4G", "true").options.disk_is_image);
}

TEST(test_dirs)
{
    static const struct {
        const char *value;
        const char *host;
        const char *guest;
        bool writable;
    } rows[] = {
        {"/a", "/a", "/workspace", true},  {"/a:ro", "/a", "/workspace", false}, {"/a:rw", "/a", "/workspace", true},
        {"/a:/b", "/a", "/b", true},       {"/a:/b:ro", "/a", "/b", false},      {"/a:/b:rw", "/a", "/b", true},
        {".:/b/c:ro", ".", "/b/c", false}, {"ro", "ro", "/workspace", true},     {"a:/ro", "a", "/ro", true},
        {"a:/b/ro", "a", "/b/ro", true},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct parsed parsed = PARSE("--dir", rows[i].value, "true");
        assert_row(rows[i].value, parsed.result == 0 && parsed.options.dir_count == 1);
        assert_string_equal(parsed.options.dirs[0].host, rows[i].host);
        assert_string_equal(parsed.options.dirs[0].guest, rows[i].guest);
        assert_row(rows[i].value, parsed.options.dirs[0].writable == rows[i].writable);
        options_release(&parsed.options);
        assert_null(parsed.options.dirs);
    }
}

/* The caller's path comes first going in, and last coming out. */
TEST(test_copies)
{
    struct parsed parsed = PARSE("--put", "a/b:/c:d", "--get", "/e:f", "true");

    assert_int_equal(parsed.result, 0);
    assert_int_equal(parsed.options.puts.count, 1);
    assert_string_equal(parsed.options.puts.list[0].host, "a/b");
    assert_string_equal(parsed.options.puts.list[0].guest, "/c:d");
    assert_int_equal(parsed.options.gets.count, 1);
    assert_string_equal(parsed.options.gets.list[0].guest, "/e");
    assert_string_equal(parsed.options.gets.list[0].host, "f");
    options_release(&parsed.options);
    assert_null(parsed.options.puts.list);
    assert_null(parsed.options.gets.list);
}

/* `count` times the same option, and how many of them were too many. */
static int parse_repeated(const char *option, size_t count, struct run_options *options)
{
    struct error err;
    char **argv = calloc(count + 2, sizeof *argv);

    assert_non_null(argv);
    for (size_t i = 0; i < count; i++)
        argv[i] = (char *)(uintptr_t)option;
    argv[count] = (char *)(uintptr_t) "true";
    int r = options_parse(argv, options, &err);
    free((void *)argv);
    return r;
}

TEST(test_repeated)
{
    static const struct {
        const char *option;
        size_t most;
    } rows[] = {{"--dir=/a:/b", WIRE_DIRS_MAX},
                {"--env=A=1", OPTIONS_ENV_MAX},
                {"--put=a:b", OPTIONS_COPIES_MAX},
                {"--get=a:b", OPTIONS_COPIES_MAX}};

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct run_options options;
        assert_row(rows[i].option, parse_repeated(rows[i].option, rows[i].most, &options) == 0);
        assert_row(rows[i].option,
                   options.dir_count + options.env_count + options.puts.count + options.gets.count == rows[i].most);
        options_release(&options);
        assert_row(rows[i].option, parse_repeated(rows[i].option, rows[i].most + 1, &options) == -EINVAL);
        options_release(&options);
    }
}

TEST(test_long_paths)
{
    static char word[9000];

    for (size_t length = 4090; length < 4100; length++) {
        memset(word, 'h', length);
        (void)snprintf(word + length, sizeof word - length, ":/b");
        struct parsed parsed = PARSE("--dir", word, "true");
        assert_int_equal(parsed.result, length < sizeof parsed.options.dirs->host ? 0 : -EINVAL);
        options_release(&parsed.options);
    }
    memset(word, 'w', sizeof word - 1);
    word[0] = '/';
    assert_int_equal(PARSE("--workdir", word, "true").result, -EINVAL);
}

TEST(test_only)
{
    static const char *const wrong[] = {"", ",", "ls,", ",ls", "ls,,cat"};
    struct parsed parsed = PARSE("--only", "ls,/usr/bin/cat,python3", "--", "ls");

    assert_int_equal(parsed.result, 0);
    assert_int_equal(parsed.options.only_count, 3);
    assert_string_equal(parsed.options.only[0], "ls");
    assert_string_equal(parsed.options.only[1], "/usr/bin/cat");
    assert_string_equal(parsed.options.only[2], "python3");
    options_release(&parsed.options);
    for (size_t i = 0; i < COUNT(wrong); i++) {
        parsed = PARSE("--only", wrong[i], "--", "ls");
        assert_row(wrong[i], parsed.result < 0 && contains(parsed.err.message, "is not a list of programs"));
        options_release(&parsed.options);
    }
    parsed = PARSE("--only", "ls", "--only", "cat", "--", "ls");
    assert_true(parsed.result < 0 && contains(parsed.err.message, "give one list"));
    options_release(&parsed.options);
    parsed = PARSE("--only", "ls", "--root", "/r", "--", "ls");
    assert_true(parsed.result < 0 && contains(parsed.err.message, "not with --root"));
    options_release(&parsed.options);
}

TEST(test_only_count)
{
    char list[(WIRE_ONLY_MAX + 1) * 2];

    for (size_t count = WIRE_ONLY_MAX; count <= WIRE_ONLY_MAX + 1; count++) {
        for (size_t i = 0; i < count; i++)
            memcpy(list + 2 * i, i + 1 < count ? "a," : "a", 2);
        struct parsed parsed = PARSE("--only", list, "--", "a");
        assert_true(count == WIRE_ONLY_MAX ? parsed.result == 0 : contains(parsed.err.message, "at most 128"));
        options_release(&parsed.options);
    }
}

TEST(test_net)
{
    static const char *const wrong[] = {"", "some", "allow", "allow=", "allow=,", "allow=a,", "allow=a,,b", "Full"};
    struct parsed parsed = PARSE("--net", "allow=a.test,*.b.test:443", "--", "ls");

    assert_int_equal(parsed.result, 0);
    assert_int_equal(parsed.options.net_count, 2);
    assert_string_equal(parsed.options.net[1], "*.b.test:443");
    assert_false(parsed.options.net_full);
    options_release(&parsed.options);
    parsed = PARSE("--net=full", "ls");
    assert_true(parsed.result == 0 && parsed.options.net_full && parsed.options.net_count == 0);
    parsed = PARSE("--net=none", "ls");
    assert_true(parsed.result == 0 && !parsed.options.net_full && parsed.options.net_count == 0);
    for (size_t i = 0; i < COUNT(wrong); i++) {
        parsed = PARSE("--net", wrong[i], "--", "ls");
        assert_row(wrong[i], parsed.result < 0 && contains(parsed.err.message, "--net: '"));
        options_release(&parsed.options);
    }
    parsed = PARSE("--net=full", "--net=allow=a", "ls");
    assert_true(parsed.result < 0 && contains(parsed.err.message, "give it once"));
    options_release(&parsed.options);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_net),
        cmocka_unit_test(test_only),
        cmocka_unit_test(test_only_count),
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_bad_values),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_long_option),
        cmocka_unit_test(test_command),
        cmocka_unit_test(test_texts),
        cmocka_unit_test(test_state_from_environment),
        cmocka_unit_test(test_disk),
        cmocka_unit_test(test_dirs),
        cmocka_unit_test(test_copies),
        cmocka_unit_test(test_repeated),
        cmocka_unit_test(test_long_paths),
    };
    (void)unsetenv("HUTCH_STATE");
    return cmocka_run_group_tests_name("cli/options", tests, NULL, NULL);
}
