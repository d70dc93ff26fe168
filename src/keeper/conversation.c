#include "keeper/conversation.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/sys.h"
#include "keeper/core.h"
#include "keeper/folders.h"
#include "keeper/ids.h"
#include "keeper/request.h"
#include "wire/landlock.h"
#include "wire/link.h"

#include <string.h>
#include <sys/epoll.h>

enum { SANDBOXES_MAX = 16384, JOBS_MAX = 64, MB_SHIFT = 20 };

/* A client that does not read its answers is ended: nothing is queued on its behalf. */
int conversation_tell(struct keeper *keeper, const struct wire_message *message, const int *fds, size_t fd_count)
{
    return keeper->client_fd < 0 ? 0 : link_send(keeper->client_fd, message, fds, fd_count);
}

static int refuse(struct keeper *keeper, uint64_t sandbox, enum step step, const struct error *why)
{
    struct wire_message message = {
        .type = WIRE_REFUSED,
        .refused = {.sandbox = sandbox,
                    .step = step,
                    .error = (uint32_t)(why->err != 0 ? why->err : EINVAL),
                    .detail = wire_str(why->message)},
    };

    return conversation_tell(keeper, &message, NULL, 0);
}

/*
 * The zygote cleans up once we are gone, not before: it would take the CPU that we need to end on, and so would an init
 * that hears of our end from its link.
 */
static int order_cleaning(struct keeper *keeper, const struct sandbox *sandbox, int guest_fd, struct error *err)
{
    struct wire_message message = {
        .type = WIRE_CLEAN,
        .clean = {.instance = wire_str(keeper->instance.id), .cgroup = wire_str(sandbox->cgroup)},
    };
    _cleanup_fd_ int self = sys_pidfd_open(getpid());
    int fds[] = {self, keeper->instance.lock_fd, ids_claim_fd(keeper->maker.ids), guest_fd, sandbox->disk_fd};

    if (self < 0)
        return error_errno(err, "opening a pidfd of our own");
    int r = link_send(keeper->maker.zygote_fd, &message, fds, sandbox->disk_fd >= 0 ? 5 : 4);
    keeper->ordered = r == 0;
    return r < 0 ? error_set(err, ERROR_SYSTEM, -r, "leaving the rest to the zygote") : 0;
}

static int make(struct keeper *keeper, const struct wire_create *create, const int *fds, struct prepared *prepared,
                struct sandbox_progress *progress)
{
    struct sandbox *sandbox = NULL;
    _cleanup_fd_ int guest_fd = -1;
    struct error err = {0};

    int r = sandbox_new(&keeper->maker, create, fds, prepared, progress, &sandbox, &guest_fd, &err);
    if (r < 0 || sandbox == NULL)
        return refuse(keeper, create->sandbox, progress->step, &err);

    struct wire_message message = {
        .type = WIRE_CREATED,
        .created = {.sandbox = create->sandbox,
                    .uid_first = sandbox->uid_first,
                    .steps_ns = {.data = (const uint8_t *)progress->steps_ns, .count = STEP_COUNT}},
    };
    registry_add(&keeper->registry, sandbox);
    r = keeper_watch_sandbox(keeper, sandbox, &err);
    if (r == 0 && keeper->single)
        r = order_cleaning(keeper, sandbox, guest_fd, &err);
    if (r < 0) {
        keeper_end_now(keeper, sandbox);
        keeper_forget(keeper, sandbox);
        return refuse(keeper, create->sandbox, STEP_CGROUP, &err);
    }
    sandbox->is_told = true;
    r = conversation_tell(keeper, &message, &guest_fd, 1);
    if (keeper->service != NULL)
        sandbox->guest_fd = TAKE_FD(guest_fd);
    return r;
}

static bool is_being_made(const struct keeper *keeper, uint64_t id)
{
    for (const struct job *job = NULL; (job = jobs_next(&keeper->jobs, JOB_CREATE, job)) != NULL;) {
        if (job->message.create.sandbox == id)
            return true;
    }
    return false;
}

/* The descriptors are the job's when there is no error. */
static int start_job(struct keeper *keeper, bool wants_image, const struct wire_create *create, int *fds,
                     size_t fd_count, struct error *err)
{
    struct job *job = NULL;

    if (jobs_count(&keeper->jobs, JOB_CREATE) >= JOBS_MAX)
        return error_set(err, ERROR_LIMIT, EAGAIN, "%d sandboxes are being prepared already", JOBS_MAX);
    int r = job_new_create(wants_image, keeper->frame, fds, fd_count, &job, err);
    if (r < 0)
        return r;
    /* It was decoded anew from what the client had sent; whose the folders are it could not say. What may be written
     * was checked, and is as it was. */
    job->message.create.dir_owner_uid = create->dir_owner_uid;
    job->message.create.dir_owner_gid = create->dir_owner_gid;
    keeper_add_job(keeper, job);
    return 0;
}

int conversation_refuse_job(struct keeper *keeper, const struct job *job, const struct error *why)
{
    return refuse(keeper, job->message.create.sandbox, job->wants_image ? STEP_IMAGE : STEP_POLICY, why);
}

