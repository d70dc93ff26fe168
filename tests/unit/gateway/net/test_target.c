#include "gateway/net/target.h"
#include "test.h"

static int parse(const char *raw, struct arena *arena, struct target *target)
{
    *target = (struct target){0};
    return target_parse(raw, strlen(raw), arena, target);
}

TEST(paths_are_decoded_once)
{
    static const struct {
        const char *raw;
        const char *path;
    } rows[] = {
        {"/", "/"},
        {"/a/b", "/a/b"},
        {"/a%20b", "/a b"},
        {"/%41%62%7a", "/Abz"},
        {"/%252e%252e/x", "/%2e%2e/x"},
        {"/a+b", "/a+b"},
        {"//a//", "//a//"},
        {"/...", "/..."},
        {"/.a/..b/c.", "/.a/..b/c."},
        {"/%ff%C3%A4", "/\xff\xc3\xa4"},
        {"/a%0Ab", "/a\nb"},
        {"/%3F%23", "/?#"},
        {"/a?b/../c", "/a"},
        {"http://h:80/x?y", "/x"},
        {"HTTPS://h", "/"},
        {"http://h?q=1", "/"},
        {"*", "*"},
    };
    struct arena arena = arena_init(1 << 16);
    struct target target;

    for (size_t i = 0; i < COUNT(rows); i++) {
        assert_row(rows[i].raw, parse(rows[i].raw, &arena, &target) == 0);
        assert_row(rows[i].raw, strcmp(target.path, rows[i].path) == 0);
        assert_row(rows[i].raw, target.path_length == strlen(rows[i].path));
    }
    arena_release(&arena);
}

TEST(what_is_refused)
{
    static const char *const rows[] = {
        "",      "a",     "h:443", "ftp://h/", "http://",  "http:///x", "/%",       "/%4",
        "/%4g",  "/%g4",  "/%00",  "/a%2fb",   "/a%2Fb",   "/.",        "/..",      "/./a",
        "/a/..", "/a/.",  "/../a", "/%2e",     "/%2e%2e/", "/.%2E/a",   "/a#frag",  "/a b",
        "/a\\b", "/\x80", "/a\tb", "/a?b=%",   "/a?%0",    "/a?b=%00",  "/a?%00=b", "**",
    };
    struct arena arena = arena_init(1 << 16);
    struct target target;

    for (size_t i = 0; i < COUNT(rows); i++)
        assert_row(rows[i], parse(rows[i], &arena, &target) == -EINVAL);
    arena_release(&arena);
}

TEST(query_parameters)
{
    struct arena arena = arena_init(1 << 16);
    struct target target;

    assert_int_equal(parse("/x?a=1&b=%26+%3D&&c&=d&a=2&e=f=g%2f", &arena, &target), 0);
    assert_int_equal(target.query_count, 6);
    assert_string_equal(target_query(&target, "a"), "1");
    assert_string_equal(target_query(&target, "b"), "& =");
    assert_string_equal(target_query(&target, "c"), "");
    assert_string_equal(target_query(&target, ""), "d");
    assert_string_equal(target_query(&target, "e"), "f=g/");
    assert_null(target_query(&target, "A"));
    assert_int_equal(parse("/x?", &arena, &target), 0);
    assert_int_equal(target.query_count, 0);
    assert_int_equal(parse("/x", &arena, &target), 0);
    assert_int_equal(target.query_count, 0);
    arena_release(&arena);
}

TEST(limits)
{
    struct arena arena = arena_init(1 << 16);
    struct arena small = arena_init(100);
    struct target target;
    char raw[400] = "/x?";

    for (int i = 0; i < TARGET_PARAMETERS_MAX; i++)
        (void)stpcpy(raw + strlen(raw), i == 0 ? "a" : "&a");
    assert_int_equal(parse(raw, &arena, &target), 0);
    assert_int_equal(target.query_count, TARGET_PARAMETERS_MAX);
    (void)stpcpy(raw + strlen(raw), "&a");
    assert_int_equal(parse(raw, &arena, &target), -E2BIG);
    assert_int_equal(parse(raw + 1, &arena, &target), -EINVAL);
    assert_int_equal(parse(raw, &small, &target), -E2BIG);
    assert_int_equal(parse("/a?b=c&d=e&f=g", &small, &target), -ENOMEM);
    arena_release(&arena);
    arena_release(&small);
}

TEST(the_absolute_form_says_its_host)
{
    struct arena arena = arena_init(1 << 16);
    struct target target;

    assert_int_equal(parse("http://u@h:80/x", &arena, &target), 0);
    assert_string_equal(target.authority, "u@h:80");
    assert_int_equal(parse("/x", &arena, &target), 0);
    assert_null(target.authority);
    arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths_are_decoded_once),
        cmocka_unit_test(what_is_refused),
        cmocka_unit_test(query_parameters),
        cmocka_unit_test(limits),
        cmocka_unit_test(the_absolute_form_says_its_host),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
