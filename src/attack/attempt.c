#include "attack/attempt.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LINE_SIZE = 512 };

/* One write, whatever else goes on: attempts fork and run out of memory. */
static void say(const char *verdict, const char *what, const char *detail)
{
    char line[LINE_SIZE];
    int n = snprintf(line, sizeof line, "%s\t%s\t%s\n", verdict, what, detail);

    if (n < 0)
        return;
    size_t length = (size_t)n < sizeof line ? (size_t)n : sizeof line - 1;
    /* What was seen may have lines of its own. */
    for (size_t i = 0; i < length; i++)
        line[i] = (char)(line[i] == '\n' ? ' ' : line[i]);
    line[length - 1] = '\n';
    ignore_result(write(STDOUT_FILENO, line, length));
}

void attempt_call(struct attempt *attempt, const char *what, long result, const int *refusals)
{
    int error = errno;

    attempt->count++;
    if (result >= 0) {
        say("through", what, "it worked");
        return;
    }
    for (; *refusals != 0; refusals++) {
        if (*refusals == error) {
            say("refused", what, strerror(error));
            return;
        }
    }
    say("through", what, strerror(error));
}

void attempt_say(struct attempt *attempt, const char *what, bool refused, const char *format, ...)
{
    char detail[LINE_SIZE / 2];
    va_list args;

    attempt->count++;
    va_start(args, format);
    (void)vsnprintf(detail, sizeof detail, format, args);
    va_end(args);
    say(refused ? "refused" : "through", what, refused ? "it does not work" : detail);
}

long attempt_only_parent(long pid)
{
    int error = errno;

    if (pid == 0)
        _exit(0);
    if (pid > 0)
        (void)waitpid((pid_t)pid, NULL, __WALL);
    errno = error;
    return pid;
}

void attempt_absent(struct attempt *attempt, const char *what, const char *why)
{
    attempt->count++;
    say("absent", what, why);
}

const char *attempt_canary(const char *name)
{
    char variable[64];

    (void)snprintf(variable, sizeof variable, "HUTCH_ATTACK_%s", name);
    const char *value = getenv(variable);
    return value != NULL ? value : "";
}

long attempt_canary_number(const char *name)
{
    return strtol(attempt_canary(name), NULL, 10);
}

int attempt_run(attempt_fn *inside)
{
    struct attempt attempt = {0};

    inside(&attempt);
    say("done", "", "");
    return 0;
}
