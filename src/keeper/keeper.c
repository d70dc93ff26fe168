#include "keeper/keeper.h"

#include "base/cleanup.h"
#include "base/sys.h"
#include "keeper/conversation.h"
#include "keeper/core.h"
#include "keeper/janitor.h"
#include "keeper/state.h"
#include "wire/link.h"

#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>

enum {
    EVENTS_AT_ONCE = 64,
    RETRY_MS = 5, /* how soon a removal that was too early is tried again */
};

static int sandbox_ready(struct keeper *keeper, struct source *source);

int keeper_watch(struct keeper *keeper, int fd, struct source *source)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = source};

    return epoll_ctl(keeper->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

void keeper_forget(struct keeper *keeper, struct sandbox *sandbox)
{
    registry_remove(&keeper->registry, sandbox);
    memory_forget(&keeper->memory, sandbox);
    sandbox_free(sandbox);
}

int keeper_watch_sandbox(struct keeper *keeper, struct sandbox *sandbox, struct error *err)
{
    sandbox->source.ready = sandbox_ready;
    int r = keeper_watch(keeper, sandbox->pidfd, &sandbox->source);

    if (r < 0)
        return error_set(err, ERROR_SYSTEM, -r, "watching the sandbox");
    return memory_watch(keeper, sandbox, err);
}

bool keeper_end_now(struct keeper *keeper, struct sandbox *sandbox)
{
    int r = -EBUSY;

    sandbox_end(&keeper->maker, sandbox);
    /* The zygote may still hold a copy: closing alone would leave it in there. */
    if (sandbox->pidfd >= 0)
        (void)epoll_ctl(keeper->epoll_fd, EPOLL_CTL_DEL, sandbox->pidfd, NULL);
    for (int attempt = 0; attempt < 2000 && r < 0; attempt++) {
        r = sandbox_reap(sandbox);
        if (r == 0) {
            cgroup_reclaim(keeper->maker.cgroups, sandbox->cgroup);
            r = sandbox_remove(&keeper->maker, sandbox);
        }
        if (r < 0)
            (void)usleep(1000);
    }
    return r == 0;
}

void keeper_add_job(struct keeper *keeper, struct job *job)
{
    job->source.ready = conversation_job_ready;
    jobs_add(&keeper->jobs, job);
}

void keeper_remove_job(struct keeper *keeper, struct job *job)
{
    jobs_remove(&keeper->jobs, job);
    /* Closing it is not enough: helpers started meanwhile have a copy, and the entry would live on with it. */
    if (job->helper.socket >= 0)
        (void)epoll_ctl(keeper->epoll_fd, EPOLL_CTL_DEL, job->helper.socket, NULL);
    job_free(job);
}

int keeper_start_jobs(struct keeper *keeper)
{
    struct job *job;
    int r = 0;

    while (r >= 0 && (job = jobs_take(&keeper->jobs)) != NULL) {
        struct error err = {0};
        int started = job_start(job, keeper->maker.state_fd, &err);
        if (started == 0 && (started = keeper_watch(keeper, job->helper.socket, &job->source)) < 0)
            (void)error_set(&err, ERROR_SYSTEM, -started, "watching a helper");
        if (started == 0)
            continue;
        if (job->kind != JOB_CREATE) {
            /* Nobody waits, and want of memory or descriptors passes. */
            helper_release(&job->helper);
            jobs_put_back(&keeper->jobs, job);
            break;
        }
        r = conversation_refuse_job(keeper, job, &err);
        keeper_remove_job(keeper, job);
    }
    return r;
}

static void let_go_of_disk(struct keeper *keeper, struct sandbox *sandbox)
{
    struct job *job = sandbox->disk_fd >= 0 ? job_new_discard(&sandbox->disk_fd) : NULL;

    if (job != NULL)
        keeper_add_job(keeper, job);
}

static int tell_gone(struct keeper *keeper, struct sandbox *sandbox)
{
    struct wire_message message = {.type = WIRE_GONE,
                                   .gone = {.sandbox = sandbox->id,
                                            .oom_kills = sandbox->last_oom_kills,
                                            .processes_refused = sandbox->last_processes_refused,
                                            .wait_status = (uint32_t)sandbox->wait_status}};
    bool is_told = sandbox->is_told;

    sandbox->is_told = false;
    return is_told ? conversation_tell(keeper, &message, NULL, 0) : 0;
}

int keeper_remove_sandbox(struct keeper *keeper, struct sandbox *sandbox)
{
    if (sandbox_remove(&keeper->maker, sandbox) < 0) {
        if (!sandbox->is_dying) {
            sandbox->is_dying = true;
            sandbox->next_dying = keeper->dying;
            keeper->dying = sandbox;
        }
        return 0;
    }
    int r = tell_gone(keeper, sandbox);
    keeper_forget(keeper, sandbox);
    return r;
}

/* The client need not wait until a helper has given the memory back. */
static int reclaim(struct keeper *keeper, struct sandbox *sandbox)
{
    struct job *job = job_new_reclaim(keeper->maker.cgroups, sandbox);

    if (job == NULL)
        return keeper_remove_sandbox(keeper, sandbox);
    keeper_add_job(keeper, job);
    return tell_gone(keeper, sandbox);
}

static int finish(struct keeper *keeper, struct sandbox *sandbox)
{
    const struct cgroups *cgroups = keeper->maker.cgroups;

    if (sandbox->state == SANDBOX_LIVE) { /* it has ended by itself */
        let_go_of_disk(keeper, sandbox);
        sandbox->last_oom_kills = cgroup_oom_kills(keeper->maker.cgroups, sandbox->cgroup);
        sandbox->last_processes_refused = cgroup_processes_refused(keeper->maker.cgroups, sandbox->cgroup);
    }
    /* Closing it is not enough: the zygote may still hold a copy for a moment, and the entry would live on with it. */
    (void)epoll_ctl(keeper->epoll_fd, EPOLL_CTL_DEL, sandbox->pidfd, NULL);
    if (sandbox_reap(sandbox) < 0)
        return keeper_watch(keeper, sandbox->pidfd, &sandbox->source);
    return cgroup_wants_reclaim(cgroups, sandbox->cgroup) ? reclaim(keeper, sandbox)
                                                          : keeper_remove_sandbox(keeper, sandbox);
}

static int sandbox_ready(struct keeper *keeper, struct source *source)
{
    int r = finish(keeper, SOURCE_OWNER(struct sandbox, source));

    return r < 0 ? r : 1;
}

static int retry_removals(struct keeper *keeper)
{
    struct sandbox *next;
    struct sandbox *sandbox = keeper->dying;
    int r = 0;

    keeper->dying = NULL;
    for (; sandbox != NULL; sandbox = next) {
        next = sandbox->next_dying;
        sandbox->is_dying = false;
        int told = keeper_remove_sandbox(keeper, sandbox);
        r = r < 0 ? r : told;
    }
    return r;
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
    if (r >= 0)
        r = memory_look(keeper);
    if (r >= 0 && keeper->dying != NULL)
        r = retry_removals(keeper);
    if (r >= 0)
        r = keeper_start_jobs(keeper);
    return r < 0 ? error_set(err, ERROR_PROTOCOL, -r, "serving the client") : 1;
}

int keeper_fd(const struct keeper *keeper)
{
    return keeper->epoll_fd;
}

int keeper_wait_ms(const struct keeper *keeper)
{
    int memory_ms = memory_wait_ms(&keeper->memory);

    if (keeper->dying == NULL && !jobs_are_stuck(&keeper->jobs))
        return memory_ms;
    return memory_ms >= 0 && memory_ms < RETRY_MS ? memory_ms : RETRY_MS;
}

static struct sandbox *only_sandbox(struct keeper *keeper)
{
    struct sandbox *sandbox = keeper->registry.count == 1 ? registry_next(&keeper->registry, NULL) : NULL;

    return sandbox != NULL && sandbox->state == SANDBOX_LIVE ? sandbox : NULL;
}

bool keeper_may_leave(struct keeper *keeper)
{
    return keeper->ordered && only_sandbox(keeper) != NULL;
}

static int take_client(struct keeper *keeper, int client_fd, struct error *err)
{
    if (fcntl(client_fd, F_SETFL, O_NONBLOCK) < 0 || keeper_watch(keeper, client_fd, &keeper->client) < 0)
        return error_errno(err, "preparing the conversation");
    keeper->client_fd = client_fd;
    return 0;
}

int keeper_attach(struct keeper *keeper, int client_fd, struct error *err)
{
    keeper->adoption = ADOPTION_EXPECTED;
    return take_client(keeper, client_fd, err);
}

void keeper_detach(struct keeper *keeper)
{
    struct job *next;

    if (keeper->client_fd < 0)
        return;
    (void)epoll_ctl(keeper->epoll_fd, EPOLL_CTL_DEL, keeper->client_fd, NULL);
    keeper->client_fd = -1;
    adoption_reset(&keeper->registry);
    /* Nobody waits for these any more. */
    for (struct job *job = jobs_next(&keeper->jobs, JOB_CREATE, NULL); job != NULL; job = next) {
        next = jobs_next(&keeper->jobs, JOB_CREATE, job);
        keeper_remove_job(keeper, job);
    }
}

int keeper_tell(struct keeper *keeper, const struct wire_message *message, const int *fds, size_t fd_count)
{
    return conversation_tell(keeper, message, fds, fd_count);
}

void keeper_set_folders(struct keeper *keeper, const struct folders *folders)
{
    keeper->folders = folders;
}

void keeper_set_disk_max(struct keeper *keeper, uint64_t bytes)
{
    keeper->disk_max_bytes = bytes;
}

struct cgroups *keeper_cgroups(const struct keeper *keeper)
{
    return keeper->maker.cgroups;
}

const char *keeper_instance_id(const struct keeper *keeper)
{
    return keeper->instance.id;
}

size_t keeper_count(const struct keeper *keeper)
{
    return keeper->registry.count;
}

static int set_up(struct keeper *keeper, const struct keeper_options *options, struct error *err)
{
    int r = instance_init(&keeper->instance, err);

    if (r == 0)
        r = cgroups_new(&keeper->maker.cgroups, err);
    if (r == 0)
        memory_init(&keeper->memory, keeper->maker.cgroups);
    if (r == 0)
        r = ids_new(keeper->instance.run_fd, options->id_first, options->id_last, &keeper->maker.ids, err);
    if (r == 0)
        r = state_open(options->state, &keeper->maker.state_fd, err);
    if (r < 0)
        return r;
    /* A single run does it afterwards, when nobody waits. */
    if (!options->single)
        janitor_sweep(&keeper->instance, keeper->maker.cgroups);
    keeper->maker.instance_id = keeper->instance.id;
    keeper->client.ready = conversation_ready;
    keeper->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (keeper->epoll_fd < 0)
        return error_errno(err, "making the keeper's event loop");
    keeper->adoption = ADOPTION_DONE;
    return options->client_fd >= 0 ? take_client(keeper, options->client_fd, err) : 0;
}

int keeper_new(const struct keeper_options *options, struct keeper **ret_keeper, struct error *err)
{
    struct keeper *keeper = calloc(1, sizeof *keeper);

    if (keeper == NULL)
        return error_set(err, ERROR_SYSTEM, ENOMEM, "starting the keeper");
    keeper->instance = INSTANCE_EMPTY;
    oom_init(&keeper->memory.oom, -1, false);
    keeper->epoll_fd = -1;
    keeper->client_fd = -1;
    keeper->service = options->service;
    keeper->folders = options->folders;
    keeper->zygote_pidfd = options->zygote_pidfd;
    keeper->maker = (struct sandbox_maker){
        .state_fd = -1,
        .host_layer_fd = -1,
        .init_fd = options->init_fd,
        .zygote_fd = options->zygote_fd,
        .airlock_fd = options->airlock_fd,
    };
    keeper->single = options->single;
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
        clean = keeper_end_now(keeper, sandbox) && clean;
        keeper_forget(keeper, sandbox);
    }
    return clean;
}

void keeper_free(struct keeper *keeper)
{
    struct job *job;

    if (keeper == NULL)
        return;
    for (int kind = 0; kind < JOB_KINDS; kind++) {
        while ((job = jobs_next(&keeper->jobs, (enum job_kind)kind, NULL)) != NULL)
            keeper_remove_job(keeper, job);
    }
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
    memory_release(&keeper->memory);
    cgroups_free(keeper->maker.cgroups);
    close_fd(&keeper->maker.state_fd);
    close_fd(&keeper->maker.host_layer_fd);
    close_fd(&keeper->epoll_fd);
    instance_release(&keeper->instance);
    free(keeper);
}
