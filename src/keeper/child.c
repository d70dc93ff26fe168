#include "keeper/child.h"

#include "base/clock.h"
#include "base/sys.h"
#include "keeper/confine.h"
#include "keeper/rootfs.h"
#include "wire/link.h"
#include "wire/steps.h"

#include <grp.h>
#include <sched.h>
#include <string.h>
#include <sys/prctl.h>

enum { INIT_FD = 6 };

struct child {
    const struct spawn *spawn;
    struct rootfs rootfs;
    int go_fd;
    int guest_fd; /* where to say SETUP */
    int view_fd;  /* init's view of its cgroup, once the keeper has handed it over */
    int proc_fd;  /* /proc with its masks, if the keeper could make it */
    uint64_t steps_ns[STEP_COUNT];
    const char *detail;
    uint32_t features; /* of the Landlock domain, when programs are listed */
};

static void send_setup(const struct child *child, enum step step, int error)
{
    struct wire_message message = {
        .type = WIRE_SETUP,
        .setup = {.step = step,
                  .error = (uint32_t)error,
                  .detail = wire_str(child->detail != NULL ? child->detail : child->rootfs.detail),
                  .steps_ns = {.data = (const uint8_t *)child->steps_ns, .count = STEP_COUNT}},
    };

    if (link_send(child->guest_fd, &message, NULL, 0) < 0)
        _exit(1); /* nobody listens any more */
}

static int failed(struct child *child, const char *detail)
{
    child->detail = detail;
    return -errno;
}

static int enter_cgroups(struct child *child)
{
    /* A session without a terminal it has from the zygote; its process group is its own. */
    if (setpgid(0, 0) < 0)
        return failed(child, "making a process group");
    for (size_t i = 0; i < child->spawn->task_count; i++) {
        if (write(child->spawn->task_fds[i], "0", 1) != 1)
            return failed(child, "writing to tasks");
    }
    return 0;
}

static int wait_for_maps(struct child *child)
{
    char go;

    if (read(child->go_fd, &go, 1) != 1)
        _exit(1); /* the zygote gave up and has said why */
    if (unshare(CLONE_NEWCGROUP) < 0)
        return failed(child, "unsharing the cgroup namespace");
    if (setgroups(0, NULL) < 0 || setresgid(0, 0, 0) < 0 || setresuid(0, 0, 0) < 0)
        return failed(child, "becoming root of the user namespace");
    /* After the last change of ids, which would clear it. */
    return prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 ? failed(child, "asking to end with the keeper") : 0;
}

static int make_disk(struct child *child)
{
    return rootfs_disk(&child->rootfs);
}

static int make_root(struct child *child)
{
    return rootfs_root(&child->rootfs);
}

static int make_usr(struct child *child)
{
    return rootfs_usr(&child->rootfs);
}

static int make_writable(struct child *child)
{
    return rootfs_writable(&child->rootfs);
}

static int attach_dirs(struct child *child)
{
    return rootfs_dirs(&child->rootfs);
}

/* The keeper has set the limits and made /dev meanwhile. Without its word nothing goes further. */
static int take_furnishing(struct child *child)
{
    static uint8_t frame[WIRE_FRAME_MAX];
    struct wire_message message;
    int fds[FD_PASS_MAX];
    size_t fd_count = 0;
    int r = link_receive(child->guest_fd, WIRE_BY_KEEPER, WIRE_IN_STARTING, frame, &message, fds, &fd_count);

    if (r == 0)
        _exit(1); /* the keeper gave up and says why */
    if (r < 0 || message.type != WIRE_FURNISH || fd_count < 2) {
        child->detail = "hearing from the keeper";
        return r < 0 ? r : -EBADMSG;
    }
    child->view_fd = fds[1];
    child->proc_fd = fd_count == 3 ? fds[2] : -1;
    return rootfs_dev(&child->rootfs, fds[0]);
}

static int make_terminals(struct child *child)
{
    return rootfs_terminals(&child->rootfs);
}

static int make_proc(struct child *child)
{
    return rootfs_proc(&child->rootfs, child->proc_fd);
}

static int make_masks(struct child *child)
{
    return rootfs_masks(&child->rootfs, child->proc_fd >= 0);
}

static int change_root(struct child *child)
{
    return rootfs_pivot(&child->rootfs);
}

static int drop_privileges(struct child *child)
{
    return confine_privileges(child->spawn, &child->detail);
}

static int allow_programs(struct child *child)
{
    return spawn_is_listed(child->spawn) ? confine_programs(child->spawn, &child->features, &child->detail) : 0;
}

