/*
 * Theory of operation. The order matters: the state folder is locked before anything is changed, the zygote is forked
 * while there are few descriptors and after the first credentials have left our memory, and the keeper needs the range
 * of ids that the configuration says.
 */
#include "keeper/boot.h"

#include "base/beside.h"
#include "base/cleanup.h"
#include "base/fd.h"
#include "base/sys.h"
#include "keeper/gateway.h"
#include "keeper/renew.h"
#include "keeper/state.h"
#include "keeper/zygote.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/signalfd.h>

enum { PATH_SIZE = 4096, OPEN_FILES = 1048576 };

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

static int make_keeper(struct daemon *daemon, const struct wire_config *config, struct error *err)
{
    daemon->service = (struct keeper_service){.heard = gateway_heard, .context = daemon};
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

int boot(struct daemon *daemon, struct error *err)
{
    struct wire_config config;
    int r = configuration_init(&daemon->configuration, daemon->options->config, daemon->options->listen, err);

    if (r == 0)
        r = environment_take_presets(&daemon->presets_fd, err);
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
        r = configuration_read(&daemon->configuration, &config, err);
    if (r == 0)
        r = make_keeper(daemon, &config, err);
    if (r == 0)
        r = renew_open(daemon, &daemon->settings, &config, NULL, err);
    if (r == 0)
        renew_put_in_force(daemon);
    return r;
}
