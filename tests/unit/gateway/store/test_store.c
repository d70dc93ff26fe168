/* How a store starts, or says why it does not, and leaves everything as it was. */
#include "fixture.h"

#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>

static void path_of(const struct fixture *fixture, const char *suffix, char path[256])
{
    (void)snprintf(path, 256, "%s/hutch.db%s", fixture->folder, suffix);
}

static void write_file(const char *path, const void *data, size_t length)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, data, length), length);
    (void)close(fd);
}

static size_t read_file(const char *path, uint8_t *data, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = fd >= 0 ? read(fd, data, size) : -1;

    assert_true(length >= 0);
    (void)close(fd);
    return (size_t)length;
}

static void refuse(struct fixture *fixture, int expected, const char *words)
{
    struct error err = {0};
    size_t fds = test_open_fds();

    assert_int_equal(fixture_try_open(fixture, STORE_SYNC_INTERVAL, &err), expected);
    if (strstr(err.message, words) == NULL)
        fail_msg("%s", err.message);
    assert_non_null(strstr(err.message, fixture->folder));
    assert_int_equal(test_open_fds(), fds);
}

TEST(a_missing_database_is_made)
{
    struct fixture fixture = fixture_new();
    char path[256];
    struct stat status;

    fixture_open(&fixture);
    path_of(&fixture, "", path);
    assert_return_code(stat(path, &status), errno);
    assert_int_equal(status.st_mode & 0777, 0600);
    path_of(&fixture, "-wal", path);
    assert_return_code(stat(path, &status), errno);
    assert_int_equal(status.st_mode & 0777, 0600);
    fixture_audit(&fixture, "sb_1", "{}", 0);
    fixture_close(&fixture);
    fixture_open(&fixture);
    assert_int_equal(fixture_verify(&fixture).last, 1);
    fixture_close(&fixture);
    fixture_remove(&fixture);
}

TEST(a_folder_has_one_store)
{
    struct fixture fixture = fixture_new();
    struct fixture second = {0};

    fixture_open(&fixture);
    memcpy(second.folder, fixture.folder, sizeof second.folder);
    refuse(&second, -EBUSY, "in use by another daemon");
    char pid[32];
    (void)snprintf(pid, sizeof pid, "process %d", (int)getpid());
    struct error err;
    assert_int_equal(fixture_try_open(&second, STORE_SYNC_INTERVAL, &err), -EBUSY);
    assert_non_null(strstr(err.message, pid));
    fixture_audit(&fixture, "sb_1", "{}", 0);
    fixture_close(&fixture);
    fixture_open(&second);
    fixture_close(&second);
    fixture_remove(&fixture);
}

/* What is damaged stays as it is, to the last byte. */
static void refuse_content(const void *data, size_t length, const char *words)
{
    struct fixture fixture = fixture_new();
    char path[256];
    static uint8_t after[1 << 20];

    path_of(&fixture, "", path);
    write_file(path, data, length);
    refuse(&fixture, -EBADMSG, words);
    assert_int_equal(read_file(path, after, sizeof after), length);
    assert_memory_equal(after, data, length);
    fixture_remove(&fixture);
}

TEST(a_damaged_database_is_left_alone)
{
    static uint8_t data[1 << 20];
    struct fixture fixture = fixture_new();
    char path[256];

    refuse_content("not a database, but longer than its header would be: this is text, and was never anything else "
                   "than text, whatever the name of the file may say",
                   143, "damaged");
    fixture_open(&fixture);
    fixture_audit(&fixture, "sb_1", "{}", 0);
    fixture_close(&fixture);
    path_of(&fixture, "", path);
    size_t length = read_file(path, data, sizeof data);
    assert_true(length > 8192);
    refuse_content(data, 4096, "damaged");
    refuse_content(data, length - 4096, "damaged");
    memset(data + 4096, 0xa5, 4096);
    refuse_content(data, length, "damaged");
    memset(data + 100, 0xff, 200);
    refuse_content(data, length, "damaged");
    fixture_remove(&fixture);
}