static int make_prepared(struct keeper *keeper, struct job *job)
{
    struct sandbox_progress progress = {.step_start_ns = job->start_ns};
    struct prepared prepared = PREPARED_EMPTY;
    struct error err = {0};
    int r = job_take(job, &prepared, &progress.step, &err);

    r = r < 0 ? refuse(keeper, job->message.create.sandbox, progress.step, &err)
              : make(keeper, &job->message.create, job->fds, &prepared, &progress);
    prepared_release(&prepared);
    return r;
}

int conversation_job_ready(struct keeper *keeper, struct source *source)
{
    struct job *job = SOURCE_OWNER(struct job, source);
    struct sandbox *reclaimed = job->kind == JOB_RECLAIM ? job->sandbox : NULL;
    int r = job->kind == JOB_CREATE ? make_prepared(keeper, job) : 0;

    keeper_remove_job(keeper, job);
    if (reclaimed != NULL)
        r = keeper_remove_sandbox(keeper, reclaimed);
    return r < 0 ? r : 1;
}

/* A writable root needs attributes, which not every tmpfs has. */
static bool wants_image(const struct wire_create *create)
{
    if ((create->flags & WIRE_CREATE_IMAGE) != 0)
        return true;
    return (create->flags & WIRE_CREATE_ROOT_RW) != 0 && create->disk_bytes >= DISK_IMAGE_MIN_BYTES &&
           !disk_tmpfs_has_attributes();
}

/* A list of programs is the kernel's to hold, or it is nobody's. */
static int check_landlock(struct error *err)
{
    int version = landlock_version();

    if (version >= LANDLOCK_VERSION_OF_REFER)
        return 0;
    return error_set(err, ERROR_UNSUPPORTED, version < 0 ? -version : EOPNOTSUPP,
                     "programs can't be limited to a list here: this kernel has no Landlock");
}

/* A daemon's client says names, any other has descriptors. */
static int check_create(struct keeper *keeper, struct wire_create *create, uint64_t *dir_flags, int *fds,
                        size_t *fd_count, struct error *err)
{
    int r = 0;

    if (keeper->disk_max_bytes != 0 && create->disk_bytes > keeper->disk_max_bytes)
        r = error_set(err, ERROR_LIMIT, EPERM, "the disk is larger than the configuration permits (%llu MiB)",
                      (unsigned long long)(keeper->disk_max_bytes >> MB_SHIFT));
    else if (keeper->folders != NULL && *fd_count > 0)
        r = error_set(err, ERROR_DENIED, EPERM, "folders are named here, not handed over");
    else if (keeper->folders != NULL)
        r = folders_resolve(keeper->folders, create, dir_flags, fds, fd_count, err);
    else if (create->template_name.length > 0 || create->shares.count > 0)
        r = error_set(err, ERROR_INVALID, 0, "there is no configuration that names a template or a share");
    return r < 0 ? r : request_check_create(create, *fd_count, err);
}

static int check_room(struct keeper *keeper, const struct wire_create *create, struct error *err)
{
    if (registry_find(&keeper->registry, create->sandbox) != NULL || is_being_made(keeper, create->sandbox))
        return error_set(err, ERROR_INVALID, EEXIST, "this sandbox exists");
    if (keeper->registry.count + jobs_count(&keeper->jobs, JOB_CREATE) >= SANDBOXES_MAX)
        return error_set(err, ERROR_LIMIT, EAGAIN, "there are %d sandboxes", SANDBOXES_MAX);
    return 0;
}

/* 1 when a job has taken the descriptors. */
static int create(struct keeper *keeper, struct wire_create *create, int *fds, size_t *fd_count)
{
    struct sandbox_progress progress = {.step = STEP_REQUEST, .step_start_ns = clock_now_ns()};
    struct prepared nothing = PREPARED_EMPTY;
    uint64_t dir_flags[WIRE_DIRS_MAX];
    struct error err = {0};

    int r = check_create(keeper, create, dir_flags, fds, fd_count, &err);
    if (r == 0 && create->only.count > 0)
        r = check_landlock(&err);
    if (r == 0)
        r = check_room(keeper, create, &err);
    if (r < 0)
        return refuse(keeper, create->sandbox, STEP_REQUEST, &err);
    bool has_image = wants_image(create);
    if (!has_image && create->only.count == 0)
        return make(keeper, create, fds, &nothing, &progress);
    r = start_job(keeper, has_image, create, fds, *fd_count, &err);
    return r < 0 ? refuse(keeper, create->sandbox, has_image ? STEP_IMAGE : STEP_POLICY, &err) : 1;
}

static int limit(struct keeper *keeper, struct sandbox *sandbox, const struct wire_limits *limits, struct error *err)
{
    struct cgroup_limits wanted = {
        .memory_bytes = limits->memory_bytes,
        .processes = limits->processes,
        .cpu_milli = limits->cpu_milli,
        .cpu_weight = limits->cpu_weight,
    };
    int r = request_check_limits(limits, err);

    return r < 0 ? r : cgroup_limit(keeper->maker.cgroups, sandbox->cgroup, &wanted, err);
}

