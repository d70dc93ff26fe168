#include "gateway/surface/errors.h"
#include "test.h"

TEST(failures_have_a_status)
{
    static const struct {
        enum error_code code;
        int err;
        unsigned status;
        const char *name;
        unsigned file_status;
        const char *file_name;
    } rows[] = {
        {ERROR_INVALID, 0, 400, "invalid_request", 400, "invalid_request"},
        {ERROR_INVALID, ESHUTDOWN, 409, "not_running", 409, "not_running"},
        {ERROR_NOT_FOUND, ENOENT, 404, "not_found", 404, "not_found"},
        {ERROR_DENIED, EACCES, 403, "forbidden", 403, "path_not_allowed"},
        {ERROR_LIMIT, 0, 429, "too_many", 429, "too_many"},
        {ERROR_LIMIT, ENOSPC, 507, "disk_full", 507, "disk_full"},
        {ERROR_LIMIT, EFBIG, 413, "too_large", 413, "too_large"},
        {ERROR_LIMIT, E2BIG, 413, "too_large", 413, "too_large"},
        {ERROR_UNSUPPORTED, 0, 422, "not_supported", 422, "not_supported"},
        {ERROR_SYSTEM, ETIMEDOUT, 504, "timeout", 504, "timeout"},
        {ERROR_SYSTEM, ENOSPC, 503, "unavailable", 507, "disk_full"},
        {ERROR_SYSTEM, EROFS, 503, "unavailable", 403, "path_not_allowed"},
        {ERROR_SYSTEM, EISDIR, 500, "internal", 400, "invalid_request"},
        {ERROR_SYSTEM, ENOTEMPTY, 500, "internal", 409, "not_empty"},
        {ERROR_SYSTEM, EMFILE, 500, "internal", 500, "internal"},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct error err = {.code = rows[i].code, .err = rows[i].err};
        struct refusal refusal = errors_of(&err);
        struct refusal of_file = errors_of_file(&err);
        assert_row(rows[i].name, refusal.status == rows[i].status);
        assert_string_equal(refusal.code, rows[i].name);
        assert_row(rows[i].file_name, of_file.status == rows[i].file_status);
        assert_string_equal(of_file.code, rows[i].file_name);
    }
}

TEST(bodies_are_escaped)
{
    struct buf body = buf_init(ERRORS_BODY_MAX);

    assert_int_equal(errors_write(&body, "code", "a \"quote\"\n\xff", "id-1"), 0);
    assert_int_equal(buf_append(&body, "", 1), 0);
    assert_string_equal((char *)body.data,
                        "{\"error\":{\"code\":\"code\",\"message\":\"a \\\"quote\\\"\\n\xef\xbf\xbd\","
                        "\"request_id\":\"id-1\"}}\n");
    buf_release(&body);
}

TEST(a_store_that_fails_is_unavailable)
{
    struct error err = {0};

    errors_from_store(&err, -EIO, "the disk is gone");
    assert_int_equal(errors_of(&err).status, 503);
    assert_non_null(strstr(err.message, "the disk is gone"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(failures_have_a_status),
        cmocka_unit_test(bodies_are_escaped),
        cmocka_unit_test(a_store_that_fails_is_unavailable),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
