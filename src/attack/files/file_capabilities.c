/*
 * file-capabilities: capabilities on a file are set-user-ID by another name.
 */
#include "attack/attack.h"
#include "attack/rights.h"

#include <linux/capability.h>
#include <sys/xattr.h>

static void inside(struct attempt *attempt)
{
    struct vfs_ns_cap_data all = {.magic_etc = VFS_CAP_REVISION_3 | VFS_CAP_FLAGS_EFFECTIVE};

    all.data[0].permitted = ~0U;
    if (rights_copy_program("/tmp/capable") < 0) {
        attempt_say(attempt, "making it", false, "it could not be copied");
    } else if (setxattr("/tmp/capable", "security.capability", &all, sizeof all, 0) < 0) {
        attempt_say(attempt, "making it", errno == EPERM || errno == ENOSYS, "%d", errno);
    } else {
        attempt_say(attempt, "running it", !rights_are_gained("/tmp/capable"), "it has more rights, or did not run");
    }
}

const struct attack attack_file_capabilities = {
    .name = "file-capabilities",
    .tries = "a program with capabilities on it",
    .group = ATTACK_FILES,
    .inside = inside,
};
