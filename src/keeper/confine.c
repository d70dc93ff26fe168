#include "keeper/confine.h"

#include "base/fd.h"
#include "base/sys.h"
#include "wire/capability.h"
#include "wire/filter.h"

#include <linux/keyctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>

static const struct sock_filter refused[] = {
#include "refused.inc"
};

static const struct sock_filter nosetid[] = {
#include "nosetid.inc"
};

int confine_filter(const struct spawn *spawn, const char **ret_detail)
{
    int r = filter_load(refused, sizeof refused);

    *ret_detail = "refused";
    if (r == 0 && (spawn->flags & WIRE_SPAWN_NO_SETID) != 0) {
        *ret_detail = "nosetid";
        r = filter_load(nosetid, sizeof nosetid);
    }
    return r;
}

int confine_privileges(const struct spawn *spawn, const char **ret_detail)
{
    /* 0 would let a core_pattern that pipes start its program all the same, as the host's root; 1 does not. */
    static const struct rlimit no_core = {1, 1};

    *ret_detail = "sethostname";
    if (sethostname(spawn->hostname.text, spawn->hostname.length) < 0)
        return -errno;
    /* Keyrings are per user and would otherwise be the caller's. */
    *ret_detail = "joining a new session keyring";
    if (syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL) < 0 && errno != ENOSYS)
        return -errno;
    *ret_detail = "forbidding core dumps";
    if (setrlimit(RLIMIT_CORE, &no_core) < 0)
        return -errno;
    *ret_detail = "setting no_new_privs";
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return -errno;
    *ret_detail = "dropping capabilities";
    int r = capability_bound(CAPABILITIES_ALL, CAPABILITIES_INIT);
    return r < 0 ? r : capability_set(CAPABILITIES_INIT);
}
