#include "keeper/request.h"
#include "test.h"

#include <stdio.h>

#define MIB (UINT64_C(1) << 20)

static struct wire_create valid_create(void)
{
    return (struct wire_create){
        .sandbox = 1,
        .memory_bytes = 512 * MIB,
        .disk_bytes = MIB,
        .disk_inodes = 1024,
        .processes = 16,
        .hostname = wire_str("sandbox"),
    };
}

/* A number of CREATE, and of LIMITS where that has it too. */
struct number_row {
    size_t offset;
    size_t size;
    size_t limits_offset; /* 0: not in LIMITS, where the sandbox comes first */
    uint64_t value;
    bool may;
    const char *name;
};

#define FIELD(field) offsetof(struct wire_create, field), sizeof((struct wire_create *)0)->field
#define NUMBER(field, value, may) FIELD(field), 0, value, may, #field " " #value
#define AMOUNT(field, value, may) FIELD(field), offsetof(struct wire_limits, field), value, may, #field " " #value

static const struct number_row numbers[] = {
    {AMOUNT(memory_bytes, 0, false)},
    {AMOUNT(memory_bytes, 2 * MIB - 1, false)},
    {AMOUNT(memory_bytes, 2 * MIB, true)},
    {AMOUNT(memory_bytes, INT64_MAX, true)},
    {AMOUNT(memory_bytes, UINT64_C(1) << 63, false)},
    {AMOUNT(memory_bytes, UINT64_MAX, false)},
    {AMOUNT(processes, 0, false)},
    {AMOUNT(processes, 1, true)},
    {AMOUNT(processes, 1 << 20, true)},
    {AMOUNT(processes, (1 << 20) + 1, false)},
    {AMOUNT(processes, UINT32_MAX, false)},
    {AMOUNT(cpu_milli, 0, true)},
    {AMOUNT(cpu_milli, 9, false)},
    {AMOUNT(cpu_milli, 10, true)},
    {AMOUNT(cpu_milli, 4096000, true)},
    {AMOUNT(cpu_milli, 4096001, false)},
    {AMOUNT(cpu_milli, UINT32_MAX, false)},
    {AMOUNT(cpu_weight, 0, true)},
    {AMOUNT(cpu_weight, 1, true)},
    {AMOUNT(cpu_weight, 10000, true)},
    {AMOUNT(cpu_weight, 10001, false)},
    {AMOUNT(cpu_weight, UINT32_MAX, false)},
    {NUMBER(disk_bytes, 0, false)},
    {NUMBER(disk_bytes, 65535, false)},
    {NUMBER(disk_bytes, 65536, true)},
    {NUMBER(disk_bytes, 512 * MIB, true)},
    {NUMBER(disk_bytes, 512 * MIB + 1, false)},
    {NUMBER(disk_bytes, UINT64_MAX, false)},
    {NUMBER(disk_inodes, 0, false)},
    {NUMBER(disk_inodes, 63, false)},
    {NUMBER(disk_inodes, 64, true)},
    {NUMBER(disk_inodes, INT32_MAX, true)},
    {NUMBER(disk_inodes, UINT64_C(1) << 31, false)},
    {NUMBER(disk_inodes, UINT64_MAX, false)},
    {NUMBER(user, 0, true)},
    {NUMBER(user, 65535, true)},
    {NUMBER(user, 65536, false)},
    {NUMBER(user, UINT32_MAX, false)},
    {NUMBER(flags, WIRE_CREATE_ROOT_RW, false)},
    {NUMBER(flags, WIRE_CREATE_TERMINAL, true)},
    {NUMBER(flags, UINT32_C(1) << 31, false)},
    {NUMBER(flags, UINT32_MAX, false)},
    {NUMBER(sandbox, UINT64_MAX, true)},
};

static void set_number(void *message, size_t offset, size_t size, uint64_t value)
{
    uint32_t small = (uint32_t)value;

    memcpy((uint8_t *)message + offset, size == 4 ? (void *)&small : (void *)&value, size);
}

/* Refused with a reason, or accepted without one. */
static bool is_answer(int r, const struct error *err, bool may)
{
    return may ? r == 0 : r < 0 && err->code == ERROR_INVALID && err->message[0] != '\0';
}

