#include "keeper/keeper.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/sys.h"
#include "keeper/instance.h"
#include "keeper/janitor.h"
#include "keeper/job.h"
#include "keeper/registry.h"
#include "keeper/request.h"
#include "keeper/sandbox.h"
#include "wire/landlock.h"
#include "wire/link.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum {
    SANDBOXES_MAX = 16384,
    JOBS_MAX = 64,
    EVENTS_AT_ONCE = 64,
    RETRY_MS = 5,      /* how soon a removal that was too early is tried again */
    MEMORY_LOOKS = 40, /* how often to look for a kill after the kernel said that memory ran out */
};

struct keeper {
    struct source client;
    struct source memory;
    struct instance instance;
    struct sandbox_maker maker;
    int client_fd;
    int epoll_fd;
    int zygote_pidfd;
    bool watching_memory;
    int memory_looks; /* v1 says so before it has killed and counted: look again */
    size_t removing;  /* dead, but something of them is still busy */
    struct registry registry;
    struct job *jobs;
    size_t job_count;
    uint8_t frame[WIRE_FRAME_MAX];
};

static int sandbox_ready(struct keeper *keeper, struct source *source);
static int memory_ready(struct keeper *keeper, struct source *source);
static int job_ready(struct keeper *keeper, struct source *source);

