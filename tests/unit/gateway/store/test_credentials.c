/* Keys, the password, and what their holders may do. */
#include "base/clock.h"
#include "fixture.h"
#include "gateway/store/credentials.h"
#include "gateway/store/password.h"

enum { NOW = 1000000 };

struct setup {
    struct fixture fixture;
    struct credentials *credentials;
};

static struct setup setup(void)
{
    struct setup both = {.fixture = fixture_new()};

    return both;
}

static void open_both(struct setup *both)
{
    struct error err = {0};

    fixture_open(&both->fixture);
    if (credentials_new(both->fixture.store, &both->credentials, &err) < 0)
        fail_msg("%s", err.message);
}

static void close_both(struct setup *both)
{
    credentials_free(both->credentials);
    fixture_close(&both->fixture);
}

static void finish(struct setup *both)
{
    close_both(both);
    fixture_remove(&both->fixture);
}

static struct id add_key(struct setup *both, const struct key_request *request, char *secret)
{
    struct error err = {0};
    struct id id;

    both->fixture.answered = false;
    int r = credentials_add_key(both->credentials, request, NOW, fixture_done, &both->fixture, &id, secret, &err);
    if (r < 0)
        fail_msg("%s", err.message);
    fixture_await(&both->fixture);
    assert_int_equal(both->fixture.result, 0);
    return id;
}

static int check(struct setup *both, const char *secret, int64_t now_ms, struct principal *principal)
{
    return credentials_check_key(both->credentials, secret, strlen(secret), now_ms, principal);
}

TEST(a_key_opens_what_it_is_for)
{
    struct setup both = setup();
    char secret[CREDENTIALS_SECRET_MAX + 1];
    struct principal principal;

    open_both(&both);
    struct id id = add_key(
        &both, &(struct key_request){.name = "ci", .agent = "robot", .scope = STORE_SCOPE_READ, .expires_ms = NOW + 10},
        secret);
    assert_int_equal(strncmp(secret, "hutch_", 6), 0);
    assert_int_equal(strlen(secret), 58);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(check(&both, secret, NOW, &principal), 0);
        assert_string_equal(principal.id, id.text);
        assert_string_equal(principal.agent, "robot");
        assert_int_equal(principal.scope, STORE_SCOPE_READ);
        assert_int_equal(check(&both, secret, NOW + 10, &principal), -EACCES);
        secret[57] ^= 1;
        assert_int_equal(check(&both, secret, NOW, &principal), -EACCES);
        secret[57] ^= 1;
        assert_int_equal(check(&both, "", NOW, &principal), -EACCES);
        assert_int_equal(credentials_check_key(both.credentials, secret, 57, NOW, &principal), -EACCES);
        close_both(&both); /* and once more after a restart */
        open_both(&both);
    }
    finish(&both);
}

TEST(the_secret_is_nowhere_in_the_files)
{
    struct setup both = setup();
    char secret[CREDENTIALS_SECRET_MAX + 1];
    char command[512];

    open_both(&both);
    (void)add_key(&both, &(struct key_request){.scope = STORE_SCOPE_RUN}, secret);
    (void)snprintf(command, sizeof command, "%s/hutch.db-wal", both.fixture.folder);
    FILE *log = fopen(command, "r");
    assert_non_null(log);
    static char data[1 << 20];
    size_t length = fread(data, 1, sizeof data, log);
    (void)fclose(log);
    assert_true(length > 4096);
    assert_null(memmem(data, length, secret + 6, 20));
    finish(&both);
}

TEST(a_revoked_key_is_closed_at_once)
{
    struct setup both = setup();
    char secret[CREDENTIALS_SECRET_MAX + 1];
    struct principal principal;

    open_both(&both);
    struct id id = add_key(&both, &(struct key_request){.scope = STORE_SCOPE_ADMIN}, secret);
    assert_int_equal(check(&both, secret, NOW, &principal), 0);
    both.fixture.answered = false;
    assert_int_equal(credentials_revoke_key(both.credentials, id.text, NOW, fixture_done, &both.fixture), 0);
    assert_int_equal(check(&both, secret, NOW, &principal), -EACCES);
    fixture_await(&both.fixture);
    assert_int_equal(both.fixture.result, 0);
    assert_int_equal(credentials_revoke_key(both.credentials, "key_none", NOW, NULL, NULL), -ENOENT);
    close_both(&both);
    open_both(&both);
    assert_int_equal(check(&both, secret, NOW, &principal), -EACCES);
    finish(&both);
}

