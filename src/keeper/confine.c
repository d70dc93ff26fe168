#include "keeper/confine.h"

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/sys.h"
#include "wire/capability.h"
#include "wire/filter.h"
#include "wire/landlock.h"

#include <linux/keyctl.h>
#include <linux/landlock.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>

static const struct sock_filter refused[] = {
#include "refused.inc"
};

static const struct sock_filter nosetid[] = {
#include "nosetid.inc"
};

static const struct sock_filter nocode[] = {
#include "nocode.inc"
};

static int allow_program(int domain, const char *program)
{
    char path[4200];

    (void)snprintf(path, sizeof path, "usr/%s", program);
    _cleanup_fd_ int fd = sys_openat2(AT_FDCWD, path, O_PATH | O_CLOEXEC, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
    return fd < 0 ? -errno : landlock_allow(domain, LANDLOCK_ACCESS_FS_EXECUTE, fd);
}

/* With the scopes where the kernel has them: a domain of init's own above this one would refuse renames again. */
static int new_domain(uint32_t *ret_features)
{
    struct landlock_rules rules = {.fs = LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_REFER,
                                   .scoped = LANDLOCK_SCOPED_SIGNALS | LANDLOCK_SCOPED_SOCKETS};
    int fd = landlock_new(&rules);

    *ret_features = WIRE_HELLO_SCOPED_SIGNALS | WIRE_HELLO_SCOPED_SOCKETS;
    if (fd != -E2BIG)
        return fd;
    *ret_features = 0;
    rules.scoped = 0;
    return landlock_new(&rules);
}

static int allow_all(int domain, const struct spawn *spawn, const char **ret_detail)
{
    /* Renaming from one folder to another, which every domain refuses unless it is told not to. */
    *ret_detail = "/";
    _cleanup_fd_ int root = open("/", O_PATH | O_CLOEXEC);
    int r = root < 0 ? -errno : landlock_allow(domain, LANDLOCK_ACCESS_FS_REFER, root);
    if (r < 0)
        return r;
    /* The next to be executed; it is not to be found in the new root. */
    *ret_detail = "init";
    r = landlock_allow(domain, LANDLOCK_ACCESS_FS_EXECUTE, spawn->init_fd);
    for (const char *program = NULL; r == 0 && (program = wire_strv_next(spawn->programs, program)) != NULL;) {
        *ret_detail = program;
        r = allow_program(domain, program);
    }
    return r;
}

int confine_programs(const struct spawn *spawn, uint32_t *ret_features, const char **ret_detail)
{
    *ret_detail = "Landlock";
    _cleanup_fd_ int domain = new_domain(ret_features);
    if (domain < 0)
        return domain;
    int r = allow_all(domain, spawn, ret_detail);
    if (r < 0)
        return r;
    *ret_detail = "Landlock";
    return landlock_enter(domain);
}

int confine_filter(const struct spawn *spawn, const char **ret_detail)
{
    int r = filter_load(refused, sizeof refused);

    *ret_detail = "refused";
    if (r == 0 && (spawn->flags & WIRE_SPAWN_NO_SETID) != 0) {
        *ret_detail = "nosetid";
        r = filter_load(nosetid, sizeof nosetid);
    }
    if (r == 0 && spawn_is_listed(spawn)) {
        *ret_detail = "nocode";
        r = filter_load(nocode, sizeof nocode);
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
