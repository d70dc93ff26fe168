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

#include "base/cleanup.h"
#include "base/clock.h"
#include "keeper/boot.h"
#include "keeper/daemon_core.h"
#include "keeper/gateway.h"
#include "keeper/notify.h"
#include "keeper/renew.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>

enum {
    LEAVE_MS = 2000,       /* for a gateway to end by itself once the conversation has */
    DRAIN_SPARE_MS = 1000, /* beyond what the gateway was given */
};

/* What the gateway says on standard error before it says something to the keeper must be seen no later. */
enum { POLL_SIGNALS, POLL_KEEPER, POLL_GATEWAY, POLL_ZYGOTE, POLL_READER, POLL_RELAY, POLL_COUNT };

static void init(struct daemon *daemon, const struct daemon_options *options)
{
    memset(daemon, 0, sizeof *daemon);
    daemon->options = options;
    daemon->log = (struct log){.fd = STDERR_FILENO, .level = LOG_LEVEL_INFO, .program = "hutchd"};
    daemon->state_fd = daemon->lock_fd = daemon->gateway_state_fd = daemon->init_fd = -1;
    daemon->presets_fd = daemon->signal_fd = -1;
    daemon->zygote_fd = daemon->zygote_pidfd = daemon->zygote_watch_fd = -1;
    daemon->supervisor = SUPERVISOR_EMPTY;
    daemon->enclosure = ENCLOSURE_EMPTY;
    daemon->relay = RELAY_EMPTY;
    settings_init(&daemon->settings);
}

void daemon_give_up(struct daemon *daemon, const char *why)
{
    log_event(&daemon->log, LOG_LEVEL_ERROR, "ending", LOG_TEXT("reason", why));
    daemon->phase = PHASE_ENDED;
    daemon->status = 1;
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
        daemon_give_up(
            daemon, "the gateway speaks another version than this hutchd; sandboxes are drained; start hutchd again");
    else if (r <= 0 && daemon->supervisor.pidfd >= 0)
        gateway_lose(daemon, r == 0 ? NULL : err.message);
}

static void handle_times(struct daemon *daemon)
{
    uint64_t now_ns = clock_now_ns();

    if (daemon->watchdog_ns != 0 && now_ns >= daemon->watchdog_due_ns) {
        notify_send("WATCHDOG=1");
        daemon->watchdog_due_ns = now_ns + daemon->watchdog_ns;
    }
    gateway_check(daemon, now_ns);
    if (daemon->phase == PHASE_DRAINING && now_ns >= daemon->drain_until_ns)
        daemon->phase = PHASE_ENDED;
    if (daemon->configuration.reader.socket >= 0 && now_ns >= daemon->configuration.reader.deadline_ns)
        renew_finish(daemon);
    if (reload_is_late(&daemon->reload, now_ns))
        renew_end(daemon, "the gateway has not answered yet");
    if (daemon->phase == PHASE_RUNNING && daemon->reload.is_wanted && daemon->reload.until_ns == 0 &&
        daemon->configuration.reader.socket < 0)
        renew_start(daemon);
    if (daemon->phase == PHASE_RUNNING && daemon->supervisor.start_ns != 0 && now_ns >= daemon->supervisor.start_ns)
        gateway_restart(daemon);
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
    sooner(&due_ns, daemon->liveness.due_ns);
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
        daemon_give_up(daemon, "waiting failed");
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
        gateway_lose(daemon, NULL);
    if (ready[POLL_ZYGOTE].revents != 0 && daemon->phase != PHASE_ENDED)
        daemon_give_up(daemon, "the zygote, which makes sandboxes, has ended");
    if (daemon->phase != PHASE_ENDED && ready[POLL_READER].revents != 0 && daemon->configuration.reader.socket >= 0)
        renew_finish(daemon);
    if (daemon->phase != PHASE_ENDED)
        handle_times(daemon);
}

static void release(struct daemon *daemon)
{
    if (daemon->keeper != NULL)
        keeper_detach(daemon->keeper);
    supervisor_stop(&daemon->supervisor, LEAVE_MS);
    relay_finish(&daemon->relay);
    enclosure_close(&daemon->enclosure);
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
    int r = boot(daemon, &err);
    if (r == 0)
        r = gateway_start(daemon, &err);
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
