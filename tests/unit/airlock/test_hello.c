#include "airlock/hello.h"
#include "clienthello.h"
#include "test.h"

static uint8_t data[400000];

static const struct {
    const char *what;
    struct clienthello hello;
} good[] = {
    {"plain", {.name = "www.example.com"}},
    {"no name", {.name = NULL}},
    {"post-quantum", {.name = "www.example.com", .padding = 1216}},
    {"16 KiB", {.name = "www.example.com", .padding = 16000}},
    {"many records", {.name = "www.example.com", .padding = 5000, .record = 100}},
    {"records of one byte", {.name = "www.example.com", .record = 1}},
    {"large, in large records", {.name = "www.example.com", .padding = 40000}},
    {"encrypted", {.name = "www.example.com", .ech = true}},
};

TEST(the_name_is_found_however_it_is_cut)
{
    for (size_t i = 0; i < COUNT(good); i++) {
        struct hello hello;
        size_t length = clienthello_build(&good[i].hello, data);
        for (size_t cut = 0; cut < length; cut++) {
            enum hello_outcome outcome = hello_read(data, cut, &hello);
            assert_row(good[i].what, outcome == HELLO_MORE);
            assert_row(good[i].what, hello.needed > cut && hello.needed <= length);
        }
        assert_row(good[i].what, hello_read(data, length, &hello) == HELLO_DONE);
        assert_row(good[i].what, hello.has_name == (good[i].hello.name != NULL));
        assert_row(good[i].what, !hello.has_name || strcmp(hello.name, good[i].hello.name) == 0);
        assert_row(good[i].what, hello.is_encrypted == good[i].hello.ech);
        /* What follows in records of their own, early data for instance, is not looked at. */
        memcpy(data + length, "\x17\3\3\0\1x", 6);
        assert_row(good[i].what, hello_read(data, length + 6, &hello) == HELLO_DONE);
    }
}

TEST(the_name_is_normalized)
{
    struct hello hello;
    size_t length = clienthello_build(&(struct clienthello){.name = "WWW.Example.com."}, data);

    assert_int_equal(hello_read(data, length, &hello), HELLO_DONE);
    assert_string_equal(hello.name, "www.example.com");
}

TEST(what_could_be_read_in_two_ways_is_refused)
{
    struct hello hello;
    size_t length = clienthello_build(&(struct clienthello){.name = "a.test"}, data);

    data[5] = 2;
    assert_int_equal(hello_read(data, length, &hello), HELLO_BAD);
    length = clienthello_build(&(struct clienthello){.name = "a b"}, data);
    assert_int_equal(hello_read(data, length, &hello), HELLO_BAD);
    length = clienthello_build(&(struct clienthello){.name = "127.0.0.1"}, data);
    assert_int_equal(hello_read(data, length, &hello), HELLO_BAD);
    length = clienthello_build(&(struct clienthello){.name = "a.test", .padding = 50000}, data);
    assert_int_equal(hello_read(data, length, &hello), HELLO_BAD);
    assert_string_equal(hello.why, "it is too large");
    length = clienthello_build(&(struct clienthello){.name = "a.test"}, data);
    data[4]++;
    data[length] = 0;
    assert_int_equal(hello_read(data, length + 1, &hello), HELLO_BAD);
    assert_string_equal(hello.why, "something follows it in its record");
    length = clienthello_build(&(struct clienthello){.name = "a.test", .record = 50}, data);
    data[55] = 23;
    assert_int_equal(hello_read(data, length, &hello), HELLO_BAD);
    memcpy(data, "\x16\3\1\0\0", 5);
    assert_int_equal(hello_read(data, 5, &hello), HELLO_BAD);
}

TEST(two_names_are_one_too_many)
{
    struct hello hello;
    size_t length = clienthello_build(&(struct clienthello){.name = "a.test"}, data);
    size_t extension = 4 + 5 + 6;

    /* The name once more, and all lengths with it. */
    memmove(data + length, data + length - extension, extension);
    data[4] = (uint8_t)(data[4] + extension);
    data[8] = (uint8_t)(data[8] + extension);
    uint8_t *extensions = data + length - extension - 2;
    extensions[1] = (uint8_t)(extensions[1] + extension);
    assert_int_equal(hello_read(data, length + extension, &hello), HELLO_BAD);
    assert_string_equal(hello.why, "it names its server twice");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_name_is_found_however_it_is_cut),
        cmocka_unit_test(the_name_is_normalized),
        cmocka_unit_test(what_could_be_read_in_two_ways_is_refused),
        cmocka_unit_test(two_names_are_one_too_many),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