static int load_filter(struct child *child)
{
    return confine_filter(child->spawn, &child->detail);
}

/* The zygote has brought the loopback interface up meanwhile, and says with which errno. */
static int wait_for_network(struct child *child)
{
    unsigned char error;

    child->detail = "setting up its network";
    return read(child->go_fd, &error, 1) == 1 ? -(int)error : -ENETDOWN;
}

/* Nothing of the host's stays open: 0 to 2 are the sandbox's /dev/null, 3 the guest link, 4 the cgroup, and 5 init's
 * own /proc where the sandbox's is read-only. */
static int arrange_descriptors(struct child *child)
{
    int guest = fcntl(child->spawn->guest_fd, F_DUPFD, 16);
    int view = fcntl(child->view_fd, F_DUPFD, 16);
    int init = fcntl(child->spawn->init_fd, F_DUPFD, 16);
    int proc = child->rootfs.init_proc_fd >= 0 ? fcntl(child->rootfs.init_proc_fd, F_DUPFD, 16) : -1;
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    if (guest < 0 || view < 0 || init < 0 || null < 0 || (proc < 0 && child->rootfs.init_proc_fd >= 0))
        return -errno;
    child->guest_fd = guest; /* what it was until now may be covered by one of these */
    for (int fd = 0; fd <= 2; fd++) {
        if (null != fd && dup2(null, fd) < 0)
            return -errno;
    }
    if (dup2(guest, WIRE_GUEST_FD) < 0 || dup2(view, WIRE_CGROUP_FD) < 0 || dup3(init, INIT_FD, O_CLOEXEC) < 0 ||
        (proc >= 0 && dup2(proc, WIRE_PROC_FD) < 0) || (proc < 0 && close(WIRE_PROC_FD) < 0 && errno != EBADF) ||
        sys_close_range(INIT_FD + 1, ~0U, 0) < 0)
        return -errno;
    child->guest_fd = WIRE_GUEST_FD;
    return 0;
}

static const struct {
    enum step step;
    int (*take)(struct child *child);
} sequence[] = {
    {STEP_ENTER, enter_cgroups},
    {STEP_WAIT, wait_for_maps},
    {STEP_DISK, make_disk},
    {STEP_ROOT, make_root},
    {STEP_USR, make_usr},
    {STEP_WRITABLE, make_writable},
    {STEP_ATTACH, attach_dirs},
    {STEP_FURNISH, take_furnishing},
    {STEP_TERMINAL, make_terminals},
    {STEP_PROC, make_proc},
    {STEP_MASKS, make_masks},
    {STEP_PIVOT, change_root},
    {STEP_CONFINE, drop_privileges},
    {STEP_ONLY, allow_programs},
    {STEP_NETWORK, wait_for_network},
    {STEP_FILTER, load_filter},
};

static _Noreturn void become_init(struct child *child)
{
    static char name[] = "init";
    /* In a domain already: init is told what it has, and enters none. */
    static char features[] = "0";
    char *const argv[] = {name, spawn_is_listed(child->spawn) ? features : NULL, NULL};
    static char *const envp[] = {NULL};

    features[0] = (char)('0' + child->features);
    child->detail = "";
    if ((child->spawn->flags & WIRE_SPAWN_TIMES) != 0)
        send_setup(child, STEP_NONE, 0);
    child->detail = "arranging descriptors";
    if (arrange_descriptors(child) == 0) {
        child->detail = "executing it";
        (void)sys_execveat(INIT_FD, "", argv, envp, AT_EMPTY_PATH);
    }
    send_setup(child, STEP_INIT, errno);
    _exit(1);
}

_Noreturn void child_run(const struct spawn *spawn, int go_fd)
{
    struct child child = {.spawn = spawn,
                          .rootfs = {.spawn = spawn, .root_fd = -1, .dev_fd = -1, .proc_fd = -1, .init_proc_fd = -1},
                          .go_fd = go_fd,
                          .guest_fd = spawn->guest_fd,
                          .view_fd = -1,
                          .proc_fd = -1};
    uint64_t start_ns = clock_now_ns();

    for (size_t i = 0; i < sizeof sequence / sizeof *sequence; i++) {
        child.detail = NULL;
        child.rootfs.detail[0] = '\0';
        int r = sequence[i].take(&child);
        uint64_t now_ns = clock_now_ns();
        child.steps_ns[sequence[i].step] = now_ns - start_ns;
        start_ns = now_ns;
        if (r < 0) {
            send_setup(&child, sequence[i].step, -r);
            _exit(1);
        }
    }
    become_init(&child);
}
