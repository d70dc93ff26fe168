/* A file of /usr: what it is, and that what is said of it can be believed. */
#include "fuzz.h"
#include "keeper/program.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void check(int fd, bool executable)
{
    struct program program;

    MUST(program_examine(fd, executable, &program) == 0);
    MUST(memchr(program.interpreter, '\0', sizeof program.interpreter) != NULL);
    MUST(memchr(program.argument, '\0', sizeof program.argument) != NULL);
    MUST(executable ? program.kind != PROGRAM_NONE : program.kind != PROGRAM_OTHER && program.kind != PROGRAM_SCRIPT);
    MUST(program.kind == PROGRAM_SCRIPT || program.argument[0] == '\0');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int fd = -1;

    if (fd < 0)
        fd = memfd_create("program", MFD_CLOEXEC);
    MUST(fd >= 0 && ftruncate(fd, 0) == 0 && pwrite(fd, data, size, 0) == (ssize_t)size);
    check(fd, true);
    check(fd, false);
    return 0;
}
