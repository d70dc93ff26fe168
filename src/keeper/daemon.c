/*
 * Theory of operation. To start: lock the state folder, fork the zygote while there are few descriptors, have the
 * configuration read, make the keeper, open what the configuration names, start the gateway. Then one loop waits for
 * signals, the keeper (which hears the gateway), the ends of gateway and zygote, a reader that is at work, and the next
 * thing that is due.
 *
 * A gateway that ends or misbehaves is replaced: sandboxes and listeners stay here. A new configuration (SIGHUP) is
 * read and opened beside the old one and takes its place only when all of it is good. SIGTERM asks the gateway to
 * drain; when it has, or the time is up, everything ends.
 */
#include "keeper/daemon.h"

#include "base/beside.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/sys.h"
#include "keeper/configuration.h"
#include "keeper/keeper.h"
#include "keeper/notify.h"
#include "keeper/relay.h"
#include "keeper/reload.h"
#include "keeper/settings.h"
#include "keeper/state.h"
#include "keeper/supervisor.h"
#include "keeper/zygote.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

#define MS_NS UINT64_C(1000000)

enum {
    PATH_SIZE = 4096,
    OPEN_FILES = 1048576,
    GATEWAY_PROCESSES_MAX = 256,
    LEAVE_MS = 2000,       /* for a gateway to end by itself once the conversation has */
    DRAIN_SPARE_MS = 1000, /* beyond what the gateway was given */
};

/* What the gateway says on standard error before it says something to the keeper must be seen no later. */
enum { POLL_SIGNALS, POLL_KEEPER, POLL_GATEWAY, POLL_ZYGOTE, POLL_READER, POLL_RELAY, POLL_COUNT };

enum phase { PHASE_RUNNING, PHASE_DRAINING, PHASE_ENDED };

struct daemon {
    const struct daemon_options *options;
    struct log log;
    enum phase phase;
    int status;
    uint64_t drain_until_ns;
    uint64_t watchdog_ns; /* between two words to it; 0: none */
    uint64_t watchdog_due_ns;
    int state_fd;
    int lock_fd;
    int gateway_state_fd;
    int init_fd;
    int presets_fd;
    int signal_fd;
    int zygote_fd;
    int zygote_pidfd;
    int zygote_watch_fd;
    char unix_path[LISTENER_PATH_SIZE];
    struct configuration configuration;
    struct keeper_service service;
    struct keeper *keeper;
    struct supervisor supervisor;
    struct settings settings;
    struct reload reload;
    struct relay relay; /* the gateway's standard error */
};

static void init(struct daemon *daemon, const struct daemon_options *options)
{
    memset(daemon, 0, sizeof *daemon);
    daemon->options = options;
    daemon->log = (struct log){.fd = STDERR_FILENO, .level = LOG_LEVEL_INFO, .program = "hutchd"};
    daemon->state_fd = daemon->lock_fd = daemon->gateway_state_fd = daemon->init_fd = -1;
    daemon->presets_fd = daemon->signal_fd = -1;
    daemon->zygote_fd = daemon->zygote_pidfd = daemon->zygote_watch_fd = -1;
    daemon->supervisor = SUPERVISOR_EMPTY;
    daemon->relay = RELAY_EMPTY;
    settings_init(&daemon->settings);
}

static int open_signals(struct daemon *daemon, struct error *err)
{
    sigset_t set;

    (void)signal(SIGPIPE, SIG_IGN);
    /* A caller may ignore it, and then nothing could be waited for. */
    (void)signal(SIGCHLD, SIG_DFL);
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGINT);
    (void)sigaddset(&set, SIGHUP);
    if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
        return error_errno(err, "blocking signals");
    daemon->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return daemon->signal_fd < 0 ? error_errno(err, "waiting for signals") : 0;
}

