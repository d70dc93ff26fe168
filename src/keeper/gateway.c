#include "keeper/gateway.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"
#include "keeper/notify.h"
#include "keeper/renew.h"

#include <poll.h>
#include <stdio.h>
#include <sys/wait.h>

/* They were the last gateway's too. */
static int mend_listeners(struct daemon *daemon, struct error *err)
{
    struct settings_place place = {.unix_path = daemon->unix_path, .group = daemon->configuration.plan.user.gid};
    size_t count = 0;
    int r = settings_mend_listeners(&daemon->settings, &place, &count, err);

    if (count > 0)
        log_event(&daemon->log, LOG_LEVEL_WARN, "listeners-reopened", LOG_NUMBER("count", count),
                  LOG_TEXT("reason", "the gateway before had changed them"));
    return r;
}

static int enclose(struct daemon *daemon, struct error *err)
{
    const struct settings *settings = &daemon->settings;
    struct enclosure *enclosure = &daemon->enclosure;
    int r =
        enclosure_open(enclosure, keeper_cgroups(daemon->keeper), keeper_instance_id(daemon->keeper), "gateway", err);

    return r < 0 ? r : enclosure_limit(enclosure, settings->gateway_memory_bytes, settings->gateway_processes, err);
}

int gateway_start(struct daemon *daemon, struct error *err)
{
    static char name[] = "hutch-gateway";
    static char verb[] = "--serve";
    char *argv[] = {name, verb, NULL};
    struct configuration *configuration = &daemon->configuration;
    _cleanup_fd_ int error_fd = -1;
    int r = mend_listeners(daemon, err);

    if (r == 0)
        r = relay_open(&daemon->relay, "gateway", STDERR_FILENO, &error_fd, err);
    if (r == 0)
        r = enclose(daemon, err);
    configuration_refresh(configuration);
    struct service service = {
        .user = configuration->plan.user,
        .program_fd = configuration->program_fd,
        .argv = argv,
        .environment = configuration->environment.variables,
        .input_fd = -1,
        .error_fd = error_fd,
        .state_fd = daemon->gateway_state_fd,
        .process_max = daemon->settings.gateway_processes,
        .cgroup = &daemon->enclosure.entry,
    };
    if (r == 0)
        r = supervisor_start(&daemon->supervisor, &service, err);
    if (r == 0)
        r = keeper_attach(daemon->keeper, daemon->supervisor.socket, err);
    if (r == 0)
        liveness_start(&daemon->liveness, daemon->settings.gateway_answer_ms, clock_now_ns());
    return r;
}

void gateway_lose(struct daemon *daemon, const char *why)
{
    struct supervisor *supervisor = &daemon->supervisor;

    keeper_detach(daemon->keeper);
    liveness_stop(&daemon->liveness);
    reload_forget(&daemon->reload);
    int status = supervisor_lost(supervisor, why == NULL, clock_now_ns());
    if (enclosure_was_too_small(&daemon->enclosure))
        why = "it needed more memory than gateway.memory_mb permits";
    enclosure_close(&daemon->enclosure);
    relay_finish(&daemon->relay);
    uint64_t now_ns = clock_now_ns();
    /* To wait for its end may have taken longer than the pause. */
    uint64_t pause_ms = supervisor->start_ns > now_ns ? (supervisor->start_ns - now_ns) / MS_NS : 0;
    log_event(&daemon->log, LOG_LEVEL_ERROR, "gateway-ended", LOG_TEXT("reason", why != NULL ? why : "it ended"),
              WIFEXITED(status) ? LOG_NUMBER("status", WEXITSTATUS(status)) : LOG_NUMBER("signal", WTERMSIG(status)),
              LOG_NUMBER("sandboxes", keeper_count(daemon->keeper)), LOG_NUMBER("restart_ms", pause_ms));
    if (!supervisor->was_ready && supervisor->tries >= SUPERVISOR_TRIES)
        daemon_give_up(daemon, "the gateway ended again and again before it was ready; the lines above say why");
    else if (daemon->phase == PHASE_DRAINING)
        daemon->phase = PHASE_ENDED;
}

void gateway_restart(struct daemon *daemon)
{
    struct error err = {0};

    if (gateway_start(daemon, &err) < 0)
        gateway_lose(daemon, err.message);
}

/* One that has said something which we have not read yet is not silent: it may be we who are late. */
static bool is_silent(const struct daemon *daemon)
{
    struct pollfd said = {.fd = daemon->supervisor.socket, .events = POLLIN};

    return poll(&said, 1, 0) == 0;
}

