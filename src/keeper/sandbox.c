#include "keeper/sandbox.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/sys.h"
#include "keeper/dev.h"
#include "keeper/host_layer.h"
#include "keeper/mnt.h"
#include "keeper/proc.h"
#include "keeper/spawn.h"
#include "keeper/template.h"
#include "keeper/userns.h"
#include "wire/link.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { UNDO_LIMIT_MS = 2000 };

/* Everything a creation holds until the child has it. */
struct making {
    struct sandbox_maker *maker;
    const struct wire_create *create;
    const struct prepared *prepared;
    struct sandbox_progress *progress;
    struct sandbox *sandbox;
    struct spawn spawn;
    struct cgroup_entry entry;
    int guest_fd; /* the host's end */
    int child_fd; /* the sandbox's end */
    int dev_fd;
    int view_fd;
    int proc_fd;
    bool has_ids;
    bool has_cgroup;
};

static void begin(struct making *making, enum step step)
{
    struct sandbox_progress *progress = making->progress;
    uint64_t now_ns = clock_now_ns();

    progress->steps_ns[progress->step] += now_ns - progress->step_start_ns;
    progress->step = step;
    progress->step_start_ns = now_ns;
}

static int claim_ids(struct making *making, struct error *err)
{
    begin(making, STEP_IDS);
    int r = ids_claim(making->maker->ids, &making->sandbox->uid_first, err);
    making->has_ids = r == 0;
    return r;
}

static int make_cgroup(struct making *making, struct error *err)
{
    begin(making, STEP_CGROUP);
    (void)snprintf(making->sandbox->cgroup, sizeof making->sandbox->cgroup, "%s-%llx", making->maker->instance_id,
                   (unsigned long long)making->create->sandbox);
    int r = cgroup_create(making->maker->cgroups, making->sandbox->cgroup, &making->entry, err);
    making->has_cgroup = r == 0;
    return r;
}

static int open_template(struct making *making, const int *fds, struct error *err)
{
    struct sandbox_maker *maker = making->maker;

    begin(making, STEP_TEMPLATE);
    if (making->create->only.count > 0) {
        int r = template_open_policy(&making->prepared->policy, &making->spawn, err);
        if (r < 0)
            return r;
    }
    if ((making->create->flags & WIRE_CREATE_FOLDER) != 0)
        return template_open_folder(fds[0], &making->spawn, err);
    if (maker->host_layer_fd < 0) {
        int r = host_layer_open(maker->state_fd, &maker->host_layer_fd, err);
        if (r < 0)
            return r;
    }
    return template_open_host(maker->host_layer_fd, &making->spawn, err);
}

/* In a host folder one inner user stands for its owner, and nobody else is anybody. */
static int open_dirs(struct making *making, const int *fds, struct error *err)
{
    const struct wire_create *create = making->create;
    uint32_t inner = making->sandbox->uid_first + create->user;
    _cleanup_fd_ int userns = -1;

    begin(making, STEP_DIRS);
    if (create->dirs.count == 0)
        return 0;
    int r = userns_new((struct userns_map){create->dir_owner_uid, inner, 1},
                       (struct userns_map){create->dir_owner_gid, inner, 1}, &userns, err);
    if (r < 0)
        return r;
    for (uint32_t i = 0; i < create->dirs.count; i++) {
        bool is_writable = (wire_u64v_at(create->dir_flags, i) & WIRE_DIR_WRITABLE) != 0;
        uint64_t attributes = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | (is_writable ? 0 : MOUNT_ATTR_RDONLY) |
                              (create->only.count > 0 ? MOUNT_ATTR_NOEXEC : 0);
        if (is_writable)
            making->spawn.flags |= WIRE_SPAWN_NO_SETID;
        r = mnt_copy(fds[i], "", attributes, &making->spawn.dir_fds[i]);
        if (r < 0)
            return error_set(err, ERROR_SYSTEM, -r, "copying the mount of host folder %u", i + 1);
        making->spawn.dir_count++;
        r = mnt_idmap(making->spawn.dir_fds[i], userns);
        if (r < 0)
            return error_set(err, ERROR_SYSTEM, -r,
                             "the file system of host folder %u can't be idmapped; use one on ext4, xfs or btrfs",
                             i + 1);
    }
    return 0;
}

