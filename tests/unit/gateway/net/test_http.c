#include "gateway/net/http.h"
#include "gateway/net/refusal.h"
#include "test.h"

TEST(methods)
{
    for (enum http_method method = METHOD_GET; method < METHOD_COUNT; method++) {
        const char *name = http_method_name(method);
        assert_int_equal(http_method_from(name, strlen(name)), method);
    }
    assert_int_equal(http_method_from("get", 3), METHOD_NONE);
    assert_int_equal(http_method_from("GETS", 4), METHOD_NONE);
    assert_int_equal(http_method_from("GE", 2), METHOD_NONE);
    assert_int_equal(http_method_from("", 0), METHOD_NONE);
    assert_string_equal(http_method_name(METHOD_COUNT), "");
}

TEST(hosts)
{
    static const char *const good[] = {"a",       "a.b-c_d", "127.0.0.1",          "127.0.0.1:1",
                                       "a:65535", "[::1]",   "[::ffff:1.2.3.4]:80"};
    static const char *const bad[] = {"",       ":",     ":80", "a:",  "a:0",      "a:65536", "a:123456",
                                      "a:1x",   "a b",   "a/",  "a@b", "[::1",     "[]",      "[::1]80",
                                      "[::1]:", "[g::]", "a,b", "*",   "a\xc3\xa4"};
    char name[260];

    for (size_t i = 0; i < COUNT(good); i++)
        assert_row(good[i], http_is_host(good[i], strlen(good[i])));
    for (size_t i = 0; i < COUNT(bad); i++)
        assert_row(bad[i], !http_is_host(bad[i], strlen(bad[i])));
    memset(name, 'a', sizeof name);
    assert_true(http_is_host(name, 253));
    assert_false(http_is_host(name, 254));
    assert_false(http_is_host("a\0b", 3));
    assert_false(http_is_host("[::1\0]", 6));
}

TEST(lists_of_words)
{
    struct headers headers = {
        .items = {{"connection", "keep-alive , Upgrade"}, {"X", "close"}, {"Connection", ",foo,\tBar\t,"}}, .count = 3};

    assert_true(headers_have_word(&headers, "Connection", "upgrade"));
    assert_true(headers_have_word(&headers, "Connection", "keep-alive"));
    assert_true(headers_have_word(&headers, "Connection", "foo"));
    assert_true(headers_have_word(&headers, "Connection", "bar"));
    assert_false(headers_have_word(&headers, "Connection", "close"));
    assert_false(headers_have_word(&headers, "Connection", "keep"));
    assert_int_equal(headers_count(&headers, "CONNECTION"), 2);
    assert_string_equal(headers_find(&headers, "x"), "close");
    assert_null(headers_find(&headers, "Y"));
}

TEST(content_types)
{
    assert_true(http_is_type("application/json", "application/json"));
    assert_true(http_is_type("Application/JSON ; charset=utf-8", "application/json"));
    assert_false(http_is_type("application/jsonp", "application/json"));
    assert_false(http_is_type("application/json, text/plain", "application/json"));
    assert_false(http_is_type("", "application/json"));
    assert_false(http_is_type(NULL, "application/json"));
}

TEST(values)
{
    assert_true(http_is_value("a\tb \x80"));
    assert_false(http_is_value("a\nb"));
    assert_false(http_is_value("a\rb"));
    assert_false(http_is_value("\x7f"));
    assert_true(http_is_token("a-b!", 4));
    assert_false(http_is_token("a b", 3));
    assert_false(http_is_token("", 0));
    assert_false(http_is_token("a\0", 2));
}

TEST(refusals)
{
    struct buf buf = buf_init(1000);
    const char *expected = "{\"error\":{\"code\":\"not_found\",\"message\":\"no \\\"x\\\"\",\"request_id\":\"id\"}}\n";

    assert_int_equal(refusal_write(&buf, refusal_code(404), "no \"x\"", "id"), 0);
    assert_int_equal(buf.length, strlen(expected));
    assert_memory_equal(buf.data, expected, buf.length);
    assert_string_equal(refusal_code(400), "invalid_request");
    buf_release(&buf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(methods),       cmocka_unit_test(hosts),  cmocka_unit_test(lists_of_words),
        cmocka_unit_test(content_types), cmocka_unit_test(values), cmocka_unit_test(refusals),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