static void ask(struct daemon *daemon)
{
    struct wire_message message = {.type = WIRE_PING, .ping = {.number = daemon->liveness.number}};
    int r = keeper_tell(daemon->keeper, &message, NULL, 0);

    /* Without room for the question it reads nothing, and will not answer. */
    if (r < 0 && r != -EAGAIN)
        gateway_lose(daemon, "it can't be asked whether it still answers");
}

void gateway_check(struct daemon *daemon, uint64_t now_ns)
{
    const struct liveness *liveness = &daemon->liveness;
    enum liveness_verdict verdict = liveness_look(&daemon->liveness, now_ns);
    char why[64];

    if (verdict == LIVENESS_ASK)
        ask(daemon);
    if (verdict != LIVENESS_LATE || !is_silent(daemon))
        return;
    (void)snprintf(why, sizeof why, "it has not answered for %llu s",
                   (unsigned long long)(liveness->limit_ns / MS_NS / 1000));
    gateway_lose(daemon, liveness->is_ready ? why : "it was not ready in time");
}

int gateway_send_settings(struct daemon *daemon)
{
    struct buf names = buf_init(WIRE_LISTENERS_MAX * LISTENER_NAME_SIZE + LISTENER_NAME_SIZE);
    struct wire_message message;
    int fds[FD_PASS_MAX];
    size_t count = settings_to_message(&daemon->settings, daemon->presets_fd, &message, &names, fds);
    int r = keeper_tell(daemon->keeper, &message, fds, count);

    reload_told(&daemon->reload, daemon->settings.generation, clock_now_ns());
    buf_release(&names);
    return r;
}

/* It has recorded their hashes, and the next one asks for no others. */
static void drop_presets(struct daemon *daemon)
{
    struct error err = {0};

    if (environment_drop_presets(&daemon->presets_fd, &err) < 0)
        log_event(&daemon->log, LOG_LEVEL_WARN, "presets-kept", LOG_TEXT("reason", err.message));
}

/* What came into force after it was told is told now. */
static int become_ready(struct daemon *daemon, uint64_t generation)
{
    int r = reload_ready(&daemon->reload, generation);

    if (r < 0)
        return r;
    supervisor_ready(&daemon->supervisor, clock_now_ns());
    liveness_ready(&daemon->liveness, clock_now_ns());
    drop_presets(daemon);
    log_event(&daemon->log, LOG_LEVEL_INFO, "ready", LOG_NUMBER("generation", generation),
              LOG_NUMBER("sandboxes", keeper_count(daemon->keeper)));
    notify_send("READY=1");
    return generation < daemon->settings.generation ? gateway_send_settings(daemon) : 0;
}

static int hear_reloaded(struct daemon *daemon, const struct wire_reloaded *reloaded)
{
    int r = reload_answered(&daemon->reload, reloaded->generation);

    if (r > 0)
        renew_end(daemon, reloaded->detail.text);
    return r < 0 ? r : 0;
}

/* Said later than at its start, it is just another way to end. */
static int hear_unable(struct daemon *daemon, const char *why)
{
    if (!daemon->supervisor.was_ready) {
        daemon_give_up(daemon, why);
        return 0;
    }
    log_event(&daemon->log, LOG_LEVEL_ERROR, "gateway-unable", LOG_TEXT("reason", why));
    return -ECANCELED;
}

/* From within keeper_dispatch(): the keeper's client must not change here. */
int gateway_heard(void *context, const struct wire_message *message)
{
    struct daemon *daemon = context;

    switch ((int)message->type) { /* the keeper hands on no others */
    case WIRE_ATTACH:
        return gateway_send_settings(daemon);
    case WIRE_READY:
        return become_ready(daemon, message->ready.generation);
    case WIRE_RELOADED:
        return hear_reloaded(daemon, &message->reloaded);
    case WIRE_PONG:
        return liveness_answered(&daemon->liveness, message->pong.number, clock_now_ns());
    case WIRE_UNABLE:
        return hear_unable(daemon, message->unable.detail.text);
    case WIRE_DRAINED:
        if (daemon->phase == PHASE_DRAINING)
            daemon->phase = PHASE_ENDED;
        return daemon->phase == PHASE_ENDED ? 0 : -EBADMSG;
    default:
        return -EBADMSG;
    }
}