/* Three descriptors for each of thousands of sandboxes. */
static void raise_file_limit(void)
{
    struct rlimit wanted = {OPEN_FILES, OPEN_FILES};
    struct rlimit now;

    if (sys_prlimit(RLIMIT_NOFILE, &wanted, NULL) == 0 || sys_prlimit(RLIMIT_NOFILE, NULL, &now) < 0)
        return;
    now.rlim_cur = now.rlim_max;
    (void)sys_prlimit(RLIMIT_NOFILE, &now, NULL);
}

static int open_state(struct daemon *daemon, struct error *err)
{
    const char *path = daemon->options->state;
    struct service_user user = daemon->configuration.plan.user;
    char real[PATH_SIZE];
    int r = state_open(path, &daemon->state_fd, err);

    if (r == 0)
        r = state_lock(daemon->state_fd, path, &daemon->lock_fd, err);
    if (r == 0)
        r = state_open_gateway(daemon->state_fd, user.uid, user.gid, &daemon->gateway_state_fd, err);
    if (r < 0)
        return r;
    int n = daemon->options->is_usual_state
                ? snprintf(daemon->unix_path, sizeof daemon->unix_path, "/run/hutch/api.sock")
                : snprintf(daemon->unix_path, sizeof daemon->unix_path, "%s/api.sock",
                           realpath(path, real) != NULL ? real : path);
    /* Where it does not fit there is none, unless the configuration says where. */
    if (n < 0 || (size_t)n >= sizeof daemon->unix_path)
        return error_set(err, ERROR_INVALID, ENAMETOOLONG,
                         "the path of the state folder is too long for a socket in it; use a shorter one");
    return 0;
}

static int heard(void *context, const struct wire_message *message);

static int make_keeper(struct daemon *daemon, const struct wire_config *config, struct error *err)
{
    daemon->service = (struct keeper_service){.heard = heard, .context = daemon};
    struct keeper_options options = {
        .state = daemon->options->state,
        .init_fd = daemon->init_fd,
        .client_fd = -1,
        .zygote_fd = TAKE_FD(daemon->zygote_fd),
        .zygote_pidfd = TAKE_FD(daemon->zygote_pidfd),
        .id_first = config->id_first,
        .id_last = config->id_last,
        .service = &daemon->service,
        .folders = &daemon->settings.folders,
        .airlock_fd = -1,
    };

    return keeper_new(&options, &daemon->keeper, err);
}

static int open_settings(struct daemon *daemon, struct settings *settings, const struct wire_config *config,
                         const struct settings *before, struct error *err)
{
    struct settings_place place = {.unix_path = daemon->unix_path, .group = daemon->configuration.plan.user.gid};

    settings_init(settings);
    settings->generation = before != NULL ? before->generation + 1 : 1;
    settings->config_fd = TAKE_FD(daemon->configuration.file_fd);
    int r = settings_open_files(settings, config, &daemon->configuration.plan, err);
    if (r == 0)
        r = settings_open_listeners(settings, config, &place, before, err);
    if (r < 0)
        settings_release(settings, before);
    return r;
}

static void put_in_force(struct daemon *daemon)
{
    const struct settings *settings = &daemon->settings;

    daemon->log.level = settings->log_level;
    daemon->log.format = settings->log_format;
    keeper_set_folders(daemon->keeper, &settings->folders);
    for (size_t i = 0; i < settings->listener_count; i++) {
        char address[LISTENER_PATH_SIZE];
        listener_describe(settings->listeners[i].fd, address, sizeof address);
        log_event(&daemon->log, LOG_LEVEL_INFO, "listening", LOG_TEXT("address", address));
    }
}

static int set_up(struct daemon *daemon, struct error *err)
{
    struct wire_config config;
    int r = configuration_init(&daemon->configuration, daemon->options->config, daemon->options->listen, err);

    if (r == 0)
        r = open_state(daemon, err);
    if (r == 0)
        r = open_signals(daemon, err);
    raise_file_limit();
    if (r == 0)
        r = zygote_start(false, &daemon->zygote_fd, &daemon->zygote_pidfd, err);
    if (r == 0)
        daemon->zygote_watch_fd = fcntl(daemon->zygote_pidfd, F_DUPFD_CLOEXEC, 0);
    if (r == 0)
        r = beside_open("hutch-init", &daemon->init_fd, err);
    if (r == 0)
        r = environment_open_presets(&daemon->presets_fd, err);
    if (r == 0)
        r = configuration_read(&daemon->configuration, &config, err);
    if (r == 0)
        r = make_keeper(daemon, &config, err);
    if (r == 0)
        r = open_settings(daemon, &daemon->settings, &config, NULL, err);
    if (r == 0)
        put_in_force(daemon);
    return r;
}

