#include "keeper/program.h"

#include <elf.h>
#include <string.h>
#include <unistd.h>

enum { HEAD_SIZE = 2048, SEGMENTS_MAX = 64, DYNAMIC_MAX = 512 };

#ifndef DF_1_PIE
#define DF_1_PIE 0x08000000
#endif

struct elf {
    int fd;
    Elf64_Ehdr header;
    Elf64_Phdr segments[SEGMENTS_MAX];
    bool has_name;           /* DT_SONAME: what others link with */
    bool says_it_is_program; /* DF_1_PIE */
};

static bool read_at(int fd, uint64_t offset, void *data, size_t size)
{
    return offset <= INT64_MAX && pread(fd, data, size, (off_t)offset) == (ssize_t)size;
}

static bool read_headers(struct elf *elf)
{
    const Elf64_Ehdr *header = &elf->header;

    return read_at(elf->fd, 0, &elf->header, sizeof elf->header) && header->e_ident[EI_CLASS] == ELFCLASS64 &&
           header->e_ident[EI_DATA] == ELFDATA2LSB && header->e_phentsize == sizeof(Elf64_Phdr) &&
           header->e_phnum > 0 && header->e_phnum <= SEGMENTS_MAX &&
           read_at(elf->fd, header->e_phoff, elf->segments, header->e_phnum * sizeof(Elf64_Phdr));
}

static void read_dynamic(struct elf *elf, const Elf64_Phdr *segment)
{
    Elf64_Dyn entries[DYNAMIC_MAX];
    size_t count = segment->p_filesz / sizeof *entries;

    if (count > DYNAMIC_MAX)
        count = DYNAMIC_MAX;
    if (!read_at(elf->fd, segment->p_offset, entries, count * sizeof *entries))
        return;
    for (size_t i = 0; i < count && entries[i].d_tag != DT_NULL; i++) {
        elf->has_name = elf->has_name || entries[i].d_tag == DT_SONAME;
        elf->says_it_is_program =
            elf->says_it_is_program || (entries[i].d_tag == DT_FLAGS_1 && (entries[i].d_un.d_val & DF_1_PIE) != 0);
    }
}

static bool read_loader(const struct elf *elf, const Elf64_Phdr *segment, char path[PROGRAM_PATH_SIZE])
{
    return segment->p_filesz > 1 && segment->p_filesz <= PROGRAM_PATH_SIZE &&
           read_at(elf->fd, segment->p_offset, path, segment->p_filesz) &&
           memchr(path, '\0', segment->p_filesz) == path + segment->p_filesz - 1;
}

/* A library may have a loader too (libc.so.6 prints its version), and a static program need not. */
static enum program_kind kind_of(const struct elf *elf, bool has_loader)
{
    if (elf->header.e_type == ET_EXEC || elf->says_it_is_program)
        return PROGRAM_BINARY;
    if (elf->header.e_type != ET_DYN)
        return PROGRAM_OTHER;
    return has_loader && !elf->has_name ? PROGRAM_BINARY : PROGRAM_LIBRARY;
}

static void examine_elf(int fd, struct program *program)
{
    struct elf elf = {.fd = fd};
    bool has_loader = false;

    program->kind = PROGRAM_OTHER;
    if (!read_headers(&elf))
        return;
    for (size_t i = 0; i < elf.header.e_phnum; i++) {
        const Elf64_Phdr *segment = &elf.segments[i];
        if ((segment->p_type == PT_LOAD || segment->p_type == PT_GNU_STACK) && (segment->p_flags & PF_W) != 0 &&
            (segment->p_flags & PF_X) != 0)
            program->writes_code = true;
        if (segment->p_type == PT_DYNAMIC)
            read_dynamic(&elf, segment);
        if (segment->p_type != PT_INTERP || has_loader)
            continue;
        if (!read_loader(&elf, segment, program->interpreter))
            return;
        has_loader = true;
    }
    program->kind = kind_of(&elf, has_loader);
}

/* The next word of a line; it ends at `end`. */
static const char *take_word(const char *at, const char *end, char word[PROGRAM_PATH_SIZE])
{
    size_t length = 0;

    while (at < end && (*at == ' ' || *at == '\t'))
        at++;
    for (; at < end && *at != ' ' && *at != '\t' && *at != '\0'; at++) {
        if (length < PROGRAM_PATH_SIZE - 1)
            word[length++] = *at;
    }
    word[length] = '\0';
    return at;
}

static void examine_script(const char *head, size_t length, struct program *program)
{
    const char *newline = memchr(head, '\n', length);
    const char *end = newline != NULL ? newline : head + length;

    program->kind = PROGRAM_SCRIPT;
    (void)take_word(take_word(head + 2, end, program->interpreter), end, program->argument);
}

int program_examine(int fd, bool executable, struct program *ret_program)
{
    struct program program = {.kind = PROGRAM_NONE};
    char head[HEAD_SIZE];
    ssize_t n = pread(fd, head, sizeof head, 0);

    if (n < 0)
        return -errno;
    if (n >= SELFMAG && memcmp(head, ELFMAG, SELFMAG) == 0)
        examine_elf(fd, &program);
    else if (executable && n >= 2 && memcmp(head, "#!", 2) == 0)
        examine_script(head, (size_t)n, &program);
    else if (executable)
        program.kind = PROGRAM_OTHER;
    /* Object files, firmware, programs of other machines: nothing here could start them. */
    if (!executable && program.kind == PROGRAM_OTHER)
        program.kind = PROGRAM_NONE;
    *ret_program = program;
    return 0;
}
