#include "keeper/usr_index.h"
#include "test.h"

#include <stdio.h>
#include <sys/stat.h>
#include <time.h>

struct place {
    int usr;
    int folder; /* of the index */
};

static void put(int dir, const char *path, const char *text, mode_t mode)
{
    test_write(dir, path, text);
    assert_return_code(fchmodat(dir, path, mode, 0), errno);
}

static struct place make_place(void)
{
    struct place place = {test_folder(), test_folder()};

    assert_return_code(mkdirat(place.usr, "bin", 0755), errno);
    assert_return_code(mkdirat(place.usr, "lib", 0755), errno);
    assert_return_code(mkdirat(place.usr, "lib/deep", 0755), errno);
    put(place.usr, "bin/script", "#!/bin/sh\n", 0755);
    put(place.usr, "bin/text", "text", 0644);
    put(place.usr, "lib/module.py", "#!/usr/bin/python3\n", 0755);
    put(place.usr, "lib/deep/tool", "x", 0711);
    assert_return_code(symlinkat("script", place.usr, "bin/link"), errno);
    return place;
}

static void release(struct place *place)
{
    (void)close(place->usr);
    (void)close(place->folder);
}

static void make(const struct place *place)
{
    struct error err = {0};

    assert_int_equal(usr_index_make(place->folder, place->usr, &err), 0);
}

static int load(const struct place *place, uint64_t *ret_generation)
{
    struct usr_index index;
    int r = usr_index_load(place->folder, place->usr, &index);

    if (r < 0)
        return r;
    *ret_generation = index.generation;
    usr_index_release(&index);
    return 0;
}

static bool has(const struct usr_index *index, const char *path)
{
    for (const char *at = index->programs; at < index->end; at += strlen(at) + 1) {
        if (strcmp(at, path) == 0)
            return true;
    }
    return false;
}

TEST(test_programs)
{
    struct place place = make_place();
    struct usr_index index;

    assert_int_equal(usr_index_load(place.folder, place.usr, &index), -ENOENT);
    make(&place);
    assert_int_equal(usr_index_load(place.folder, place.usr, &index), 0);
    assert_true(has(&index, "bin/script") && has(&index, "lib/deep/tool"));
    assert_false(has(&index, "bin/text") || has(&index, "bin/link") || has(&index, "lib/module.py"));
    usr_index_release(&index);
    release(&place);
}

TEST(test_generations)
{
    struct place place = make_place();
    uint64_t first = 0;
    uint64_t second = 0;

    make(&place);
    assert_int_equal(load(&place, &first), 0);
    assert_int_equal(load(&place, &second), 0);
    assert_true(first == second);
    make(&place);
    assert_int_equal(load(&place, &second), 0);
    assert_true(first != second);
    release(&place);
}

static void add_file(int usr)
{
    put(usr, "lib/deep/new", "", 0644);
}

static void remove_file(int usr)
{
    assert_return_code(unlinkat(usr, "bin/text", 0), errno);
}

static void rename_file(int usr)
{
    assert_return_code(renameat(usr, "bin/text", usr, "bin/other"), errno);
}

static void add_folder(int usr)
{
    assert_return_code(mkdirat(usr, "lib/deep/new", 0755), errno);
}

static void replace_folder(int usr)
{
    struct stat st;

    assert_return_code(fstatat(usr, "lib/deep", &st, 0), errno);
    assert_return_code(renameat(usr, "lib/deep", usr, "bin/deep"), errno);
    assert_return_code(mkdirat(usr, "lib/deep", 0755), errno);
    const struct timespec times[2] = {st.st_atim, st.st_mtim};
    assert_return_code(utimensat(usr, "lib/deep", times, 0), errno);
}

/* The clock of a file system may be coarser than this test is fast. */
static void age(int usr)
{
    static const char *const folders[] = {".", "bin", "lib", "lib/deep"};
    static const struct timespec long_ago[2] = {{.tv_sec = 1000000}, {.tv_sec = 1000000}};

    for (size_t i = 0; i < COUNT(folders); i++)
        assert_return_code(utimensat(usr, folders[i], long_ago, 0), errno);
}