TEST(preset_keys)
{
    struct setup both = setup();
    char secret[CREDENTIALS_SECRET_MAX + 1];
    struct principal principal;
    struct error err;
    struct id id;
    static char longest[CREDENTIALS_SECRET_MAX + 2];

    open_both(&both);
    (void)add_key(&both, &(struct key_request){.secret = "correct horse battery", .scope = STORE_SCOPE_RUN}, secret);
    assert_string_equal(secret, "correct horse battery");
    assert_int_equal(check(&both, "correct horse battery", NOW, &principal), 0);
    assert_int_equal(credentials_add_key(both.credentials, &(struct key_request){.secret = "correct horse battery"},
                                         NOW, NULL, NULL, &id, secret, &err),
                     -EEXIST);
    assert_int_equal(credentials_add_key(both.credentials, &(struct key_request){.secret = "short"}, NOW, NULL, NULL,
                                         &id, secret, &err),
                     -EINVAL);
    memset(longest, 'x', sizeof longest - 1);
    assert_int_equal(credentials_add_key(both.credentials, &(struct key_request){.secret = longest}, NOW, NULL, NULL,
                                         &id, secret, &err),
                     -EINVAL);
    finish(&both);
}

TEST(a_key_that_was_not_recorded_does_not_open)
{
    struct setup both = setup();
    char secret[CREDENTIALS_SECRET_MAX + 1];
    struct principal principal;
    struct error err;
    struct id id;

    open_both(&both);
    assert_int_equal(credentials_add_key(both.credentials, &(struct key_request){.scope = STORE_SCOPE_RUN}, NOW, NULL,
                                         NULL, &id, secret, &err),
                     0);
    assert_int_equal(check(&both, secret, NOW, &principal), -EACCES);
    finish(&both);
}

TEST(scopes)
{
    static const struct {
        enum store_scope scope;
        bool may_run, may_read, may_admin, sees_others, touches_own, touches_others;
    } rows[] = {
        {STORE_SCOPE_RUN, true, false, false, false, true, false},
        {STORE_SCOPE_READ, false, true, false, true, false, false},
        {STORE_SCOPE_ADMIN, true, true, true, true, true, true},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct principal principal = {.id = "key_a", .scope = rows[i].scope};
        const char *name = credentials_scope_name(rows[i].scope);
        enum store_scope again;
        assert_row(name, principal_may(&principal, STORE_SCOPE_RUN) == rows[i].may_run);
        assert_row(name, principal_may(&principal, STORE_SCOPE_READ) == rows[i].may_read);
        assert_row(name, principal_may(&principal, STORE_SCOPE_ADMIN) == rows[i].may_admin);
        assert_row(name, principal_may_see(&principal, "key_b") == rows[i].sees_others);
        assert_row(name, principal_may_see(&principal, "key_a"));
        assert_row(name, principal_may_touch(&principal, "key_a") == rows[i].touches_own);
        assert_row(name, principal_may_touch(&principal, "key_b") == rows[i].touches_others);
        assert_row(name, principal_may_touch(&principal, NULL) == rows[i].touches_others);
        assert_row(name, credentials_scope(name, &again) == 0 && again == rows[i].scope);
    }
    enum store_scope scope;
    assert_int_equal(credentials_scope("root", &scope), -EINVAL);
    assert_int_equal(credentials_scope(NULL, &scope), -EINVAL);
}

static void checked(void *data, int result)
{
    struct fixture *fixture = data;

    fixture->answered = true;
    fixture->result = result;
}

static int check_password(struct setup *both, const char *password, int64_t now_ms)
{
    both->fixture.answered = false;
    int r = credentials_check_password(both->credentials, password, strlen(password), now_ms, checked, &both->fixture);
    if (r != -EINPROGRESS)
        return r;
    fixture_await(&both->fixture);
    return both->fixture.result == 0 ? 1 : both->fixture.result; /* 1: it took a worker */
}

