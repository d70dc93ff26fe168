/*
 * runtime-as-command: the second half of CVE-2019-5736: a command that is /proc/self/exe makes the runtime execute
 * itself inside. It may do so: it is a program like any other then, without rights, that finds it is not PID 1 (status
 * 2) and can't be written to.
 */
#include "attack/attack.h"

const struct attack attack_runtime_as_command = {
    .name = "runtime-as-command",
    .tries = "having Hutch's own program executed inside",
    .group = ATTACK_FILES,
    .command = "/proc/self/exe",
    .status = 2,
    .may_not_start = true,
};