TEST(test_create_numbers)
{
    for (size_t i = 0; i < COUNT(numbers); i++) {
        const struct number_row *row = &numbers[i];
        struct wire_create create = valid_create();
        struct error err = {0};
        set_number(&create, row->offset, row->size, row->value);
        int r = request_check_create(&create, 0, &err);
        assert_row(row->name, is_answer(r, &err, row->may));
    }
}

TEST(test_limits_numbers)
{
    for (size_t i = 0; i < COUNT(numbers); i++) {
        const struct number_row *row = &numbers[i];
        struct wire_limits limits = {.memory_bytes = 512 * MIB, .processes = 16};
        struct error err = {0};
        if (row->limits_offset == 0)
            continue;
        set_number(&limits, row->limits_offset, row->size, row->value);
        int r = request_check_limits(&limits, &err);
        assert_row(row->name, is_answer(r, &err, row->may));
    }
}

#define LETTERS_60 "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ01234567"

TEST(test_hostname)
{
    static const struct {
        const char *name;
        bool may;
    } rows[] = {
        {"a", true},      {"web-1.example", true}, {"89", true},   {LETTERS_60 "abc", true}, {LETTERS_60 "abcd", false},
        {"", false},      {"a_b", false},          {"a b", false}, {"a/b", false},           {"a\nb", false},
        {"a\x01", false}, {"caf\xc3\xa9", false},  {"%n", false},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct wire_create create = valid_create();
        struct error err = {0};
        create.hostname = wire_str(rows[i].name);
        assert_row(rows[i].name, is_answer(request_check_create(&create, 0, &err), &err, rows[i].may));
    }
}

#define PART_255 LETTERS_60 LETTERS_60 LETTERS_60 LETTERS_60 "123456789012345"

static const struct {
    const char *path;
    bool may;
} paths[] = {
    {"/workspace", true},
    {"/a/b/c", true},
    {"/a/.b", true},
    {"/a/..b", true},
    {"/a/...", true},
    {"/process", true},
    {"/devices", true},
    {"/a/proc", true},
    {"/a b", true},
    {"/" PART_255, true},
    {"/" PART_255 "x", false},
    {"/a/" PART_255 "x/b", false},
    {"", false},
    {"/", false},
    {"//", false},
    {"a", false},
    {"a/b", false},
    {"./a", false},
    {"../a", false},
    {"/.", false},
    {"/..", false},
    {"/a/.", false},
    {"/a/..", false},
    {"/a/../b", false},
    {"/a/./b", false},
    {"/a//b", false},
    {"//a", false},
    {"/a/", false},
    {"/proc", false},
    {"/proc/1", false},
    {"/dev", false},
    {"/dev/null", false},
    {"/dev/../a", false},
    {"/a/../proc", false},
    {"//proc", false},
    {"/./proc", false},
};

TEST(test_guest_paths)
{
    for (size_t i = 0; i < COUNT(paths); i++) {
        struct wire_create create = valid_create();
        struct error err = {0};
        static const uint8_t flags[8];
        create.dirs = (struct wire_strv){paths[i].path, (uint32_t)strlen(paths[i].path) + 1, 1};
        create.dir_flags = (struct wire_u64v){flags, 1};
        assert_row(paths[i].path, request_is_guest_path(paths[i].path) == paths[i].may);
        assert_row(paths[i].path, is_answer(request_check_create(&create, 1, &err), &err, paths[i].may));
    }
}

/* Folders, flags and descriptors must be as many. */
TEST(test_folder_counts)
{
    static const char many[] = "/a\0/b\0/c\0/d\0/e\0/f\0/g\0/h\0/i\0/j\0/k\0/l\0/m\0/n\0/o\0/p\0/q";
    static const uint8_t no_flags[17 * 8];
    static const struct {
        const char *name;
        uint32_t dirs;
        uint32_t dir_flags;
        uint32_t flags;
        size_t fds;
        bool may;
    } rows[] = {
        {"nothing", 0, 0, 0, 0, true},
        {"a descriptor for nothing", 0, 0, 0, 1, false},
        {"a root", 0, 0, WIRE_CREATE_FOLDER, 1, true},
        {"a writable root", 0, 0, WIRE_CREATE_FOLDER | WIRE_CREATE_ROOT_RW, 1, true},
        {"a root without descriptor", 0, 0, WIRE_CREATE_FOLDER, 0, false},
        {"one", 1, 1, 0, 1, true},
        {"one without descriptor", 1, 1, 0, 0, false},
        {"one without flags", 1, 0, 0, 1, false},
        {"flags without one", 0, 1, 0, 1, false},
        {"one and a root", 1, 1, WIRE_CREATE_FOLDER, 2, true},
        {"one and a root with one descriptor", 1, 1, WIRE_CREATE_FOLDER, 1, false},
        {"one and a root with three descriptors", 1, 1, WIRE_CREATE_FOLDER, 3, false},
        {"as many as there may be", 16, 16, WIRE_CREATE_FOLDER, 17, true},
        {"one too many", 17, 17, 0, 17, false},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct wire_create create = valid_create();
        struct error err = {0};
        create.flags = rows[i].flags;
        create.dirs = (struct wire_strv){many, rows[i].dirs * 3, rows[i].dirs};
        create.dir_flags = (struct wire_u64v){no_flags, rows[i].dir_flags};
        assert_row(rows[i].name, is_answer(request_check_create(&create, rows[i].fds, &err), &err, rows[i].may));
    }
}