TEST(test_changes)
{
    static void (*const changes[])(int usr) = {add_file, remove_file, rename_file, add_folder, replace_folder};

    for (size_t i = 0; i < COUNT(changes); i++) {
        struct place place = make_place();
        uint64_t generation = 0;
        age(place.usr);
        make(&place);
        assert_int_equal(load(&place, &generation), 0);
        changes[i](place.usr);
        assert_int_equal(load(&place, &generation), -ENOENT);
        make(&place);
        assert_int_equal(load(&place, &generation), 0);
        release(&place);
    }
}

/* Looked at again only after a few seconds, and when the clock went back. */
TEST(test_current)
{
    struct place place = make_place();
    uint64_t generation = 0;
    uint64_t current = 0;

    assert_int_equal(usr_index_current(place.folder, place.usr, &current), -ENOENT);
    age(place.usr);
    make(&place);
    assert_int_equal(load(&place, &generation), 0);
    assert_int_equal(usr_index_current(place.folder, place.usr, &current), 0);
    assert_true(current == generation);
    add_file(place.usr);
    assert_int_equal(usr_index_current(place.folder, place.usr, &current), 0);
    for (int seconds = -60; seconds <= 60; seconds += 120) {
        const struct timespec then[2] = {{.tv_sec = time(NULL) + seconds}, {.tv_sec = time(NULL) + seconds}};
        assert_return_code(utimensat(place.folder, "usr", then, 0), errno);
        assert_int_equal(usr_index_current(place.folder, place.usr, &current), -ENOENT);
    }
    make(&place);
    assert_int_equal(load(&place, &generation), 0);
    const struct timespec then[2] = {{.tv_sec = time(NULL) - 60}, {.tv_sec = time(NULL) - 60}};
    assert_return_code(utimensat(place.folder, "usr", then, 0), errno);
    assert_int_equal(usr_index_current(place.folder, place.usr, &current), 0);
    assert_true(current == generation);
    remove_file(place.usr);
    assert_int_equal(usr_index_current(place.folder, place.usr, &current), 0); /* was looked at just now */
    release(&place);
}

/* What is not whole is not there. */
TEST(test_damage)
{
    struct place place = make_place();
    static uint8_t whole[4096];
    uint64_t generation;

    make(&place);
    int fd = openat(place.folder, "usr", O_RDWR | O_CLOEXEC);
    ssize_t length = read(fd, whole, sizeof whole);
    assert_true(length > 0 && length < (ssize_t)sizeof whole);
    for (off_t cut = 0; cut < length; cut++) {
        assert_return_code(ftruncate(fd, 0), errno);
        assert_int_equal(pwrite(fd, whole, (size_t)cut, 0), cut);
        int r = load(&place, &generation);
        assert_true(r == -ENOENT || (r == 0 && whole[cut - 1] == '\0'));
    }
    for (off_t at = 0; at < 64; at++) {
        assert_int_equal(pwrite(fd, whole, (size_t)length, 0), length);
        assert_int_equal(pwrite(fd, "\xff", 1, at), 1);
        int r = load(&place, &generation);
        assert_true(r == 0 || r == -ENOENT);
    }
    assert_int_equal(pwrite(fd, whole, (size_t)length, 0), length);
    assert_int_equal(load(&place, &generation), 0);
    assert_return_code(fchmod(fd, 0644), errno);
    assert_int_equal(load(&place, &generation), -ENOENT);
    (void)close(fd);
    release(&place);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_programs), cmocka_unit_test(test_generations), cmocka_unit_test(test_changes),
        cmocka_unit_test(test_current),  cmocka_unit_test(test_damage),
    };
    return cmocka_run_group_tests_name("keeper/usr_index", tests, NULL, NULL);
}
