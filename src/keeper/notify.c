#include "keeper/notify.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/parse.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

void notify_send(const char *state)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    const char *path = getenv("NOTIFY_SOCKET");
    size_t length = path != NULL ? strlen(path) : 0;

    if (length < 2 || length >= sizeof to.sun_path || (path[0] != '/' && path[0] != '@'))
        return;
    memcpy(to.sun_path, path, length);
    /* A name without a file. */
    if (to.sun_path[0] == '@')
        to.sun_path[0] = '\0';
    _cleanup_fd_ int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd >= 0)
        (void)sendto(fd, state, strlen(state), MSG_NOSIGNAL | MSG_DONTWAIT, (const struct sockaddr *)&to,
                     (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length));
}

void notify_reloading(void)
{
    char state[64];

    (void)snprintf(state, sizeof state, "RELOADING=1\nMONOTONIC_USEC=%llu",
                   (unsigned long long)(clock_now_ns() / 1000));
    notify_send(state);
}

uint64_t notify_watchdog_ns(void)
{
    const char *pid = getenv("WATCHDOG_PID");
    const char *text = getenv("WATCHDOG_USEC");
    uint64_t number;

    if (text == NULL || parse_u64(text, &number) < 0 || number > UINT64_MAX / 1000)
        return 0;
    uint64_t allowed_ns = number * 1000;
    if (pid != NULL && (parse_u64(pid, &number) < 0 || number != (uint64_t)getpid()))
        return 0;
    return allowed_ns / 2;
}