/* Each folder is looked at, not just the first. */
TEST(test_second_folder)
{
    static const struct {
        const char *dirs;
        uint8_t flags[2][8];
        bool may;
    } rows[] = {
        {"/a\0/b", {{0}, {WIRE_DIR_WRITABLE}}, true},
        {"/a\0b/", {{0}, {0}}, false},
        {"/a\0/b", {{0}, {2}}, false},
        {"/a\0/b", {{0}, {[7] = 0x80}}, false},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct wire_create create = valid_create();
        struct error err = {0};
        create.dirs = (struct wire_strv){rows[i].dirs, 6, 2};
        create.dir_flags = (struct wire_u64v){rows[i].flags[0], 2};
        assert_row(rows[i].dirs, is_answer(request_check_create(&create, 2, &err), &err, rows[i].may));
    }
}

TEST(test_only)
{
    static const struct {
        const char *name;
        bool may;
    } rows[] = {
        {"ls", true},
        {"python3.11", true},
        {"[", true},
        {"..a", true},
        {"...", true},
        {"", false},
        {".", false},
        {"..", false},
        {"bin/ls", false},
        {"../ls", false},
        {"/usr/bin/ls", true},
        {"/usr/lib/git-core/git", true},
        {"/usr", false},
        {"/usr/", false},
        {"/usrbin/ls", false},
        {"/bin/ls", false},
        {"/usr/../bin/ls", false},
        {"/usr/bin/..", false},
        {"/usr/./bin/ls", false},
        {"/usr//bin/ls", false},
        {"/usr/bin/", false},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct wire_create create = valid_create();
        struct error err = {0};
        char second[64];
        int length = snprintf(second, sizeof second, "cat%c%s", '\0', rows[i].name);
        create.only = (struct wire_strv){rows[i].name, (uint32_t)strlen(rows[i].name) + 1, 1};
        assert_row(rows[i].name, is_answer(request_check_create(&create, 0, &err), &err, rows[i].may));
        create.only = (struct wire_strv){second, (uint32_t)length + 1, 2};
        assert_row(rows[i].name, is_answer(request_check_create(&create, 0, &err), &err, rows[i].may));
        create.flags = WIRE_CREATE_FOLDER;
        assert_row(rows[i].name, is_answer(request_check_create(&create, 1, &err), &err, false));
    }
}

TEST(test_only_count)
{
    static char names[(WIRE_ONLY_MAX + 1) * 2];

    for (size_t i = 0; i < sizeof names; i += 2)
        names[i] = 'a';
    for (uint32_t count = WIRE_ONLY_MAX; count <= WIRE_ONLY_MAX + 1; count++) {
        struct wire_create create = valid_create();
        struct error err = {0};
        create.only = (struct wire_strv){names, count * 2, count};
        assert_true(is_answer(request_check_create(&create, 0, &err), &err, count == WIRE_ONLY_MAX));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_create_numbers), cmocka_unit_test(test_limits_numbers),
        cmocka_unit_test(test_hostname),       cmocka_unit_test(test_guest_paths),
        cmocka_unit_test(test_folder_counts),  cmocka_unit_test(test_second_folder),
        cmocka_unit_test(test_only),           cmocka_unit_test(test_only_count),
    };
    return cmocka_run_group_tests_name("keeper/request", tests, NULL, NULL);
}
