#include "init/reply.h"

#include "base/fd.h"

#include <unistd.h>

static uint8_t gathered[WIRE_FRAME_MAX];
static size_t length;

int reply_flush(void)
{
    size_t n = length;

    length = 0;
    return n > 0 ? fd_write_all(STDOUT_FILENO, gathered, n) : 0;
}

int reply_record(const struct wire_message *record)
{
    int n = wire_encode(record, gathered + length, sizeof gathered - length);

    if (n < 0) {
        int r = reply_flush();
        if (r < 0)
            return r;
        n = wire_encode(record, gathered, sizeof gathered);
    }
    if (n < 0)
        return n;
    length += (size_t)n;
    return 0;
}

static uint8_t kind_of(mode_t mode)
{
    static const uint8_t kinds[S_IFMT / S_IFIFO + 1] = {
        [S_IFREG / S_IFIFO] = WIRE_ENTRY_FILE,    [S_IFDIR / S_IFIFO] = WIRE_ENTRY_FOLDER,
        [S_IFLNK / S_IFIFO] = WIRE_ENTRY_SYMLINK, [S_IFIFO / S_IFIFO] = WIRE_ENTRY_FIFO,
        [S_IFSOCK / S_IFIFO] = WIRE_ENTRY_SOCKET, [S_IFCHR / S_IFIFO] = WIRE_ENTRY_DEVICE,
        [S_IFBLK / S_IFIFO] = WIRE_ENTRY_DEVICE,
    };

    return kinds[(mode & S_IFMT) / S_IFIFO];
}

/* Times before 1970 and after 2554 are somebody's joke. */
static uint64_t nanoseconds(struct timespec time)
{
    uint64_t seconds = time.tv_sec < 0 ? 0 : (uint64_t)time.tv_sec;

    return seconds > UINT64_MAX / 1000000000U - 1 ? UINT64_MAX : seconds * 1000000000U + (uint64_t)time.tv_nsec;
}

int reply_entry(const struct stat *st, const char *name, const char *target)
{
    struct wire_message record = {.type = WIRE_ENTRY,
                                  .entry = {.kind = kind_of(st->st_mode),
                                            .mode = st->st_mode & 07777,
                                            .uid = st->st_uid,
                                            .gid = st->st_gid,
                                            .size = (uint64_t)st->st_size,
                                            .modified_ns = nanoseconds(st->st_mtim),
                                            .name = wire_str(name),
                                            .target = wire_str(target)}};

    return reply_record(&record);
}

int reply_problem(int error, const char *path)
{
    struct wire_message record = {.type = WIRE_PROBLEM, .problem = {.error = (uint32_t)error, .path = wire_str(path)}};

    return reply_record(&record);
}
