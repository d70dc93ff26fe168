#include "keeper/folders.h"

#include "base/fd.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

/* A place with a folder `data` that has `sub`, and a symlink that leads out of it. */
static char place[] = "/tmp/hutch-folders-XXXXXX";

static int set_up(void **state)
{
    char path[128];

    (void)state;
    assert_non_null(mkdtemp(place));
    (void)snprintf(path, sizeof path, "%s/data", place);
    assert_return_code(mkdir(path, 0755), errno);
    (void)snprintf(path, sizeof path, "%s/data/sub", place);
    assert_return_code(mkdir(path, 0755), errno);
    assert_return_code(chown(path, 1234, 1235), errno);
    (void)snprintf(path, sizeof path, "%s/data/sub/root", place);
    assert_return_code(mkdir(path, 0700), errno);
    (void)snprintf(path, sizeof path, "%s/data/out", place);
    assert_return_code(symlink("/etc", path), errno);
    (void)snprintf(path, sizeof path, "%s/link", place);
    assert_return_code(symlink("data", path), errno);
    return 0;
}

static int tear_down(void **state)
{
    char path[128];

    (void)state;
    static const char *const below[] = {"data/sub/root", "data/sub", "data/out", "data", "link", ""};
    for (size_t i = 0; i < COUNT(below); i++) {
        (void)snprintf(path, sizeof path, "%s/%s", place, below[i]);
        if (unlink(path) < 0)
            (void)rmdir(path);
    }
    return 0;
}

/* `@` is the place, `|` ends a string. */
static struct wire_strv strings(const char *pattern, uint32_t count, char *room)
{
    size_t n = 0;

    for (; *pattern != '\0'; pattern++) {
        if (*pattern == '@')
            n += (size_t)sprintf(room + n, "%s", place);
        else
            room[n++] = (char)(*pattern == '|' ? '\0' : *pattern);
    }
    return (struct wire_strv){.data = room, .length = (uint32_t)n, .count = count};
}

TEST(test_open)
{
    static const struct {
        const char *shares;
        uint32_t count;
        int result;
    } rows[] = {
        {"data|@/data|rw|", 3, 0},         {"data|@/data|ro|", 3, 0},
        {"data|@/none|ro|", 3, -ENOENT},   {"data|@/link|ro|", 3, -ELOOP},
        {"da/ta|@/data|ro|", 3, -EBADMSG}, {"|@/data|ro|", 3, -EBADMSG},
        {"data|data|ro|", 3, -EBADMSG},    {"data|@/data|xx|", 3, -EBADMSG},
        {"data|@/data|", 2, -EBADMSG},     {"data|/|ro|data|@/data|ro|", 6, -EBADMSG},
    };
    char room[256];
    size_t before = test_open_fds();

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct folders folders;
        struct error err = {0};
        struct wire_config config = {.shares = strings(rows[i].shares, rows[i].count, room)};
        assert_row(rows[i].shares, folders_open(&folders, &config, &err) == rows[i].result);
        if (rows[i].result == 0)
            folders_close(&folders);
        assert_int_equal(test_open_fds(), before);
    }
}

struct resolve_row {
    const char *name;
    const char *shares;
    bool writes;
    int result;
};

static void try_row(const struct folders *folders, const struct resolve_row *row)
{
    static const char dirs[] = "/data";
    uint8_t flags[8] = {row->writes ? WIRE_DIR_WRITABLE : 0};
    char room[256];
    uint64_t dir_flags[WIRE_DIRS_MAX];
    int fds[FD_PASS_MAX];
    size_t count = 0;
    struct error err = {0};
    struct wire_create create = {.dirs = {dirs, sizeof dirs, 1},
                                 .dir_flags = {flags, 1},
                                 .shares = strings(row->shares, 2, room),
                                 .dir_owner_uid = 7,
                                 .dir_owner_gid = 7};
    int r = folders_resolve(folders, &create, dir_flags, fds, &count, &err);

    assert_row(row->name, r == row->result);
    if (r < 0)
        return;
    assert_int_equal(count, 1);
    assert_int_equal(create.dir_owner_uid, 1234);
    assert_int_equal(create.dir_owner_gid, 1235);
    fd_close_many(fds, count);
}

TEST(test_resolve)
{
    static const struct resolve_row rows[] = {
        {"read", "ro|sub|", false, 0},
        {"read what may be written", "rw|sub|", false, 0},
        {"write", "rw|sub|", true, 0},
        {"write what may be read", "ro|sub|", true, -EACCES},
        {"unknown", "other|sub|", false, -ENOENT},
        {"missing", "rw|none|", false, -ENOENT},
        {"up", "rw|..|", false, -EXDEV},
        {"down and up", "rw|sub/../..|", false, -EXDEV},
        {"absolute", "rw|/etc|", false, -EXDEV},
        {"symlink", "rw|out|", false, -ELOOP},
        {"whole", "user||", true, 0},
        {"root's in a user's", "user|root|", true, -EACCES},
    };
    struct folders folders;
    struct error err = {0};
    char room[256];
    size_t before = test_open_fds();

    struct wire_config config = {.shares = strings("ro|@/data|ro|rw|@/data|rw|user|@/data/sub|rw|", 9, room)};
    assert_int_equal(folders_open(&folders, &config, &err), 0);
    for (size_t i = 0; i < COUNT(rows); i++)
        try_row(&folders, &rows[i]);
    folders_close(&folders);
    assert_int_equal(test_open_fds(), before);
}

TEST(test_templates)
{
    struct folders folders;
    struct error err = {0};
    char room[256];
    int fds[FD_PASS_MAX];
    size_t count = 0;
    struct wire_config config = {.templates = strings("one|@/data|", 2, room)};
    struct wire_create create = {.flags = WIRE_CREATE_FOLDER, .template_name = wire_str("one")};

    assert_int_equal(folders_open(&folders, &config, &err), 0);
    assert_int_equal(folders_resolve(&folders, &create, NULL, fds, &count, &err), 0);
    assert_int_equal(count, 1);
    fd_close_many(fds, count);
    create.template_name = wire_str("two");
    assert_int_equal(folders_resolve(&folders, &create, NULL, fds, &count, &err), -ENOENT);
    create.flags = 0;
    create.template_name = wire_str("one");
    assert_int_equal(folders_resolve(&folders, &create, NULL, fds, &count, &err), -EINVAL);
    create.flags = WIRE_CREATE_FOLDER;
    create.template_name = wire_str("");
    assert_int_equal(folders_resolve(&folders, &create, NULL, fds, &count, &err), -EINVAL);
    folders_close(&folders);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_open), cmocka_unit_test(test_resolve),
                                       cmocka_unit_test(test_templates)};

    return cmocka_run_group_tests_name("keeper/folders", tests, set_up, tear_down);
}
