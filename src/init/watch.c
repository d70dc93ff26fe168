#include "base/cleanup.h"
#include "init/files.h"
#include "init/reply.h"

#include <poll.h>
#include <sys/inotify.h>

/* The first that matches; an event has one of them. */
static const struct {
    uint32_t mask;
    enum wire_event_kind kind;
} kinds[] = {
    {IN_CREATE, WIRE_EVENT_CREATED},
    {IN_MODIFY, WIRE_EVENT_MODIFIED},
    {IN_CLOSE_WRITE, WIRE_EVENT_CLOSED},
    {IN_ATTRIB, WIRE_EVENT_CHANGED},
    {IN_DELETE, WIRE_EVENT_REMOVED},
    {IN_MOVED_FROM, WIRE_EVENT_MOVED_FROM},
    {IN_MOVED_TO, WIRE_EVENT_MOVED_TO},
    {IN_Q_OVERFLOW, WIRE_EVENT_OVERFLOW},
    {IN_DELETE_SELF | IN_MOVE_SELF | IN_UNMOUNT | IN_IGNORED, WIRE_EVENT_GONE},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

#define WATCHED                                                                                                        \
    (IN_CREATE | IN_MODIFY | IN_CLOSE_WRITE | IN_ATTRIB | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE_SELF |   \
     IN_MOVE_SELF)

/* 1 when it was the last one. */
static int tell(enum wire_event_kind kind, const struct inotify_event *event)
{
    struct wire_message record = {.type = WIRE_EVENT, .event = {.kind = (uint8_t)kind, .name = wire_str("")}};

    if (event != NULL) {
        record.event.is_folder = (event->mask & IN_ISDIR) != 0;
        record.event.cookie = event->cookie;
        if (event->len > 0)
            record.event.name = wire_str(event->name);
    }
    int r = reply_record(&record);
    return r < 0 ? r : kind == WIRE_EVENT_GONE;
}

static int tell_some(int fd)
{
    _Alignas(struct inotify_event) char events[8192];
    ssize_t n = read(fd, events, sizeof events);
    int r = 0;

    if (n < 0)
        return errno == EAGAIN ? 0 : -errno;
    for (ssize_t at = 0; r == 0 && at < n;) {
        const struct inotify_event *event = (const struct inotify_event *)(const void *)(events + at);
        at += (ssize_t)(sizeof *event + event->len);
        for (size_t i = 0; i < KINDS; i++) {
            if ((event->mask & kinds[i].mask) != 0) {
                r = tell(kinds[i].kind, event);
                break;
            }
        }
    }
    int flushed = reply_flush();
    return flushed < 0 ? flushed : r;
}

int files_watch(const struct wire_file *file)
{
    _cleanup_fd_ int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);

    if (fd < 0 || inotify_add_watch(fd, file->path.text, WATCHED) < 0)
        return -errno;
    int r = tell(WIRE_EVENT_WATCHING, NULL);
    if (r == 0)
        r = reply_flush();
    while (r == 0) {
        struct pollfd ready[] = {{.fd = fd, .events = POLLIN}, {.fd = STDOUT_FILENO}};
        if (poll(ready, 2, -1) < 0)
            return -errno;
        r = ready[1].revents != 0 ? -EPIPE : tell_some(fd);
    }
    return r < 0 ? r : 0;
}
