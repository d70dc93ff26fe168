/*
 * core-dumps: a crash in a sandbox would start the host's core dump helper as the host's root (CVE-2022-28655 and its
 * relatives): the limit of 1 that forbids it must stay.
 */
#include "attack/attack.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static void inside(struct attempt *attempt)
{
    struct rlimit none = {0, 0};
    struct rlimit all = {RLIM_INFINITY, RLIM_INFINITY};
    int status = 0;

    TRY(attempt, "no limit", setrlimit(RLIMIT_CORE, &all), EPERM, ENOSYS);
    TRY(attempt, "limit 0, which a pipe ignores", setrlimit(RLIMIT_CORE, &none), EPERM, ENOSYS);
    pid_t child = fork();
    if (child == 0) {
        (void)raise(SIGSEGV);
        _exit(0);
    }
    (void)waitpid(child, &status, 0);
    attempt_say(attempt, "a crash", WIFSIGNALED(status) && !WCOREDUMP(status), "status %x", (unsigned)status);
}

const struct attack attack_core_dumps = {
    .name = "core-dumps",
    .tries = "getting core dumps back",
    .group = ATTACK_KERNEL,
    .inside = inside,
};
