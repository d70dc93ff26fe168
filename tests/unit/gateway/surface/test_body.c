/* What callers send as JSON: the strictness is the point, and that each error names the field. */
#include "gateway/surface/body.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>

struct sample {
    const char *name;
    const char *mode;
    struct body_number count;
    struct body_number cpu;
    struct body_switch on;
    const json_t *list;
    const json_t *map;
    struct body_number inner;
    const json_t *any;
};

#define AT(member) offsetof(struct sample, member)
static const struct body_field inner_items[] = {{"inner", BODY_NUMBER, AT(inner), true, 1, 5, NULL, NULL}};
static const struct body_fields inner_fields = BODY_FIELDS(inner_items);
static const struct body_field items[] = {
    {"name", BODY_TEXT, AT(name), false, 1, 5, NULL, NULL},
    {"mode", BODY_TEXT, AT(mode), false, 0, 0, "ro|rw", NULL},
    {"count", BODY_NUMBER, AT(count), false, -2, 9, NULL, NULL},
    {"cpu", BODY_MILLI, AT(cpu), false, 10, 2000, NULL, NULL},
    {"on", BODY_SWITCH, AT(on), false, 0, 0, NULL, NULL},
    {"list", BODY_TEXTS, AT(list), false, 1, 2, NULL, NULL},
    {"map", BODY_MAP, AT(map), false, 0, 1, NULL, NULL},
    {"part", BODY_PART, 0, false, 0, 0, NULL, &inner_fields},
    {"any", BODY_VALUE, AT(any), false, 0, 0, NULL, NULL},
};
static const struct body_fields fields = BODY_FIELDS(items);

static int take(const char *text, struct sample *sample, json_t **root, struct error *err)
{
    *sample = (struct sample){0};
    *err = (struct error){0};
    *root = NULL;
    int r = body_parse(text, strlen(text), root, err);
    return r < 0 ? r : body_take(*root, "", &fields, sample, err);
}

TEST(everything_is_taken)
{
    struct sample sample;
    struct error err;
    json_t *root;

    assert_int_equal(take("{\"name\":\"abc\",\"mode\":\"rw\",\"count\":-2,\"cpu\":0.5,\"on\":true,\"list\":[\"x\"],"
                          "\"map\":{\"k\":\"v\"},\"part\":{\"inner\":3},\"any\":[1]}",
                          &sample, &root, &err),
                     0);
    assert_string_equal(sample.name, "abc");
    assert_string_equal(sample.mode, "rw");
    assert_true(sample.count.given && sample.count.value == -2);
    assert_int_equal(sample.cpu.value, 500);
    assert_true(sample.on.given && sample.on.value);
    assert_int_equal(json_array_size(sample.list), 1);
    assert_int_equal(json_object_size(sample.map), 1);
    assert_int_equal(sample.inner.value, 3);
    assert_non_null(sample.any);
    json_decref(root);
}

TEST(no_body_is_an_empty_object)
{
    struct sample sample;
    struct error err;
    json_t *root;

    assert_int_equal(take("", &sample, &root, &err), 0);
    assert_null(sample.name);
    assert_false(sample.count.given);
    json_decref(root);
}

TEST(what_is_wrong_is_named)
{
    static const struct {
        const char *text;
        const char *said;
    } rows[] = {
        {"{\"nmae\":\"x\"}", "nmae: there is no such field; did you mean name?"},
        {"{\"part\":{\"inner\":1,\"outer\":2}}", "part.outer: there is no such field"},
        {"{\"part\":{}}", "part.inner: is missing"},
        {"{\"part\":{\"inner\":6}}", "part.inner: must be a whole number from 1 to 5"},
        {"{\"part\":[]}", "part: must be an object"},
        {"{\"name\":1}", "name: must be a string"},
        {"{\"name\":\"\"}", "name: must be a string whose bytes are from 1 to 5"},
        {"{\"name\":\"abcdef\"}", "name: must be"},
        {"{\"name\":null}", "name: must not be null"},
        {"{\"mode\":\"r\"}", "mode: must be one of ro|rw"},
        {"{\"mode\":\"\"}", "mode: must be one of"},
        {"{\"count\":1.5}", "count: must be a whole number"},
        {"{\"count\":10}", "count: must be a whole number from -2 to 9"},
        {"{\"count\":\"1\"}", "count: must be a whole number"},
        {"{\"cpu\":0.001}", "cpu: must be a number from 0.01 to 2"},
        {"{\"cpu\":1e999}", "the body is not JSON"},
        {"{\"cpu\":NaN}", "the body is not JSON"},
        {"{\"on\":1}", "on: must be true or false"},
        {"{\"list\":[1]}", "list[0]: must be a string"},
        {"{\"list\":[]}", "list: must be a list"},
        {"{\"list\":[\"a\",\"b\",\"c\"]}", "list: must be a list"},
        {"{\"map\":{\"k\":1}}", "map.k: must be a string"},
        {"{\"map\":{\"k\":\"\",\"l\":\"\"}}", "map: must be an object"},
        {"{\"name\":\"a\",\"name\":\"b\"}", "duplicate"},
        {"{\"name\":\"\xff\"}", "the body is not JSON"},
        {"{\"name\":\"\\ud800\"}", "the body is not JSON"},
        {"{\"name\":\"\\u0000\"}", "the body is not JSON"},
        {"{\"name\":\"a\"} x", "the body is not JSON"},
        {"[]", "the body must be a JSON object"},
        {"3", "the body"},
        {"{", "the body is not JSON"},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct sample sample;
        struct error err;
        json_t *root;
        assert_row(rows[i].text, take(rows[i].text, &sample, &root, &err) < 0);
        assert_row(rows[i].text, err.code == ERROR_INVALID);
        if (strstr(err.message, rows[i].said) == NULL)
            fail_msg("%s: said '%s'", rows[i].text, err.message);
        json_decref(root);
    }
}

static int parse_repeated(const char *piece, size_t count, const char *start, const char *end)
{
    size_t length = strlen(piece);
    char *text = malloc(strlen(start) + count * length + strlen(end) + 1);
    char *at = text;
    struct error err = {0};
    json_t *root = NULL;

    assert_non_null(text);
    at = stpcpy(at, start);
    for (size_t i = 0; i < count; i++)
        at = stpcpy(at, piece);
    (void)stpcpy(at, end);
    int r = body_parse(text, strlen(text), &root, &err);
    json_decref(root);
    free(text);
    return r;
}

TEST(depth_and_number_of_values_are_bounded)
{
    assert_true(parse_repeated("[", 10000, "{\"any\":", "") < 0);
    assert_true(parse_repeated("0,", BODY_VALUES_MAX + 1, "{\"any\":[", "0]}") < 0);
    assert_int_equal(parse_repeated("0,", 1000, "{\"any\":[", "0]}"), 0);
    /* Brackets and commas in a text count for nothing. */
    assert_int_equal(parse_repeated("[,{\\\"", BODY_VALUES_MAX, "{\"any\":\"", "\"}"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_is_taken),
        cmocka_unit_test(no_body_is_an_empty_object),
        cmocka_unit_test(what_is_wrong_is_named),
        cmocka_unit_test(depth_and_number_of_values_are_bounded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
