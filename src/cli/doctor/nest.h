/*
 * nest: a child of a probe in namespaces of its own, root of a user namespace as a sandbox's child is.
 *
 * It is made with plain clone(2), so that a missing clone3 is told by its own check and not by all of them. Its ids are
 * the 65,536 behind the range that sandboxes have, so no live sandbox shares them.
 */
#pragma once

#include "base/error.h"

#include <sys/types.h>

struct nest {
    pid_t pid;
    int go_fd;
};

/*
 * Clone with these CLONE_NEW* flags and CLONE_NEWUSER, and map its ids. The child waits; then it runs inside(context)
 * and exits. 0 or -errno; nothing is left then.
 */
_must_use_ int nest_start(unsigned long flags, void (*inside)(void *context), void *context, struct nest *ret_nest);

/* Let it go on and wait for its end. 0, or -ECHILD when it did not come to the end of inside(). */
_must_use_ int nest_finish(struct nest *nest);

/* End it before that. */
void nest_cancel(struct nest *nest);