static int tell_usage(struct keeper *keeper, const struct sandbox *sandbox)
{
    struct cgroup_usage usage;

    cgroup_usage(keeper->maker.cgroups, sandbox->cgroup, &usage);
    struct wire_message message = {
        .type = WIRE_USAGE,
        .usage = {.sandbox = sandbox->id,
                  .cpu_us = usage.cpu_us,
                  .memory_bytes = usage.memory_bytes,
                  .memory_peak_bytes = usage.memory_peak_bytes,
                  .processes = usage.processes,
                  .processes_peak = usage.processes_peak,
                  .processes_refused = usage.processes_refused,
                  .oom_kills = usage.oom_kills},
    };
    return conversation_tell(keeper, &message, NULL, 0);
}

static int done(struct keeper *keeper, uint64_t sandbox, enum wire_type request, int r, const struct error *err)
{
    struct wire_message message = {.type = WIRE_DONE, .done = {.sandbox = sandbox, .request = request}};

    return r < 0 ? refuse(keeper, sandbox, STEP_REQUEST, err) : conversation_tell(keeper, &message, NULL, 0);
}

/* The sandbox a request is about: all of them start with its id. */
static int handle_for_sandbox(struct keeper *keeper, const struct wire_message *message)
{
    uint64_t id = message->destroy.sandbox;
    struct sandbox *sandbox = registry_find(&keeper->registry, id);
    struct error err = {0};

    if (sandbox == NULL || sandbox->state == SANDBOX_DEAD) {
        (void)error_set(&err, ERROR_NOT_FOUND, ENOENT, "no such sandbox");
        return refuse(keeper, id, STEP_REQUEST, &err);
    }
    switch ((int)message->type) { /* only some of them come here */
    case WIRE_DESTROY:
        sandbox_end(&keeper->maker, sandbox);
        return 0;
    case WIRE_LIMITS:
        return done(keeper, id, WIRE_LIMITS, limit(keeper, sandbox, &message->limits, &err), &err);
    case WIRE_FREEZE:
        return done(keeper, id, WIRE_FREEZE,
                    cgroup_freeze(keeper->maker.cgroups, sandbox->cgroup, message->freeze.frozen != 0, &err), &err);
    case WIRE_MEASURE:
        return tell_usage(keeper, sandbox);
    default:
        return -EBADMSG;
    }
}

static int watch_client(struct keeper *keeper, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.ptr = &keeper->client};

    return epoll_ctl(keeper->epoll_fd, EPOLL_CTL_MOD, keeper->client_fd, &event) < 0 ? -errno : 0;
}

/* As much as the client has room for; then it may speak. */
static int adopt(struct keeper *keeper)
{
    int r = adoption_continue(keeper->client_fd, &keeper->registry);

    if (r <= 0)
        return r < 0 ? r : 1;
    keeper->adoption = ADOPTION_DONE;
    r = watch_client(keeper, EPOLLIN);
    return r < 0 ? r : 1;
}

/* Of the service, not of a sandbox. */
static int hand_on(struct keeper *keeper, const struct wire_message *message)
{
    int r = keeper->service != NULL ? keeper->service->heard(keeper->service->context, message) : -EBADMSG;

    if (r < 0 || message->type != WIRE_ATTACH)
        return r;
    keeper->adoption = ADOPTION_GOES_ON;
    return watch_client(keeper, EPOLLOUT);
}

static int handle(struct keeper *keeper, struct wire_message *message, int *fds, size_t *fd_count)
{
    switch ((int)message->type) { /* the table permits no others */
    case WIRE_CREATE:
        return create(keeper, &message->create, fds, fd_count);
    case WIRE_ATTACH:
    case WIRE_READY:
    case WIRE_UNABLE:
    case WIRE_RELOADED:
    case WIRE_DRAINED:
    case WIRE_PONG:
        return hand_on(keeper, message);
    default:
        return handle_for_sandbox(keeper, message);
    }
}

int conversation_ready(struct keeper *keeper, struct source *source)
{
    (void)source;
    struct wire_message message;
    int fds[FD_PASS_MAX];
    size_t fd_count = 0;

    if (keeper->adoption == ADOPTION_GOES_ON)
        return adopt(keeper);
    enum wire_state state = keeper->adoption == ADOPTION_DONE ? WIRE_IN_RUNNING : WIRE_IN_STARTING;
    memset(keeper->frame, 0, WIRE_HEADER_SIZE);
    int r = link_receive(keeper->client_fd, WIRE_BY_CLIENT, state, keeper->frame, &message, fds, &fd_count);
    if (r == -EBADMSG && state == WIRE_IN_STARTING && wire_is_other_version(keeper->frame, WIRE_HEADER_SIZE))
        return -EPROTONOSUPPORT;
    if (r <= 0)
        return r == -EAGAIN ? 1 : r;
    r = handle(keeper, &message, fds, &fd_count);
    if (r <= 0)
        fd_close_many(fds, fd_count);
    return r < 0 ? r : 1;
}
