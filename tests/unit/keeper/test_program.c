#include "keeper/program.h"
#include "test.h"

#include <elf.h>

#ifndef DF_1_PIE
#define DF_1_PIE 0x08000000
#endif

/* An ELF file of just what is looked at. */
struct image {
    Elf64_Ehdr header;
    Elf64_Phdr segments[3];
    Elf64_Dyn dynamic[3];
    char loader[16];
};

static struct image make_image(uint16_t type)
{
    struct image image = {
        .header = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
                   .e_type = type,
                   .e_machine = EM_X86_64,
                   .e_phoff = offsetof(struct image, segments),
                   .e_phentsize = sizeof(Elf64_Phdr),
                   .e_phnum = 3},
        .segments = {{.p_type = PT_LOAD, .p_flags = PF_R | PF_X},
                     {.p_type = PT_DYNAMIC,
                      .p_offset = offsetof(struct image, dynamic),
                      .p_filesz = sizeof image.dynamic},
                     {.p_type = PT_INTERP, .p_offset = offsetof(struct image, loader), .p_filesz = 8}},
        .dynamic = {{.d_tag = DT_DEBUG}, {.d_tag = DT_DEBUG}, {.d_tag = DT_NULL}},
        .loader = "/lib/ld",
    };
    return image;
}

static void put(int fd, const void *data, size_t length)
{
    assert_return_code(ftruncate(fd, 0), errno);
    assert_int_equal(pwrite(fd, data, length, 0), length);
}

static struct program examine(int fd, bool executable)
{
    struct program program;

    memset(&program, 0x55, sizeof program);
    assert_int_equal(program_examine(fd, executable, &program), 0);
    return program;
}

static int new_file(void)
{
    int dir = test_folder();
    int fd = openat(dir, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    (void)close(dir);
    return fd;
}

TEST(test_elf_kinds)
{
    static const struct {
        const char *name;
        uint16_t type;
        Elf64_Dyn dynamic;
        bool loader;
        enum program_kind kind;
    } rows[] = {
        {"a program at a fixed address", ET_EXEC, {0}, true, PROGRAM_BINARY},
        {"a static program at a fixed address", ET_EXEC, {0}, false, PROGRAM_BINARY},
        {"a program", ET_DYN, {DT_FLAGS_1, {DF_1_PIE}}, true, PROGRAM_BINARY},
        {"a static program", ET_DYN, {DT_FLAGS_1, {DF_1_PIE}}, false, PROGRAM_BINARY},
        {"a program that does not say so", ET_DYN, {DT_FLAGS_1, {1}}, true, PROGRAM_BINARY},
        {"a library", ET_DYN, {DT_SONAME, {1}}, false, PROGRAM_LIBRARY},
        {"a library with a loader", ET_DYN, {DT_SONAME, {1}}, true, PROGRAM_LIBRARY},
        {"a plugin", ET_DYN, {DT_DEBUG, {0}}, false, PROGRAM_LIBRARY},
        {"an object", ET_REL, {0}, false, PROGRAM_OTHER},
    };
    int fd = new_file();

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct image image = make_image(rows[i].type);
        image.dynamic[1] = rows[i].dynamic;
        image.segments[2].p_type = rows[i].loader ? PT_INTERP : PT_NOTE;
        put(fd, &image, sizeof image);
        struct program program = examine(fd, true);
        assert_row(rows[i].name, program.kind == rows[i].kind && !program.writes_code);
        assert_row(rows[i].name, strcmp(program.interpreter, rows[i].loader ? "/lib/ld" : "") == 0);
        /* Without an execute bit a loader would start it all the same; what nothing starts is data. */
        program = examine(fd, false);
        assert_row(rows[i].name, program.kind == (rows[i].kind == PROGRAM_OTHER ? PROGRAM_NONE : rows[i].kind));
    }
    (void)close(fd);
}

TEST(test_writable_code)
{
    static const struct {
        uint32_t type;
        uint32_t flags;
        bool expected;
    } rows[] = {
        {PT_GNU_STACK, PF_R | PF_W, false}, {PT_GNU_STACK, PF_R | PF_W | PF_X, true},
        {PT_LOAD, PF_R | PF_W, false},      {PT_LOAD, PF_W | PF_X, true},
        {PT_NOTE, PF_W | PF_X, false},
    };
    int fd = new_file();

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct image image = make_image(ET_EXEC);
        image.segments[0].p_type = rows[i].type;
        image.segments[0].p_flags = rows[i].flags;
        put(fd, &image, sizeof image);
        assert_int_equal(examine(fd, true).writes_code, rows[i].expected);
    }
    (void)close(fd);
}