static void set_password(struct setup *both, const char *password)
{
    struct error err;

    both->fixture.answered = false;
    assert_int_equal(
        credentials_set_password(both->credentials, password, strlen(password), fixture_done, &both->fixture, &err), 0);
    fixture_await(&both->fixture);
    assert_int_equal(both->fixture.result, 0);
}

TEST(the_password_is_checked_and_remembered_a_while)
{
    struct setup both = setup();
    struct error err;

    open_both(&both);
    assert_false(credentials_has_password(both.credentials));
    assert_int_equal(check_password(&both, "open sesame", NOW), -EACCES);
    assert_int_equal(credentials_set_password(both.credentials, "short", 5, NULL, NULL, &err), -EINVAL);
    set_password(&both, "open sesame");
    assert_true(credentials_has_password(both.credentials));
    assert_int_equal(check_password(&both, "open sesame", NOW), 1);
    assert_int_equal(check_password(&both, "open sesame", NOW + 1), 0);
    assert_int_equal(check_password(&both, "open sesam3", NOW + 1), -EACCES);
    assert_int_equal(check_password(&both, "open sesam3", NOW + 1), -EACCES);
    assert_int_equal(check_password(&both, "open sesame", NOW + PASSWORD_REMEMBERED_MS), 1);
    assert_int_equal(check_password(&both, "open sesame", NOW - 1000), 1); /* the clock went back */
    set_password(&both, "another one");
    assert_int_equal(check_password(&both, "open sesame", NOW + 1), -EACCES);
    assert_int_equal(check_password(&both, "another one", NOW + 1), 1);
    close_both(&both);
    open_both(&both);
    assert_int_equal(check_password(&both, "another one", NOW + 1), 1);
    finish(&both);
}

static void count_checked(void *data, int result)
{
    int *counts = data;

    counts[result == 0 ? 0 : 1]++;
}

/* Checks that were waiting when the password changed tell nothing about the new one. */
TEST(an_old_password_is_not_remembered_as_the_new_one)
{
    struct setup both = setup();
    struct error err;
    int counts[2] = {0};

    open_both(&both);
    set_password(&both, "open sesame");
    both.fixture.answered = false;
    assert_int_equal(credentials_set_password(both.credentials, "another one", 11, fixture_done, &both.fixture, &err),
                     0);
    for (int i = 0; i < 5; i++)
        assert_int_equal(credentials_check_password(both.credentials, "open sesame", 11, NOW, count_checked, counts),
                         -EINPROGRESS);
    while (!both.fixture.answered || counts[0] + counts[1] < 5)
        (void)uv_run(&both.fixture.loop, UV_RUN_ONCE);
    assert_int_equal(both.fixture.result, 0);
    assert_int_equal(check_password(&both, "open sesame", NOW), -EACCES);
    assert_int_equal(check_password(&both, "another one", NOW), 1);
    finish(&both);
}

TEST(the_line_is_short)
{
    struct setup both = setup();
    int counts[2] = {0};
    int asked = 0;
    int r;

    open_both(&both);
    set_password(&both, "open sesame");
    while ((r = credentials_check_password(both.credentials, "wrong password", 14, NOW, count_checked, counts)) ==
           -EINPROGRESS)
        asked++;
    assert_int_equal(r, -EBUSY);
    assert_int_equal(asked, PASSWORD_AT_ONCE + PASSWORD_WAITING_MAX);
    /* Some have gone away, the gateway ends before the rest are done: nobody is called. */
    credentials_forget(both.credentials, counts);
    finish(&both);
    assert_int_equal(counts[0] + counts[1], 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_key_opens_what_it_is_for),
        cmocka_unit_test(the_secret_is_nowhere_in_the_files),
        cmocka_unit_test(a_revoked_key_is_closed_at_once),
        cmocka_unit_test(preset_keys),
        cmocka_unit_test(a_key_that_was_not_recorded_does_not_open),
        cmocka_unit_test(scopes),
        cmocka_unit_test(the_password_is_checked_and_remembered_a_while),
        cmocka_unit_test(an_old_password_is_not_remembered_as_the_new_one),
        cmocka_unit_test(the_line_is_short),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
