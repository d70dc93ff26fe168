/*
 * template-false-proc: a template with files where /proc goes: what the runtime writes to /proc, labels and limits,
 * went there instead (CVE-2025-52881).
 */
#include "attack/attack.h"
#include "attack/ground.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

static int prepare(const struct ground *ground)
{
    static const char *const folders[] = {"proc/sys", "proc/sys/user", "proc/self", "proc/false"};

    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        char path[GROUND_PATH_SIZE + 32];
        (void)snprintf(path, sizeof path, "%s/%s", ground->root, folders[i]);
        if (mkdir(path, 0755) < 0)
            return -errno;
    }
    return ground_replace_with_symlink(ground, "proc/self", ground->canary);
}

static void inside(struct attempt *attempt)
{
    struct statfs st = {0};

    attempt_say(attempt, "/proc", statfs("/proc/self/attr", &st) == 0 && st.f_type == PROC_SUPER_MAGIC,
                "it is not the kernel's");
    attempt_say(attempt, "/proc/sys", statfs("/proc/sys/user", &st) == 0 && st.f_type == PROC_SUPER_MAGIC,
                "it is not the kernel's");
    attempt_say(attempt, "the file in it", access("/proc/false", F_OK) != 0, "it is there");
}

const struct attack attack_template_false_proc = {
    .name = "template-false-proc",
    .tries = "a template with a /proc of its own making",
    .group = ATTACK_FILES,
    .inside = inside,
    .prepare = prepare,
};