TEST(a_lost_database_is_not_made_anew_over_its_log)
{
    struct fixture fixture = fixture_new();
    char path[256];
    char log[256];
    static uint8_t data[1 << 20];
    struct stat status;

    path_of(&fixture, "", path);
    path_of(&fixture, "-wal", log);
    fixture_open(&fixture);
    fixture_audit(&fixture, "sb_1", "{}", 0);
    size_t length = read_file(log, data, sizeof data);
    assert_true(length > 4096);
    fixture_close(&fixture);
    assert_return_code(unlink(path), errno);
    write_file(log, data, length);
    refuse(&fixture, -EBADMSG, "is missing or empty");
    assert_return_code(stat(log, &status), errno);
    assert_int_equal(status.st_size, length);
    write_file(path, "", 0);
    refuse(&fixture, -EBADMSG, "is missing or empty");
    assert_return_code(stat(log, &status), errno);
    assert_int_equal(status.st_size, length);
    fixture_remove(&fixture);
}

TEST(a_newer_database_is_refused)
{
    struct fixture fixture = fixture_new();

    fixture_open(&fixture);
    fixture_close(&fixture);
    fixture_tamper(&fixture, "PRAGMA user_version = 99");
    refuse(&fixture, -EPROTO, "newer Hutch (schema 99");
    fixture_remove(&fixture);
}

TEST(somebody_elses_database_is_refused)
{
    struct fixture fixture = fixture_new();

    fixture_tamper(&fixture, "CREATE TABLE songs(name)");
    refuse(&fixture, -EBADMSG, "not one of Hutch's");
    fixture_remove(&fixture);
}

/* A small file system of our own at the folder. */
static void mount_small(struct fixture *fixture, const char *size)
{
    char options[64];

    (void)snprintf(options, sizeof options, "size=%s", size);
    assert_return_code(unshare(CLONE_NEWNS), errno);
    assert_return_code(sys_mount(NULL, "/", NULL, MS_REC | MS_PRIVATE), errno);
    assert_return_code(mount("tmpfs", fixture->folder, "tmpfs", 0, options), errno);
}

TEST(a_full_disk_is_told)
{
    struct fixture fixture = fixture_new();

    mount_small(&fixture, "64k");
    refuse(&fixture, -ENOSPC, "full");
    assert_return_code(umount(fixture.folder), errno);
    fixture_remove(&fixture);
}

TEST(a_folder_that_can_only_be_read_is_told)
{
    struct fixture fixture = fixture_new();

    mount_small(&fixture, "8m");
    assert_return_code(mount(NULL, fixture.folder, NULL, MS_REMOUNT | MS_RDONLY, NULL), errno);
    refuse(&fixture, -EROFS, "may this user write");
    assert_return_code(umount(fixture.folder), errno);
    assert_return_code(rmdir(fixture.folder), errno);
    refuse(&fixture, -ENOENT, "does the folder exist");
}

TEST(closing_answers_everything)
{
    struct fixture fixture = fixture_new();
    size_t fds = test_open_fds();

    fixture_open(&fixture);
    for (int i = 0; i < 1000; i++) {
        struct batch *batch = fixture_batch(&fixture);
        batch_add_audit(batch, &(struct store_audit){.action = "x"});
        assert_non_null(batch_submit(batch, i == 999 ? fixture_done : NULL, &fixture));
    }
    fixture_close(&fixture);
    assert_true(fixture.answered);
    assert_int_equal(fixture.result, 0);
    assert_int_equal(fixture.audit_number, 1000);
    assert_true(test_open_fds() <= fds + 3); /* what libuv keeps of its own */
    fixture_remove(&fixture);
}

TEST(a_cancelled_call_is_not_answered)
{
    struct fixture fixture = fixture_new();

    fixture_open(&fixture);
    struct batch *batch = fixture_batch(&fixture);
    batch_add_audit(batch, &(struct store_audit){.action = "x"});
    store_cancel(batch_submit(batch, fixture_done, &fixture));
    (void)uv_run(&fixture.loop, UV_RUN_DEFAULT);
    assert_false(fixture.answered);
    assert_int_equal(fixture_verify(&fixture).last, 1);
    fixture_close(&fixture);
    fixture_remove(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_missing_database_is_made),
        cmocka_unit_test(a_folder_has_one_store),
        cmocka_unit_test(a_damaged_database_is_left_alone),
        cmocka_unit_test(a_lost_database_is_not_made_anew_over_its_log),
        cmocka_unit_test(a_newer_database_is_refused),
        cmocka_unit_test(somebody_elses_database_is_refused),
        cmocka_unit_test(a_full_disk_is_told),
        cmocka_unit_test(a_folder_that_can_only_be_read_is_told),
        cmocka_unit_test(closing_answers_everything),
        cmocka_unit_test(a_cancelled_call_is_not_answered),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
