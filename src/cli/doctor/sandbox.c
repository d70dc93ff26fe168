#include "base/clock.h"
#include "cli/advice.h"
#include "cli/doctor/probes.h"
#include "cli/session.h"
#include "keeper/keeper.h"

#include <poll.h>
#include <stdint.h>
#include <string.h>

enum { COMMAND_LIMIT_MS = 20000 };

static const char expected[] = "hutch\n";

static int handle(struct session *session, const struct pollfd *ready, struct error *err)
{
    int r = 0;

    if (ready[0].revents != 0)
        r = session_handle_guest(session, err);
    if (r == 0 && (ready[1].revents != 0 || keeper_wait_ms(session->keeper) >= 0)) {
        r = keeper_dispatch(session->keeper, err);
        r = r < 0 ? r : 0;
    }
    if (r == 0 && ready[2].revents != 0)
        r = session_handle_keeper(session, err);
    return r == 0 ? session_acknowledge(session, err) : r;
}

/* The same conversation as `hutch run`, without a caller's streams and signals. */
static int converse(struct session *session, struct error *err)
{
    uint64_t deadline_ns = clock_now_ns() + (uint64_t)COMMAND_LIMIT_MS * 1000000U;
    int r = session_start(session, err);

    while (r == 0 && session->state != SESSION_ENDED) {
        struct pollfd ready[] = {
            {.fd = session->guest_fd, .events = POLLIN},
            {.fd = keeper_fd(session->keeper), .events = POLLIN},
            {.fd = session->client_fd, .events = POLLIN},
        };
        int wait_ms = keeper_wait_ms(session->keeper);
        if (poll(ready, 3, wait_ms >= 0 ? wait_ms : 100) < 0 && errno != EINTR)
            return error_errno(err, "waiting for the sandbox");
        r = handle(session, ready, err);
        if (r == 0 && clock_now_ns() > deadline_ns)
            r = error_set(err, ERROR_SYSTEM, ETIMEDOUT, "waiting for the command");
    }
    return r;
}

static void tell(struct probe *probe, const struct session *session)
{
    const struct result *result = &session->result;
    const struct buf *output = &session->sinks[0].collected;

    if (!result->has_exit)
        finding_no(probe, 0, "the sandbox ended before the command did");
    else if (result_status(result) != 0)
        finding_no(probe, 0, "it was made, but a command in it ended with status %d", result_status(result));
    else if (output->length != sizeof expected - 1 || memcmp(output->data, expected, output->length) != 0)
        finding_no(probe, 0, "it was made, but a command's output did not come back");
    else
        finding_yes(probe, "made, a command run and all removed in %.1f ms (ready after %.1f ms)",
                    (double)(clock_now_ns() - session->start_ns) / 1e6, (double)result->ready_ns / 1e6);
}

/* As a person would ask for it; the options only read these words. */
static void try(struct probe *probe, const char *disk)
{
    const char *words[] = {"--json",     "--memory", "128M", "--disk", disk, "--state",
                           probe->state, "--",       "echo", "hutch",  NULL};
    struct run_options options;
    struct session session;
    struct error err = {0};
    int r = options_parse((char **)(uintptr_t)words, &options, &err);

    if (r < 0) {
        finding_no(probe, 0, "%s", err.message);
        return;
    }
    session_init(&session, &options, clock_now_ns());
    r = converse(&session, &err);
    if (r < 0) {
        advice_add(session.failed_step, &err);
        if (session.failed_step != STEP_NONE)
            finding_no(probe, 0, "failed while %s (step %s): %s", step_words(session.failed_step),
                       step_name(session.failed_step), err.message);
        else
            finding_no(probe, 0, "%s", err.message);
    }
    struct keeper *keeper = session.keeper;
    session.keeper = NULL;
    keeper_free(keeper); /* ends it and waits until nothing is left */
    if (r == 0)
        tell(probe, &session);
    session_release(&session);
}

void probe_sandbox(struct probe *probe)
{
    try(probe, "32M");
}

/* More than half of the memory. */
void probe_sandbox_image(struct probe *probe)
{
    try(probe, "128M");
}
