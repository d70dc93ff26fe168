#include "cli/attack.h"

#include "base/beside.h"
#include "base/error.h"
#include "base/sys.h"
#include "cli/result.h"

#include <limits.h>
#include <stdint.h>

enum { WORDS_MAX = 128 };

int attack_main(char **argv)
{
    static const char option[] = "--hutch";
    static char own[PATH_MAX];
    const char *words[WORDS_MAX] = {"hutch-attack", option, own};
    size_t count = 3;
    int fd = -1;
    struct error err = {0};
    int r = readlink("/proc/self/exe", own, sizeof own - 1) < 0 ? error_errno(&err, "finding this program") : 0;

    for (; *argv != NULL && count < WORDS_MAX - 1; argv++)
        words[count++] = *argv;
    if (r == 0 && *argv != NULL)
        r = error_set(&err, ERROR_LIMIT, E2BIG, "hutch attack takes at most %d words", WORDS_MAX - 4);
    if (r == 0)
        r = beside_open("hutch-attack", &fd, &err);
    if (r == 0) {
        (void)sys_execveat(fd, "", (char **)(uintptr_t)words, environ, AT_EMPTY_PATH);
        ignore_result(error_errno(&err, "executing hutch-attack"));
    }
    result_print_error(&err, STEP_NONE, false);
    return EXIT_HUTCH;
}