static int start_gateway(struct daemon *daemon, struct error *err)
{
    static char name[] = "hutch-gateway";
    static char verb[] = "--serve";
    char *argv[] = {name, verb, NULL};
    struct configuration *configuration = &daemon->configuration;
    _cleanup_fd_ int error_fd = -1;
    int r = relay_open(&daemon->relay, STDERR_FILENO, &error_fd, err);

    configuration_refresh(configuration);
    struct service service = {
        .user = configuration->plan.user,
        .program_fd = configuration->program_fd,
        .argv = argv,
        .environment = configuration->environment.variables,
        .input_fd = -1,
        .error_fd = error_fd,
        .state_fd = daemon->gateway_state_fd,
        .process_max = GATEWAY_PROCESSES_MAX,
    };
    if (r == 0)
        r = supervisor_start(&daemon->supervisor, &service, err);
    if (r == 0)
        r = keeper_attach(daemon->keeper, daemon->supervisor.socket, err);
    return r;
}

static void give_up(struct daemon *daemon, const char *why)
{
    log_event(&daemon->log, LOG_LEVEL_ERROR, "ending", LOG_TEXT("reason", why));
    daemon->phase = PHASE_ENDED;
    daemon->status = 1;
}

/* `why` is NULL when it has ended by itself. */
static void lose_gateway(struct daemon *daemon, const char *why)
{
    struct supervisor *supervisor = &daemon->supervisor;

    keeper_detach(daemon->keeper);
    reload_forget(&daemon->reload);
    int status = supervisor_lost(supervisor, why == NULL, clock_now_ns());
    relay_finish(&daemon->relay);
    uint64_t now_ns = clock_now_ns();
    /* To wait for its end may have taken longer than the pause. */
    uint64_t pause_ms = supervisor->start_ns > now_ns ? (supervisor->start_ns - now_ns) / MS_NS : 0;
    log_event(&daemon->log, LOG_LEVEL_ERROR, "gateway-ended", LOG_TEXT("reason", why != NULL ? why : "it ended"),
              WIFEXITED(status) ? LOG_NUMBER("status", WEXITSTATUS(status)) : LOG_NUMBER("signal", WTERMSIG(status)),
              LOG_NUMBER("sandboxes", keeper_count(daemon->keeper)), LOG_NUMBER("restart_ms", pause_ms));
    if (!supervisor->was_ready && supervisor->tries >= SUPERVISOR_TRIES)
        give_up(daemon, "the gateway ended again and again before it was ready; the lines above say why");
    else if (daemon->phase == PHASE_DRAINING)
        daemon->phase = PHASE_ENDED;
}

static void restart_gateway(struct daemon *daemon)
{
    struct error err = {0};

    if (start_gateway(daemon, &err) < 0)
        lose_gateway(daemon, err.message);
}

static int send_settings(struct daemon *daemon)
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

/* What came into force after it was told is told now. */
static int become_ready(struct daemon *daemon, uint64_t generation)
{
    int r = reload_ready(&daemon->reload, generation);

    if (r < 0)
        return r;
    supervisor_ready(&daemon->supervisor, clock_now_ns());
    log_event(&daemon->log, LOG_LEVEL_INFO, "ready", LOG_NUMBER("generation", generation),
              LOG_NUMBER("sandboxes", keeper_count(daemon->keeper)));
    notify_send("READY=1");
    return generation < daemon->settings.generation ? send_settings(daemon) : 0;
}

