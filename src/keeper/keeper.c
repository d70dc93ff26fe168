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
    RETRY_MS = 5,      /* how soon a removal that was too early is tried again */
    MEMORY_LOOKS = 40, /* how often to look for a kill after the kernel said that memory ran out */
};

static int sandbox_ready(struct keeper *keeper, struct source *source);
static int memory_ready(struct keeper *keeper, struct source *source);

int keeper_watch(struct keeper *keeper, int fd, struct source *source)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = source};

    return epoll_ctl(keeper->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

void keeper_forget(struct keeper *keeper, struct sandbox *sandbox)
{
    registry_remove(&keeper->registry, sandbox);
    sandbox_free(sandbox);
}

int keeper_watch_sandbox(struct keeper *keeper, struct sandbox *sandbox, struct error *err)
{
    sandbox->source.ready = sandbox_ready;
    int r = keeper_watch(keeper, sandbox->pidfd, &sandbox->source);

    if (r < 0)
        return error_set(err, ERROR_SYSTEM, -r, "watching the sandbox");
    r = cgroup_watch(keeper->maker.cgroups, sandbox->cgroup, err);
    if (r == 0 && !keeper->watching_memory) {
        keeper->memory.ready = memory_ready;
        r = keeper_watch(keeper, cgroups_event_fd(keeper->maker.cgroups), &keeper->memory);
        keeper->watching_memory = r == 0;
    }
    return r;
}

bool keeper_end_now(struct keeper *keeper, struct sandbox *sandbox)
{
    int r = -EBUSY;

    sandbox_end(&keeper->maker, sandbox);
    /* The zygote may still hold a copy: closing alone would leave it in there. */
    if (sandbox->pidfd >= 0)
        (void)epoll_ctl(keeper->epoll_fd, EPOLL_CTL_DEL, sandbox->pidfd, NULL);
    for (int attempt = 0; attempt < 2000 && (r = sandbox_reap(&keeper->maker, sandbox)) < 0; attempt++)
        (void)usleep(1000);
    return r == 0;
}

int keeper_add_job(struct keeper *keeper, struct job *job, struct error *err)
{
    job->source.ready = conversation_job_ready;
    int r = keeper_watch(keeper, job->helper.socket, &job->source);
    if (r < 0)
        return error_set(err, ERROR_SYSTEM, -r, "watching a helper");
    job->next = keeper->jobs;
    keeper->jobs = job;
    keeper->job_count++;
    return 0;
}

void keeper_remove_job(struct keeper *keeper, struct job *job)
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

static void let_go_of_disk(struct keeper *keeper, struct sandbox *sandbox)
{
    struct job *job = sandbox->disk_fd >= 0 ? job_new_discard(&sandbox->disk_fd) : NULL;
    struct error err;

    if (job != NULL && keeper_add_job(keeper, job, &err) < 0)
        job_free(job);
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
        return sandbox->state == SANDBOX_DEAD ? 0 : keeper_watch(keeper, sandbox->pidfd, &sandbox->source);
    }
    if (was_dead)
        keeper->removing--;
    message.gone.wait_status = (uint32_t)sandbox->wait_status;
    bool is_told = sandbox->is_told;
    keeper_forget(keeper, sandbox);
    return is_told ? conversation_tell(keeper, &message, NULL, 0) : 0;
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
        int r = sandbox->is_told ? conversation_tell(keeper, &message, NULL, 0) : 0;
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
    for (struct job *job = keeper->jobs; job != NULL; job = next) {
        next = job->next;
        if (job->frame != NULL)
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
    if (keeper == NULL)
        return;
    while (keeper->jobs != NULL)
        keeper_remove_job(keeper, keeper->jobs);
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