static int watch(struct keeper *keeper, int fd, struct source *source)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = source};

    return epoll_ctl(keeper->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

static void forget(struct keeper *keeper, struct sandbox *sandbox)
{
    registry_remove(&keeper->registry, sandbox);
    sandbox_free(sandbox);
}

/* A client that does not read its answers is ended: nothing is queued on its behalf. */
static int tell(struct keeper *keeper, const struct wire_message *message, const int *fds, size_t fd_count)
{
    return link_send(keeper->client_fd, message, fds, fd_count);
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

    return tell(keeper, &message, NULL, 0);
}

static int watch_sandbox(struct keeper *keeper, struct sandbox *sandbox, struct error *err)
{
    sandbox->source.ready = sandbox_ready;
    int r = watch(keeper, sandbox->pidfd, &sandbox->source);

    if (r < 0)
        return error_set(err, ERROR_SYSTEM, -r, "watching the sandbox");
    r = cgroup_watch(keeper->maker.cgroups, sandbox->cgroup, err);
    if (r == 0 && !keeper->watching_memory) {
        keeper->memory.ready = memory_ready;
        r = watch(keeper, cgroups_event_fd(keeper->maker.cgroups), &keeper->memory);
        keeper->watching_memory = r == 0;
    }
    return r;
}

/* End it and wait until nothing is left. False when something was still there after two seconds. */
static bool end_now(struct keeper *keeper, struct sandbox *sandbox)
{
    int r = -EBUSY;

    sandbox_end(&keeper->maker, sandbox);
    for (int attempt = 0; attempt < 2000 && (r = sandbox_reap(&keeper->maker, sandbox)) < 0; attempt++)
        (void)usleep(1000);
    return r == 0;
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
    r = watch_sandbox(keeper, sandbox, &err);
    if (r < 0) {
        end_now(keeper, sandbox);
        forget(keeper, sandbox);
        return refuse(keeper, create->sandbox, STEP_CGROUP, &err);
    }
    return tell(keeper, &message, &guest_fd, 1);
}

static bool is_being_made(const struct keeper *keeper, uint64_t id)
{
    for (const struct job *job = keeper->jobs; job != NULL; job = job->next) {
        if (job->frame != NULL && job->message.create.sandbox == id)
            return true;
    }
    return false;
}

static int add_job(struct keeper *keeper, struct job *job, struct error *err)
{
    job->source.ready = job_ready;
    int r = watch(keeper, job->helper.socket, &job->source);
    if (r < 0)
        return error_set(err, ERROR_SYSTEM, -r, "watching a helper");
    job->next = keeper->jobs;
    keeper->jobs = job;
    keeper->job_count++;
    return 0;
}

static void remove_job(struct keeper *keeper, struct job *job)
{
    struct job **at = &keeper->jobs;

    while (*at != job)
        at = &(*at)->next;
    *at = job->next;
    keeper->job_count--;
    /* Closing it is not enough: helpers started meanwhile have a copy, and the entry would live on with it. */
    (void)epoll_ctl(keeper->epoll_fd, EPOLL_CTL_DEL, job->helper.socket, NULL);
    job_free(job);
}

/* The descriptors are the job's when there is no error. */
static int start_job(struct keeper *keeper, bool wants_image, int *fds, size_t fd_count, struct error *err)
{
    struct job *job = NULL;

    if (keeper->job_count >= JOBS_MAX)
        return error_set(err, ERROR_LIMIT, EAGAIN, "%d helpers are at work already", JOBS_MAX);
    int r = job_new_create(keeper->maker.state_fd, wants_image, keeper->frame, fds, fd_count, &job, err);
    if (r < 0)
        return r;
    r = add_job(keeper, job, err);
    if (r < 0) {
        job->fd_count = 0;
        job_free(job);
    }
    return r;
}

static void let_go_of_disk(struct keeper *keeper, struct sandbox *sandbox)
{
    struct job *job = sandbox->disk_fd >= 0 ? job_new_discard(&sandbox->disk_fd) : NULL;
    struct error err;

    if (job != NULL && add_job(keeper, job, &err) < 0)
        job_free(job);
}

static int job_ready(struct keeper *keeper, struct source *source)
{
    struct job *job = SOURCE_OWNER(struct job, source);
    struct sandbox_progress progress = {.step_start_ns = job->start_ns};
    struct prepared prepared = PREPARED_EMPTY;
    struct error err = {0};
    int r = 1;

    if (job->frame != NULL) {
        if (job_take(job, &prepared, &progress.step, &err) < 0)
            r = refuse(keeper, job->message.create.sandbox, progress.step, &err);
        else
            r = make(keeper, &job->message.create, job->fds, &prepared, &progress);
        prepared_release(&prepared);
    }
    remove_job(keeper, job);
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

/* 1 when a job has taken the descriptors. */
static int create(struct keeper *keeper, const struct wire_create *create, int *fds, size_t fd_count)
{
    struct sandbox_progress progress = {.step = STEP_REQUEST, .step_start_ns = clock_now_ns()};
    struct prepared nothing = PREPARED_EMPTY;
    struct error err = {0};

    int r = request_check_create(create, fd_count, &err);
    if (r == 0 && create->only.count > 0)
        r = check_landlock(&err);
    if (r == 0 && (registry_find(&keeper->registry, create->sandbox) != NULL || is_being_made(keeper, create->sandbox)))
        r = error_set(&err, ERROR_INVALID, EEXIST, "this sandbox exists");
    if (r == 0 && keeper->registry.count + keeper->job_count >= SANDBOXES_MAX)
        r = error_set(&err, ERROR_LIMIT, EAGAIN, "there are %d sandboxes", SANDBOXES_MAX);
    if (r < 0)
        return refuse(keeper, create->sandbox, STEP_REQUEST, &err);
    bool has_image = wants_image(create);
    if (!has_image && create->only.count == 0)
        return make(keeper, create, fds, &nothing, &progress);
    r = start_job(keeper, has_image, fds, fd_count, &err);
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
    return tell(keeper, &message, NULL, 0);
}

static int done(struct keeper *keeper, uint64_t sandbox, enum wire_type request, int r, const struct error *err)
{
    struct wire_message message = {.type = WIRE_DONE, .done = {.sandbox = sandbox, .request = request}};

    return r < 0 ? refuse(keeper, sandbox, STEP_REQUEST, err) : tell(keeper, &message, NULL, 0);
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

static int client_ready(struct keeper *keeper, struct source *source)
{
    (void)source;
    struct wire_message message;
    int fds[FD_PASS_MAX];
    size_t fd_count = 0;
    int r = link_receive(keeper->client_fd, WIRE_BY_CLIENT, WIRE_IN_RUNNING, keeper->frame, &message, fds, &fd_count);

    if (r <= 0)
        return r == -EAGAIN ? 1 : r;
    if (message.type == WIRE_CREATE)
        r = create(keeper, &message.create, fds, fd_count);
    else
        r = handle_for_sandbox(keeper, &message);
    if (r <= 0)
        fd_close_many(fds, fd_count);
    return r < 0 ? r : 1;
}

static int finish(struct keeper *keeper, struct sandbox *sandbox)
{
    bool was_dead = sandbox->state == SANDBOX_DEAD;
    bool by_itself = sandbox->state == SANDBOX_LIVE;
    struct wire_message message = {.type = WIRE_GONE, .gone = {.sandbox = sandbox->id}};

    if (by_itself) {
        let_go_of_disk(keeper, sandbox);
        message.gone.oom_kills = cgroup_oom_kills(keeper->maker.cgroups, sandbox->cgroup);
        message.gone.processes_refused = cgroup_processes_refused(keeper->maker.cgroups, sandbox->cgroup);
    }
    /* Closing it is not enough: the zygote may still hold a copy for a moment, and the entry would live on with it. */
    if (!was_dead)
        (void)epoll_ctl(keeper->epoll_fd, EPOLL_CTL_DEL, sandbox->pidfd, NULL);
    int r = sandbox_reap(&keeper->maker, sandbox);
    if (r < 0) {
        if (!was_dead && sandbox->state == SANDBOX_DEAD)
            keeper->removing++;
        return sandbox->state == SANDBOX_DEAD ? 0 : watch(keeper, sandbox->pidfd, &sandbox->source);
    }
    if (was_dead)
        keeper->removing--;
    message.gone.wait_status = (uint32_t)sandbox->wait_status;
    forget(keeper, sandbox);
    return tell(keeper, &message, NULL, 0);
}

static int sandbox_ready(struct keeper *keeper, struct source *source)
{
    int r = finish(keeper, SOURCE_OWNER(struct sandbox, source));

    return r < 0 ? r : 1;
}

static int retry_removals(struct keeper *keeper)
{
    struct sandbox *next;

    for (struct sandbox *sandbox = registry_next(&keeper->registry, NULL); sandbox != NULL; sandbox = next) {
        next = registry_next(&keeper->registry, sandbox);
        int r = sandbox->state == SANDBOX_DEAD ? finish(keeper, sandbox) : 0;
        if (r < 0)
            return r;
    }
    return 0;
}

static int report_memory(struct keeper *keeper)
{
    for (struct sandbox *sandbox = NULL; (sandbox = registry_next(&keeper->registry, sandbox)) != NULL;) {
        uint32_t kills = sandbox->state == SANDBOX_LIVE ? cgroup_oom_kills(keeper->maker.cgroups, sandbox->cgroup) : 0;
        if (kills <= sandbox->oom_kills)
            continue;
        sandbox->oom_kills = kills;
        keeper->memory_looks = 0;
        struct wire_message message = {.type = WIRE_OOM, .oom = {.sandbox = sandbox->id, .kills = kills}};
        int r = tell(keeper, &message, NULL, 0);
        if (r < 0)
            return r;
    }
    return 0;
}

static int memory_ready(struct keeper *keeper, struct source *source)
{
    (void)source;
    if (cgroups_take_events(keeper->maker.cgroups))
        keeper->memory_looks = MEMORY_LOOKS;
    return 1;
}

int keeper_dispatch(struct keeper *keeper, struct error *err)
{
    struct epoll_event events[EVENTS_AT_ONCE];
    int n = epoll_wait(keeper->epoll_fd, events, EVENTS_AT_ONCE, 0);
    int r = n < 0 && errno != EINTR ? -errno : 0;

    for (int i = 0; i < n && r >= 0; i++) {
        struct source *source = events[i].data.ptr;
        r = source->ready(keeper, source);
        if (r == 0)
            return 0;
    }
    if (r >= 0 && keeper->memory_looks > 0) {
        keeper->memory_looks--;
        r = report_memory(keeper);
    }
    if (r >= 0 && keeper->removing > 0)
        r = retry_removals(keeper);
    return r < 0 ? error_set(err, ERROR_PROTOCOL, -r, "serving the client") : 1;
}

int keeper_fd(const struct keeper *keeper)
{
    return keeper->epoll_fd;
}

int keeper_wait_ms(const struct keeper *keeper)
{
    return keeper->removing > 0 || keeper->memory_looks > 0 ? RETRY_MS : -1;
}

static struct sandbox *only_sandbox(struct keeper *keeper)
{
    struct sandbox *sandbox = keeper->registry.count == 1 ? registry_next(&keeper->registry, NULL) : NULL;

    return sandbox != NULL && sandbox->state == SANDBOX_LIVE ? sandbox : NULL;
}

int keeper_leave(struct keeper *keeper, struct error *err)
{
    const struct sandbox *sandbox = only_sandbox(keeper);

    if (sandbox == NULL)
        return error_set(err, ERROR_INVALID, 0, "there is not exactly one live sandbox");
    struct wire_message message = {
        .type = WIRE_CLEAN,
        .clean = {.instance = wire_str(keeper->instance.id), .cgroup = wire_str(sandbox->cgroup)},
    };
    int fds[] = {sandbox->pidfd, keeper->instance.lock_fd, ids_claim_fd(keeper->maker.ids), sandbox->disk_fd};
    int r = link_send(keeper->maker.zygote_fd, &message, fds, sandbox->disk_fd >= 0 ? 4 : 3);
    return r < 0 ? error_set(err, ERROR_SYSTEM, -r, "leaving the rest to the zygote") : 0;
}

static int open_state(const char *path, int *ret_fd, struct error *err)
{
    struct stat st;
    _cleanup_fd_ int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

    if (fd < 0 && errno == ENOENT) {
        if (mkdir(path, 0700) < 0)
            return error_errno(err, "making the state folder %s", path);
        fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    }
    if (fd < 0 || fstat(fd, &st) < 0)
        return error_errno(err, "opening the state folder %s", path);
    if (st.st_uid != 0 || (st.st_mode & 077) != 0)
        return error_set(err, ERROR_DENIED, EPERM,
                         "the state folder %s must be root's alone: chown root:root %s && chmod 0700 %s", path, path,
                         path);
    *ret_fd = TAKE_FD(fd);
    return 0;
}

static int set_up(struct keeper *keeper, const struct keeper_options *options, struct error *err)
{
    int r = instance_init(&keeper->instance, err);

    if (r == 0)
        r = cgroups_new(&keeper->maker.cgroups, err);
    if (r == 0)
        r = ids_new(keeper->instance.run_fd, options->id_first, options->id_last, &keeper->maker.ids, err);
    if (r == 0)
        r = open_state(options->state, &keeper->maker.state_fd, err);
    if (r < 0)
        return r;
    /* A single run does it afterwards, when nobody waits. */
    if (!options->single)
        janitor_sweep(&keeper->instance, keeper->maker.cgroups);
    keeper->maker.instance_id = keeper->instance.id;
    if (fcntl(keeper->client_fd, F_SETFL, O_NONBLOCK) < 0)
        return error_errno(err, "preparing the conversation");
    keeper->client.ready = client_ready;
    keeper->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (keeper->epoll_fd < 0 || watch(keeper, keeper->client_fd, &keeper->client) < 0)
        return error_errno(err, "making the keeper's event loop");
    return 0;
}

int keeper_new(const struct keeper_options *options, struct keeper **ret_keeper, struct error *err)
{
    struct keeper *keeper = calloc(1, sizeof *keeper);

    if (keeper == NULL)
        return error_set(err, ERROR_SYSTEM, ENOMEM, "starting the keeper");
    keeper->instance = INSTANCE_EMPTY;
    keeper->epoll_fd = -1;
    keeper->client_fd = options->client_fd;
    keeper->zygote_pidfd = options->zygote_pidfd;
    keeper->maker = (struct sandbox_maker){
        .state_fd = -1,
        .host_layer_fd = -1,
        .init_fd = options->init_fd,
        .zygote_fd = options->zygote_fd,
        .single = options->single,
    };
    int r = set_up(keeper, options, err);
    if (r < 0) {
        keeper_free(keeper);
        return r;
    }
    *ret_keeper = keeper;
    return 0;
}

/* End what is left, and wait for it: the instance may only go when nothing carries its id. */
static bool end_all(struct keeper *keeper)
{
    struct sandbox *sandbox = NULL;
    bool clean = true;

    while ((sandbox = registry_next(&keeper->registry, sandbox)) != NULL)
        sandbox_end(&keeper->maker, sandbox);
    while ((sandbox = registry_next(&keeper->registry, NULL)) != NULL) {
        clean = end_now(keeper, sandbox) && clean;
        forget(keeper, sandbox);
    }
    return clean;
}

void keeper_free(struct keeper *keeper)
{
    if (keeper == NULL)
        return;
    while (keeper->jobs != NULL)
        remove_job(keeper, keeper->jobs);
    /* Should something be left, the instance's name stays, so that a sweep finds it. */
    if (keeper->registry.count > 0 && !end_all(keeper))
        close_fd(&keeper->instance.lock_fd);
    close_fd(&keeper->maker.zygote_fd);
    if (keeper->zygote_pidfd >= 0) {
        siginfo_t info;
        (void)sys_pidfd_send_signal(keeper->zygote_pidfd, SIGKILL);
        (void)waitid(P_PIDFD, (id_t)keeper->zygote_pidfd, &info, WEXITED);
        close_fd(&keeper->zygote_pidfd);
    }
    ids_free(keeper->maker.ids);
    cgroups_free(keeper->maker.cgroups);
    close_fd(&keeper->maker.state_fd);
    close_fd(&keeper->maker.host_layer_fd);
    close_fd(&keeper->epoll_fd);
    instance_release(&keeper->instance);
    free(keeper);
}