static void end_reload(struct daemon *daemon, const char *problem)
{
    if (problem[0] != '\0')
        log_event(&daemon->log, LOG_LEVEL_ERROR, "not-reloaded", LOG_TEXT("reason", problem));
    else
        log_event(&daemon->log, LOG_LEVEL_INFO, "reloaded", LOG_NUMBER("generation", daemon->settings.generation));
    if (daemon->reload.until_ns == 0 && !daemon->reload.is_wanted)
        notify_send("READY=1");
}

static int hear_reloaded(struct daemon *daemon, const struct wire_reloaded *reloaded)
{
    int r = reload_answered(&daemon->reload, reloaded->generation);

    if (r > 0)
        end_reload(daemon, reloaded->detail.text);
    return r < 0 ? r : 0;
}

/* Said later than at its start, it is just another way to end. */
static int hear_unable(struct daemon *daemon, const char *why)
{
    if (!daemon->supervisor.was_ready) {
        give_up(daemon, why);
        return 0;
    }
    log_event(&daemon->log, LOG_LEVEL_ERROR, "gateway-unable", LOG_TEXT("reason", why));
    return -ECANCELED;
}

/* From within keeper_dispatch(): the keeper's client must not change here. */
static int heard(void *context, const struct wire_message *message)
{
    struct daemon *daemon = context;

    switch ((int)message->type) { /* the keeper hands on no others */
    case WIRE_ATTACH:
        return send_settings(daemon);
    case WIRE_READY:
        return become_ready(daemon, message->ready.generation);
    case WIRE_RELOADED:
        return hear_reloaded(daemon, &message->reloaded);
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

/* In force only when all of it is good. */
static void finish_reload(struct daemon *daemon)
{
    struct wire_config config;
    struct settings settings;
    struct error err = {0};
    int r = configuration_take(&daemon->configuration, &config, &err);

    settings_init(&settings);
    if (r == 0)
        r = open_settings(daemon, &settings, &config, &daemon->settings, &err);
    if (r < 0) {
        end_reload(daemon, err.message);
        return;
    }
    if (settings.id_first != daemon->settings.id_first || settings.id_last != daemon->settings.id_last)
        log_event(&daemon->log, LOG_LEVEL_WARN, "needs-restart",
                  LOG_TEXT("reason", "sandbox.id_first and sandbox.id_last take effect when the daemon starts"));
    struct settings before = daemon->settings;
    daemon->settings = settings;
    settings_release(&before, &daemon->settings);
    put_in_force(daemon);
    /* The next gateway gets them anyway, and one that is just starting when it is ready. */
    if (daemon->reload.told == 0)
        end_reload(daemon, "");
    else if (daemon->reload.heard != 0 && send_settings(daemon) < 0)
        lose_gateway(daemon, "it reads nothing");
}

static void start_reload(struct daemon *daemon)
{
    struct error err = {0};

    daemon->reload.is_wanted = false;
    notify_reloading();
    log_event(&daemon->log, LOG_LEVEL_INFO, "reloading", LOG_TEXT("file", daemon->configuration.plan.file));
    if (configuration_start(&daemon->configuration, &err) < 0)
        end_reload(daemon, err.message);
}

static void start_drain(struct daemon *daemon, int number)
{
    uint64_t grace_ms = daemon->settings.drain_ms;
    struct wire_message message = {.type = WIRE_DRAIN, .drain = {.grace_ms = grace_ms}};

    if (daemon->phase == PHASE_DRAINING) {
        daemon->phase = PHASE_ENDED; /* asked twice: at once */
        return;
    }
    notify_send("STOPPING=1");
    log_event(&daemon->log, LOG_LEVEL_INFO, "draining", LOG_NUMBER("signal", number),
              LOG_NUMBER("sandboxes", keeper_count(daemon->keeper)), LOG_NUMBER("grace_ms", grace_ms));
    daemon->drain_until_ns = clock_now_ns() + (grace_ms + DRAIN_SPARE_MS) * MS_NS;
    /* Before it is ready it has nothing to drain. */
    bool told = daemon->supervisor.ready_ns != 0 && keeper_tell(daemon->keeper, &message, NULL, 0) == 0;
    daemon->phase = told ? PHASE_DRAINING : PHASE_ENDED;
}

static void handle_signals(struct daemon *daemon)
{
    struct signalfd_siginfo info;

    while (daemon->phase != PHASE_ENDED && read(daemon->signal_fd, &info, sizeof info) == (ssize_t)sizeof info) {
        if (info.ssi_signo == SIGHUP)
            daemon->reload.is_wanted = true;
        else
            start_drain(daemon, (int)info.ssi_signo);
    }
}

static void handle_keeper(struct daemon *daemon)
{
    struct error err = {0};
    int r = keeper_dispatch(daemon->keeper, &err);

    if (r == -EPROTONOSUPPORT)
        give_up(daemon,
                "the gateway speaks another version than this hutchd; sandboxes are drained; start hutchd again");
    else if (r <= 0 && daemon->supervisor.pidfd >= 0)
        lose_gateway(daemon, r == 0 ? NULL : err.message);
}

static void handle_times(struct daemon *daemon)
{
    uint64_t now_ns = clock_now_ns();

    if (daemon->watchdog_ns != 0 && now_ns >= daemon->watchdog_due_ns) {
        notify_send("WATCHDOG=1");
        daemon->watchdog_due_ns = now_ns + daemon->watchdog_ns;
    }
    if (daemon->phase == PHASE_DRAINING && now_ns >= daemon->drain_until_ns)
        daemon->phase = PHASE_ENDED;
    if (daemon->configuration.reader.socket >= 0 && now_ns >= daemon->configuration.reader.deadline_ns)
        finish_reload(daemon);
    if (reload_is_late(&daemon->reload, now_ns))
        end_reload(daemon, "the gateway has not answered yet");
    if (daemon->phase == PHASE_RUNNING && daemon->reload.is_wanted && daemon->reload.until_ns == 0 &&
        daemon->configuration.reader.socket < 0)
        start_reload(daemon);
    if (daemon->phase == PHASE_RUNNING && daemon->supervisor.start_ns != 0 && now_ns >= daemon->supervisor.start_ns)
        restart_gateway(daemon);
}

static void sooner(uint64_t *due_ns, uint64_t candidate_ns)
{
    if (candidate_ns != 0 && candidate_ns < *due_ns)
        *due_ns = candidate_ns;
}

static int wait_ms(const struct daemon *daemon)
{
    uint64_t now_ns = clock_now_ns();
    uint64_t due_ns = UINT64_MAX;
    int keeper_ms = keeper_wait_ms(daemon->keeper);

    if (keeper_ms >= 0)
        sooner(&due_ns, now_ns + (uint64_t)keeper_ms * MS_NS);
    sooner(&due_ns, daemon->supervisor.start_ns);
    sooner(&due_ns, daemon->reload.until_ns);
    sooner(&due_ns, daemon->watchdog_ns != 0 ? daemon->watchdog_due_ns : 0);
    sooner(&due_ns, daemon->phase == PHASE_DRAINING ? daemon->drain_until_ns : 0);
    sooner(&due_ns, daemon->configuration.reader.socket >= 0 ? daemon->configuration.reader.deadline_ns : 0);
    if (due_ns == UINT64_MAX)
        return -1;
    return due_ns <= now_ns ? 0 : (int)((due_ns - now_ns) / MS_NS) + 1;
}

static void serve_once(struct daemon *daemon)
{
    struct pollfd ready[POLL_COUNT] = {
        [POLL_SIGNALS] = {.fd = daemon->signal_fd, .events = POLLIN},
        [POLL_KEEPER] = {.fd = keeper_fd(daemon->keeper), .events = POLLIN},
        [POLL_GATEWAY] = {.fd = daemon->supervisor.pidfd, .events = POLLIN},
        [POLL_ZYGOTE] = {.fd = daemon->zygote_watch_fd, .events = POLLIN},
        [POLL_READER] = {.fd = daemon->configuration.reader.socket, .events = POLLIN},
        [POLL_RELAY] = relay_wait(&daemon->relay),
    };

    if (poll(ready, POLL_COUNT, wait_ms(daemon)) < 0 && errno != EINTR) {
        give_up(daemon, "waiting failed");
        return;
    }
    if (ready[POLL_RELAY].revents != 0)
        relay_some(&daemon->relay);
    if (ready[POLL_SIGNALS].revents != 0)
        handle_signals(daemon);
    /* Before its end: what it said last comes first. */
    if (daemon->phase != PHASE_ENDED && (ready[POLL_KEEPER].revents != 0 || keeper_wait_ms(daemon->keeper) >= 0))
        handle_keeper(daemon);
    if (daemon->phase != PHASE_ENDED && ready[POLL_GATEWAY].revents != 0 && daemon->supervisor.pidfd >= 0)
        lose_gateway(daemon, NULL);
    if (ready[POLL_ZYGOTE].revents != 0 && daemon->phase != PHASE_ENDED)
        give_up(daemon, "the zygote, which makes sandboxes, has ended");
    if (daemon->phase != PHASE_ENDED && ready[POLL_READER].revents != 0 && daemon->configuration.reader.socket >= 0)
        finish_reload(daemon);
    if (daemon->phase != PHASE_ENDED)
        handle_times(daemon);
}

static void release(struct daemon *daemon)
{
    if (daemon->keeper != NULL)
        keeper_detach(daemon->keeper);
    supervisor_stop(&daemon->supervisor, LEAVE_MS);
    relay_finish(&daemon->relay);
    configuration_release(&daemon->configuration);
    keeper_free(daemon->keeper);
    settings_release(&daemon->settings, NULL);
    int *fds[] = {&daemon->zygote_fd,        &daemon->zygote_pidfd, &daemon->zygote_watch_fd,
                  &daemon->init_fd,          &daemon->presets_fd,   &daemon->signal_fd,
                  &daemon->gateway_state_fd, &daemon->state_fd,     &daemon->lock_fd};
    for (size_t i = 0; i < sizeof fds / sizeof *fds; i++)
        close_fd(fds[i]);
    free(daemon);
}

static struct daemon *new_daemon(const struct daemon_options *options)
{
    struct daemon *daemon = malloc(sizeof *daemon);

    if (daemon == NULL)
        (void)fprintf(stderr, "hutchd: out of memory\n");
    else
        init(daemon, options);
    return daemon;
}

int daemon_run(const struct daemon_options *options)
{
    struct daemon *daemon = new_daemon(options);
    struct error err = {0};

    if (daemon == NULL)
        return 1;
    int r = set_up(daemon, &err);
    if (r == 0)
        r = start_gateway(daemon, &err);
    if (r < 0) {
        (void)fprintf(stderr, "hutchd: %s\n", err.message);
        release(daemon);
        return 1;
    }
    daemon->watchdog_ns = notify_watchdog_ns();
    while (daemon->phase != PHASE_ENDED)
        serve_once(daemon);
    int status = daemon->status;
    struct log log = daemon->log;
    release(daemon);
    log_event(&log, LOG_LEVEL_INFO, "ended", LOG_NUMBER("status", status));
    return status;
}

int daemon_check(const struct daemon_options *options)
{
    struct daemon *daemon = new_daemon(options);
    struct wire_config config;
    struct error err = {0};

    if (daemon == NULL)
        return 1;
    int r = configuration_init(&daemon->configuration, options->config, options->listen, &err);
    if (r == 0)
        r = configuration_read(&daemon->configuration, &config, &err);
    if (r == 0)
        r = settings_open_files(&daemon->settings, &config, &daemon->configuration.plan, &err);
    if (r < 0)
        (void)fprintf(stderr, "hutchd: %s\n", err.message);
    else
        printf("yes: %s %s\n", daemon->configuration.plan.file,
               daemon->configuration.is_absent ? "is not there, and the defaults are in order" : "is in order");
    release(daemon);
    return r < 0 ? 1 : 0;
}