/* Whatever is wrong with it: no program that could be listed, but one to be taken away. */
TEST(test_broken_elf)
{
    struct image broken[8];
    int fd = new_file();

    for (size_t i = 0; i < COUNT(broken); i++)
        broken[i] = make_image(ET_DYN);
    broken[0].header.e_phoff = UINT64_MAX;
    broken[1].header.e_phoff = 1 << 20;
    broken[2].header.e_phnum = 0;
    broken[3].header.e_phnum = UINT16_MAX;
    broken[4].header.e_phentsize = 1;
    broken[5].header.e_ident[EI_CLASS] = ELFCLASS32;
    broken[6].segments[2].p_filesz = UINT64_MAX;
    memset(broken[7].loader, 'x', sizeof broken[7].loader);
    for (size_t i = 0; i < COUNT(broken); i++) {
        put(fd, &broken[i], sizeof broken[i]);
        assert_int_equal(examine(fd, true).kind, PROGRAM_OTHER);
        assert_int_equal(examine(fd, false).kind, PROGRAM_NONE);
    }
    for (size_t length = 0; length < sizeof broken[0]; length++) {
        struct image whole = make_image(ET_EXEC);
        put(fd, &whole, length);
        ignore_result(examine(fd, true).kind);
    }
    (void)close(fd);
}

TEST(test_scripts)
{
    static const struct {
        const char *text;
        enum program_kind kind;
        const char *interpreter;
        const char *argument;
    } rows[] = {
        {"#!/bin/sh\necho", PROGRAM_SCRIPT, "/bin/sh", ""},
        {"#! /bin/sh -e\necho", PROGRAM_SCRIPT, "/bin/sh", "-e"},
        {"#!\t/usr/bin/env \t python3 -x\n", PROGRAM_SCRIPT, "/usr/bin/env", "python3"},
        {"#!/bin/sh", PROGRAM_SCRIPT, "/bin/sh", ""},
        {"#!\n/bin/sh", PROGRAM_SCRIPT, "", ""},
        {"#!", PROGRAM_SCRIPT, "", ""},
        {"#", PROGRAM_OTHER, "", ""},
        {"", PROGRAM_OTHER, "", ""},
        {"echo", PROGRAM_OTHER, "", ""},
    };
    char line[4000];
    int fd = new_file();

    for (size_t i = 0; i < COUNT(rows); i++) {
        put(fd, rows[i].text, strlen(rows[i].text));
        struct program program = examine(fd, true);
        assert_row(rows[i].text, program.kind == rows[i].kind);
        assert_row(rows[i].text, strcmp(program.interpreter, rows[i].interpreter) == 0);
        assert_row(rows[i].text, strcmp(program.argument, rows[i].argument) == 0);
        assert_row(rows[i].text, examine(fd, false).kind == PROGRAM_NONE);
    }
    memset(line, 'a', sizeof line);
    memcpy(line, "#!/", 3);
    put(fd, line, sizeof line);
    assert_int_equal(strlen(examine(fd, true).interpreter), PROGRAM_PATH_SIZE - 1);
    (void)close(fd);
}

TEST(test_real_files)
{
    struct program program;
    int fd = open("/bin/true", O_RDONLY | O_CLOEXEC);

    assert_int_equal(program_examine(fd, true, &program), 0);
    assert_int_equal(program.kind, PROGRAM_BINARY);
    assert_int_equal(access(program.interpreter, X_OK), 0);
    (void)close(fd);
    fd = open(program.interpreter, O_RDONLY | O_CLOEXEC);
    assert_int_equal(program_examine(fd, true, &program), 0);
    assert_int_equal(program.kind, PROGRAM_LIBRARY);
    (void)close(fd);
    assert_int_equal(program_examine(-1, true, &program), -EBADF);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_elf_kinds), cmocka_unit_test(test_writable_code), cmocka_unit_test(test_broken_elf),
        cmocka_unit_test(test_scripts),   cmocka_unit_test(test_real_files),
    };
    return cmocka_run_group_tests_name("keeper/program", tests, NULL, NULL);
}
