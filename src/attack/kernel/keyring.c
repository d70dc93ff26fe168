/*
 * keyring: keys are kept per user and were not made for containers: one sandbox's could be another's, or the host's
 * (CVE-2016-0728).
 */
#include "attack/attack.h"

#include <linux/keyctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static void inside(struct attempt *attempt)
{
    TRY(attempt, "the session's", syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_SESSION_KEYRING, 1), EPERM,
        ENOSYS);
    TRY(attempt, "the user's", syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_USER_KEYRING, 1), EPERM, ENOSYS);
    TRY(attempt, "joining one by name", syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, "hutch-attack"), EPERM,
        ENOSYS);
    TRY(attempt, "adding one", syscall(SYS_add_key, "user", "hutch-attack", "x", 1, KEY_SPEC_PROCESS_KEYRING), EPERM,
        ENOSYS);
    /* ENOKEY outside: nobody has it. */
    TRY(attempt, "asking for one", syscall(SYS_request_key, "user", "hutch-attack-none", NULL, 0), EPERM, ENOSYS);
}

const struct attack attack_keyring = {
    .name = "keyring",
    .tries = "keys of the session, of the user, and new ones",
    .group = ATTACK_KERNEL,
    .control = CONTROL_APART,
    .inside = inside,
};
