/*
 * capabilities: getting back what was given up: ids, capabilities, ambient ones, secure bits, no_new_privs.
 */
#include "attack/attack.h"

#include <linux/capability.h>
#include <linux/securebits.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static void inside(struct attempt *attempt)
{
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct all[2] = {{~0U, ~0U, ~0U}, {0x1ff, 0x1ff, 0x1ff}};

    TRY(attempt, "all of them", syscall(SYS_capset, &header, all), EPERM);
    TRY(attempt, "CAP_SYS_ADMIN, ambient", prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_SYS_ADMIN, 0, 0), EPERM);
    TRY(attempt, "secure bits", prctl(PR_SET_SECUREBITS, SECBIT_KEEP_CAPS_LOCKED, 0, 0, 0), EPERM);
    TRY(attempt, "no_new_privs taken back", prctl(PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0), EINVAL);
    attempt_say(attempt, "the bounding set", prctl(PR_CAPBSET_READ, CAP_SYS_ADMIN) == 0, "CAP_SYS_ADMIN is in it");
}

const struct attack attack_capabilities = {
    .name = "capabilities",
    .tries = "getting capabilities back",
    .group = ATTACK_KERNEL,
    .inside = inside,
};
