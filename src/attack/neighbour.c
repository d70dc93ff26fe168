#include "attack/neighbour.h"

#include "attack/process.h"
#include "base/cleanup.h"
#include "base/clock.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

enum {
    ASK_EVERY_MS = 4,
    USUAL_COUNT = 25,
    START_LIMIT_MS = 30000,
    ANSWER_LIMIT_MS = 10000, /* for one answer, whatever the machine is busy with */
    END_LIMIT_MS = 5000,
    MEDIAN_FACTOR = 20,
    MEDIAN_MORE_MS = 20,
    FEW = 5, /* so few answers have no median worth the name */
};

static uint64_t ms(uint64_t count)
{
    return count * 1000000U;
}

static int ascending(const void *a, const void *b)
{
    uint64_t one = *(const uint64_t *)a;
    uint64_t two = *(const uint64_t *)b;

    return one < two ? -1 : one > two ? 1 : 0;
}

static uint64_t median(struct neighbour *neighbour)
{
    if (neighbour->count == 0)
        return 0;
    qsort(neighbour->times_ns, neighbour->count, sizeof *neighbour->times_ns, ascending);
    return neighbour->times_ns[neighbour->count / 2];
}

/* Its name, and what it does. */
static void harm(struct neighbour *neighbour, const char *words)
{
    if (neighbour->harm[0] == '\0')
        (void)snprintf(neighbour->harm, sizeof neighbour->harm, "%.40s %.150s", neighbour->name, words);
}

static void take_answer(struct neighbour *neighbour)
{
    char *end = memchr(neighbour->answer, '\n', neighbour->answer_length);

    if (end == NULL) {
        if (neighbour->answer_length == sizeof neighbour->answer)
            harm(neighbour, "talks without end");
        return;
    }
    *end = '\0';
    neighbour->answer_length = 0;
    if (neighbour->count < NEIGHBOUR_TIMES_MAX)
        neighbour->times_ns[neighbour->count++] = clock_now_ns() - neighbour->asked_ns;
    neighbour->asked_ns = 0;
    neighbour->next_ns = clock_now_ns() + ms(ASK_EVERY_MS);
    if (strcmp(neighbour->answer, "well") != 0 && neighbour->harm[0] == '\0')
        memcpy(neighbour->harm, neighbour->answer, sizeof neighbour->harm);
}

void neighbour_step(struct neighbour *neighbour)
{
    if (neighbour->pid == 0 || neighbour->harm[0] != '\0')
        return;
    ssize_t n = read(neighbour->from_fd, neighbour->answer + neighbour->answer_length,
                     sizeof neighbour->answer - neighbour->answer_length);
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
        harm(neighbour, "has ended");
        return;
    }
    if (n > 0) {
        neighbour->answer_length += (size_t)n;
        take_answer(neighbour);
    }
    if (neighbour->asked_ns != 0 && clock_now_ns() > neighbour->asked_ns + ms(ANSWER_LIMIT_MS))
        harm(neighbour, "does not answer any more");
    if (neighbour->asked_ns != 0 || clock_now_ns() < neighbour->next_ns)
        return;
    neighbour->asked_ns = clock_now_ns();
    if (write(neighbour->to_fd, "?\n", 2) != 2)
        harm(neighbour, "can't be asked any more");
}

int neighbour_wait_ms(const struct neighbour *neighbour)
{
    return neighbour->pid == 0 ? -1 : ASK_EVERY_MS;
}

static void ask_until(struct neighbour *neighbour, size_t count, uint64_t limit_ms)
{
    uint64_t deadline_ns = clock_now_ns() + ms(limit_ms);

    while (neighbour->harm[0] == '\0' && (neighbour->count < count || neighbour->asked_ns != 0)) {
        struct pollfd ready = {.fd = neighbour->from_fd, .events = POLLIN};
        (void)poll(&ready, 1, ASK_EVERY_MS);
        if (neighbour->asked_ns == 0 && neighbour->count >= count)
            return;
        neighbour_step(neighbour);
        if (clock_now_ns() > deadline_ns)
            harm(neighbour, "does not answer");
    }
}

void neighbour_begin(struct neighbour *neighbour)
{
    neighbour->count = 0;
    neighbour->harm[0] = '\0';
}

bool neighbour_is_well(struct neighbour *neighbour)
{
    /* At least one question after the attack. */
    ask_until(neighbour, neighbour->count + 1, ANSWER_LIMIT_MS);
    uint64_t now_ns = median(neighbour);
    if (neighbour->count >= FEW && now_ns > neighbour->usual_ns * MEDIAN_FACTOR + ms(MEDIAN_MORE_MS)) {
        char words[NEIGHBOUR_HARM_SIZE];
        (void)snprintf(words, sizeof words, "took %.1f ms to answer, usually %.1f ms", (double)now_ns / 1e6,
                       (double)neighbour->usual_ns / 1e6);
        harm(neighbour, words);
    }
    return neighbour->harm[0] == '\0';
}

int neighbour_start(struct neighbour *neighbour, const char *name, const char *const *argv, const char *const *envp,
                    struct error *err)
{
    int to[2] = {-1, -1};
    int from[2] = {-1, -1};
    int r = 0;

    neighbour->name = name;
    if (pipe2(to, O_CLOEXEC) < 0 || pipe2(from, O_CLOEXEC) < 0 || fcntl(from[0], F_SETFL, O_NONBLOCK) < 0)
        r = error_errno(err, "making pipes for %s", name);
    if (r == 0) {
        struct process process = {.argv = argv, .envp = envp, .fds = {to[0], from[1], STDERR_FILENO}};
        neighbour->pid = process_start(&process);
        if (neighbour->pid < 0) {
            r = error_set(err, ERROR_SYSTEM, (int)-neighbour->pid, "starting %s", name);
            neighbour->pid = 0;
        }
    }
    neighbour->to_fd = TAKE_FD(to[1]);
    neighbour->from_fd = TAKE_FD(from[0]);
    close_fd(&to[0]);
    close_fd(&from[1]);
    if (r < 0)
        return r;
    neighbour_begin(neighbour);
    ask_until(neighbour, 1, START_LIMIT_MS);
    neighbour->count = 0;
    ask_until(neighbour, USUAL_COUNT, START_LIMIT_MS);
    neighbour->usual_ns = median(neighbour);
    if (neighbour->harm[0] == '\0')
        return 0;
    r = error_set(err, ERROR_SYSTEM, 0, "making %s: %s", name, neighbour->harm);
    neighbour_end(neighbour);
    return r;
}

void neighbour_end(struct neighbour *neighbour)
{
    /* With the end of its input it ends by itself, and Hutch removes what it made. */
    close_fd(&neighbour->to_fd);
    for (unsigned waited_ms = 0; neighbour->pid > 0 && waited_ms < END_LIMIT_MS; waited_ms++) {
        if (waitpid(neighbour->pid, NULL, WNOHANG) != 0)
            neighbour->pid = 0;
        else
            (void)usleep(1000);
    }
    close_fd(&neighbour->from_fd);
    (void)process_end(&neighbour->pid);
    *neighbour = NEIGHBOUR_EMPTY;
}