static int fill_spawn(struct making *making, struct error *err)
{
    struct spawn *spawn = &making->spawn;
    int ends[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return error_errno(err, "making the guest link");
    making->guest_fd = ends[0];
    making->child_fd = ends[1];
    /* No descriptors from inside: closing one could keep its receiver for as long as init likes (SO_LINGER).
     * Linux 6.16. */
    (void)setsockopt(making->guest_fd, SOL_SOCKET, SO_PASSRIGHTS, &(int){0}, sizeof(int));
    spawn->sandbox = making->create->sandbox;
    spawn->disk_bytes = making->create->disk_bytes;
    spawn->disk_inodes = making->create->disk_inodes;
    spawn->hostname = making->create->hostname;
    spawn->dirs = making->create->dirs;
    spawn->guest_fd = making->child_fd;
    spawn->uid_first = making->sandbox->uid_first;
    spawn->user = making->create->user;
    spawn->init_fd = making->maker->init_fd;
    spawn->cgroup_fd = making->entry.dir;
    memcpy(spawn->task_fds, making->entry.tasks, sizeof spawn->task_fds);
    spawn->task_count = making->entry.task_count;
    spawn->disk_fd = making->prepared->disk.mount_fd;
    if (spawn->disk_fd >= 0)
        spawn->flags |= WIRE_SPAWN_IMAGE;
    if ((making->create->flags & WIRE_CREATE_ROOT_RW) != 0)
        spawn->flags |= WIRE_SPAWN_ROOT_RW;
    if ((making->create->flags & WIRE_CREATE_TIMES) != 0)
        spawn->flags |= WIRE_SPAWN_TIMES;
    if ((making->create->flags & WIRE_CREATE_TERMINAL) != 0)
        spawn->flags |= WIRE_SPAWN_TERMINAL;
    if ((making->create->flags & WIRE_CREATE_NETWORK) != 0) {
        if (making->maker->airlock_fd < 0)
            return error_set(err, ERROR_UNSUPPORTED, 0, "there is no airlock for a sandbox with a network");
        spawn->flags |= WIRE_SPAWN_NETWORK;
        spawn->airlock_fd = making->maker->airlock_fd;
    }
    return 0;
}

static int ask_zygote(const struct making *making)
{
    struct wire_message message = {.type = WIRE_SPAWN};
    int fds[FD_PASS_MAX];
    size_t fd_count = spawn_to_message(&making->spawn, &message.spawn, fds);

    return link_send(making->maker->zygote_fd, &message, fds, fd_count);
}

/* What the child does not need before it has come half way is made while the zygote clones it. */
static int make_furniture(struct making *making, struct error *err)
{
    const struct wire_create *create = making->create;
    struct cgroups *cgroups = making->maker->cgroups;
    struct cgroup_limits limits = {
        .memory_bytes = create->memory_bytes,
        .processes = create->processes,
        .cpu_milli = create->cpu_milli,
        .cpu_weight = create->cpu_weight,
    };

    begin(making, STEP_LIMITS);
    int r = cgroup_furnish(cgroups, making->sandbox->cgroup, &limits, making->sandbox->uid_first, err);
    if (r == 0)
        r = cgroup_view(cgroups, making->sandbox->cgroup, &making->view_fd, err);
    if (r < 0)
        return r;
    begin(making, STEP_DEV);
    return dev_new(&making->dev_fd, err);
}

/* While the child builds its root. Where the kernel can't, the child makes its own; but one that was made and could not
 * be masked to its end is never handed over, whatever the errno. */
static int make_proc(struct making *making, const char **ret_place)
{
    /* The folder is empty: what is mounted over it later is not in our copy. */
    struct proc_covers covers = {.null_dir = making->dev_fd, .empty_dir = making->dev_fd, .empty = "shm"};

    *ret_place = "the pid namespace";
    _cleanup_fd_ int pidns = making->maker->proc_by_child ? -EOPNOTSUPP : proc_pidns_of(making->sandbox->pidfd);
    int r = pidns < 0 ? pidns : proc_new(pidns, &making->proc_fd);
    if (r == -EOPNOTSUPP)
        making->maker->proc_by_child = true;
    if (r == -EOPNOTSUPP || r == -ESRCH)
        return 0;
    return r < 0 ? r : proc_mask(making->proc_fd, &covers, ret_place);
}

/* Nothing untrusted runs without its limits: the child waits for this, and only then goes on to become init. */
static int furnish(struct making *making, struct error *err)
{
    struct wire_message message = {.type = WIRE_FURNISH, .furnish = {.sandbox = making->create->sandbox}};
    const char *place = "";

    begin(making, STEP_PROC);
    int r = make_proc(making, &place);
    if (r < 0)
        return error_set(err, ERROR_SYSTEM, -r, "%s", place);
    int fds[] = {making->dev_fd, making->view_fd, making->proc_fd};
    r = link_send(making->guest_fd, &message, fds, making->proc_fd >= 0 ? 3 : 2);
    /* One that has ended already says itself why, and where. */
    return r < 0 && r != -EPIPE ? error_set(err, ERROR_SYSTEM, -r, "handing over /dev") : 0;
}

static int hear_zygote(struct making *making, struct wire_spawned *ret_spawned)
{
    static uint8_t frame[WIRE_FRAME_MAX];
    struct wire_message message;
    int fds[FD_PASS_MAX];
    size_t fd_count = 0;
    int r = link_receive(making->maker->zygote_fd, WIRE_BY_ZYGOTE, WIRE_IN_RUNNING, frame, &message, fds, &fd_count);

    if (r <= 0 || message.type != WIRE_SPAWNED) {
        ret_spawned->step = STEP_ZYGOTE;
        return r < 0 ? r : -EPIPE;
    }
    if (fd_count == 1)
        making->sandbox->pidfd = fds[0];
    *ret_spawned = message.spawned;
    return -(int)message.spawned.error;
}

/* Without these a zygote can be started, but can't be what it should be. */
static const char *why_not_spawned(uint32_t step, int error)
{
    if (step == STEP_ZYGOTE && error == EPERM)
        return "the process that clones needs CAP_SETPCAP and CAP_SYS_ADMIN";
    if (step == STEP_ZYGOTE && error == EPIPE)
        return "the process that clones has ended";
    return step_words(step);
}

static int wait_for_child(struct making *making, struct error *err)
{
    struct wire_spawned spawned = {.step = STEP_NETWORK};

    begin(making, STEP_NETWORK);
    int r = hear_zygote(making, &spawned);
    begin(making, spawned.step < STEP_COUNT ? (enum step)spawned.step : STEP_CLONE);
    /* What was not cloning and mapping was waiting for the network namespace. */
    uint64_t known_ns = spawned.clone_ns + spawned.idmap_ns;
    uint64_t *network_ns = &making->progress->steps_ns[STEP_NETWORK];
    *network_ns = *network_ns > known_ns ? *network_ns - known_ns : 0;
    making->progress->steps_ns[STEP_CLONE] += spawned.clone_ns;
    making->progress->steps_ns[STEP_IDMAP] += spawned.idmap_ns;
    if (r == -EINVAL && spawned.step == STEP_IDMAP)
        return error_set(err, ERROR_UNSUPPORTED, EINVAL,
                         "the file system of a layer can't be idmapped; keep it on ext4, xfs or btrfs");
    return r < 0 ? error_set(err, ERROR_SYSTEM, -r, "%s", why_not_spawned(spawned.step, -r)) : 0;
}

static int spawn(struct making *making, struct error *err)
{
    struct error late = {0};

    begin(making, STEP_NETWORK);
    int r = ask_zygote(making);
    if (r < 0) {
        making->progress->step = STEP_ZYGOTE;
        return error_set(err, ERROR_SYSTEM, -r, "%s", why_not_spawned(STEP_ZYGOTE, -r));
    }
    int made = make_furniture(making, &late);
    enum step failed = making->progress->step;
    /* In any case: there may be a child to be ended. */
    r = wait_for_child(making, err);
    if (r == 0 && made < 0) {
        making->progress->step = failed;
        *err = late;
    }
    if (r < 0 || made < 0)
        return r < 0 ? r : made;
    return furnish(making, err);
}

static int take_steps(struct making *making, const int *fds, struct error *err)
{
    size_t folders = (making->create->flags & WIRE_CREATE_FOLDER) != 0 ? 1 : 0;
    int r = claim_ids(making, err);

    if (r == 0)
        r = make_cgroup(making, err);
    if (r == 0)
        r = open_template(making, fds, err);
    if (r == 0)
        r = open_dirs(making, fds + folders, err);
    if (r == 0)
        r = fill_spawn(making, err);
    return r < 0 ? r : spawn(making, err);
}

/* Should the zygote have ended in between, a child that we never heard of may still be in it. */
static void remove_cgroup(struct cgroups *cgroups, const char *name)
{
    for (int ms = 0; cgroup_remove(cgroups, name) < 0 && ms < UNDO_LIMIT_MS; ms++) {
        ignore_result(cgroup_kill(cgroups, name));
        (void)usleep(1000);
    }
}

static void undo(struct making *making)
{
    struct sandbox *sandbox = making->sandbox;

    if (sandbox->pidfd >= 0) {
        siginfo_t info;
        if (sys_pidfd_send_signal(sandbox->pidfd, SIGKILL) < 0)
            ignore_result(cgroup_kill(making->maker->cgroups, sandbox->cgroup));
        (void)waitid(P_PIDFD, (id_t)sandbox->pidfd, &info, WEXITED);
    }
    if (making->has_cgroup)
        remove_cgroup(making->maker->cgroups, sandbox->cgroup);
    if (making->has_ids)
        ids_release(making->maker->ids, sandbox->uid_first);
    close_fd(&making->guest_fd);
    sandbox_free(sandbox);
}

int sandbox_new(struct sandbox_maker *maker, const struct wire_create *create, const int *fds,
                struct prepared *prepared, struct sandbox_progress *progress, struct sandbox **ret_sandbox,
                int *ret_guest_fd, struct error *err)
{
    struct making making = {
        .maker = maker,
        .create = create,
        .prepared = prepared,
        .progress = progress,
        .sandbox = calloc(1, sizeof *making.sandbox),
        .spawn = {.usr_fd = -1, .disk_fd = -1, .policy_fd = -1, .airlock_fd = -1},
        .entry = {.dir = -1},
        .guest_fd = -1,
        .child_fd = -1,
        .dev_fd = -1,
        .view_fd = -1,
        .proc_fd = -1,
    };

    if (making.sandbox == NULL)
        return error_set(err, ERROR_SYSTEM, ENOMEM, "making a sandbox");
    making.sandbox->pidfd = -1;
    making.sandbox->watch = -1;
    making.sandbox->disk_fd = -1;
    making.sandbox->layer_fd = -1;
    making.sandbox->guest_fd = -1;
    making.sandbox->id = create->sandbox;
    int r = take_steps(&making, fds, err);
    if (r < 0)
        undo(&making);
    else
        begin(&making, STEP_NONE);
    template_close(&making.spawn);
    fd_close_many(making.spawn.dir_fds, making.spawn.dir_count);
    cgroup_entry_release(&making.entry);
    close_fd(&making.child_fd);
    close_fd(&making.dev_fd);
    close_fd(&making.view_fd);
    close_fd(&making.proc_fd);
    if (r < 0)
        return r;
    making.sandbox->disk_fd = TAKE_FD(prepared->disk.folder_fd);
    making.sandbox->layer_fd = TAKE_FD(prepared->policy.layer_fd);
    *ret_sandbox = making.sandbox;
    *ret_guest_fd = making.guest_fd;
    return 0;
}

void sandbox_end(struct sandbox_maker *maker, struct sandbox *sandbox)
{
    if (sandbox->state != SANDBOX_LIVE)
        return;
    sandbox->state = SANDBOX_ENDING;
    if (sandbox->disk_fd >= 0)
        disk_discard(sandbox->disk_fd);
    /* Not the last user: the file system ends with init, in its time and not in ours. */
    close_fd(&sandbox->disk_fd);
    /* Init's end takes its pid namespace along; a frozen cgroup still obeys cgroup.kill. */
    if (cgroup_kill(maker->cgroups, sandbox->cgroup) < 0)
        (void)sys_pidfd_send_signal(sandbox->pidfd, SIGKILL);
}

int sandbox_reap(struct sandbox *sandbox)
{
    siginfo_t info = {0};

    if (sandbox->state != SANDBOX_DEAD) {
        /* Somebody else reaped it: gone all the same. */
        bool reaped = waitid(P_PIDFD, (id_t)sandbox->pidfd, &info, WEXITED | WNOHANG) < 0 && errno == ECHILD;
        if (info.si_pid == 0 && !reaped)
            return -EBUSY;
        sandbox->wait_status = info.si_code == CLD_EXITED ? info.si_status << 8 : info.si_status;
        sandbox->state = SANDBOX_DEAD;
        close_fd(&sandbox->pidfd);
    }
    return 0;
}

int sandbox_remove(struct sandbox_maker *maker, struct sandbox *sandbox)
{
    if (cgroup_remove(maker->cgroups, sandbox->cgroup) < 0)
        return -EBUSY;
    ids_release(maker->ids, sandbox->uid_first);
    return 0;
}

void sandbox_free(struct sandbox *sandbox)
{
    if (sandbox == NULL)
        return;
    close_fd(&sandbox->pidfd);
    close_fd(&sandbox->disk_fd);
    close_fd(&sandbox->layer_fd);
    close_fd(&sandbox->guest_fd);
    free(sandbox);
}
