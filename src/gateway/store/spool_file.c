/*
 * The file: a header, SPOOL_RUNS_ROOM runs, then the bytes. Runs and bytes are rings: a byte lies at its position
 * modulo the room for them, which is SPOOL_SLACK more than `cap`. So what one write overwrites was given up by the
 * header before it.
 */
#include "gateway/store/spool_file.h"

#include "base/cleanup.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

enum { RUNS_AT = 4096, CAP_MAX = 256 << 20 };

#define MAGIC UINT64_C(0x314c4f4f50534855) /* "UHSPOOL1" */

struct header {
    uint64_t magic;
    uint64_t cap;
    uint64_t first;
    uint64_t next;
    uint64_t run_first;
    uint64_t run_next;
    uint64_t boot;
};

struct run {
    uint64_t position;
    uint64_t offset_and_stream; /* the lowest bit: stream - 1 */
};

#define DATA_AT ((uint64_t)RUNS_AT + SPOOL_RUNS_ROOM * sizeof(struct run))

static uint64_t room_of(const struct spool_file *file)
{
    return file->cap + SPOOL_SLACK;
}

static int write_at(const struct spool_file *file, const void *data, size_t length, uint64_t at, struct error *err)
{
    const uint8_t *bytes = data;

    while (length > 0) {
        ssize_t n = pwrite(file->fd, bytes, length, (off_t)at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return error_errno(err, "spooling output: is the disk full?");
        bytes += n;
        at += (uint64_t)n;
        length -= (size_t)n;
    }
    return 0;
}

static int read_at(const struct spool_file *file, void *data, size_t length, uint64_t at, struct error *err)
{
    uint8_t *bytes = data;

    while (length > 0) {
        ssize_t n = pread(file->fd, bytes, length, (off_t)at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return error_errno(err, "reading spooled output");
        if (n == 0)
            return error_set(err, ERROR_INVALID, EBADMSG, "spooled output that ends too early");
        bytes += n;
        at += (uint64_t)n;
        length -= (size_t)n;
    }
    return 0;
}

static int write_header(const struct spool_file *file, struct error *err)
{
    struct header header = {.magic = MAGIC,
                            .cap = file->cap,
                            .first = file->first,
                            .next = file->next,
                            .run_first = file->run_first,
                            .run_next = file->run_next,
                            .boot = file->boot};

    return write_at(file, &header, sizeof header, 0, err);
}

static uint64_t run_at(uint64_t number)
{
    return RUNS_AT + number % SPOOL_RUNS_ROOM * sizeof(struct run);
}

uint64_t spool_file_size(uint64_t cap)
{
    return DATA_AT + cap + SPOOL_SLACK;
}

static int take_space(int fd, uint64_t size)
{
    int r;

    do {
        r = fallocate(fd, 0, 0, (off_t)size) < 0 ? -errno : 0;
    } while (r == -EINTR);
    return r;
}

int spool_file_make(struct spool_file *file, const char *path, uint64_t cap, uint64_t boot, struct error *err)
{
    if (cap == 0 || cap > CAP_MAX)
        return error_set(err, ERROR_INVALID, EINVAL, "spooling %llu bytes", (unsigned long long)cap);
    *file = (struct spool_file){.fd = -1, .cap = cap, .boot = boot};
    _cleanup_fd_ int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return error_errno(err, "making %s", path);
    int r = take_space(fd, spool_file_size(cap));
    if (r < 0) {
        r = error_set(err, ERROR_SYSTEM, -r, "taking space for %s: is the disk full?", path);
        (void)unlink(path);
        return r;
    }
    file->fd = TAKE_FD(fd);
    return 0;
}

static int write_bytes(const struct spool_file *file, const struct store_output *piece, struct error *err)
{
    uint64_t at = piece->position % room_of(file);
    uint64_t first = room_of(file) - at < piece->length ? room_of(file) - at : piece->length;
    int r = write_at(file, piece->data, first, DATA_AT + at, err);

    return r == 0 ? write_at(file, (const uint8_t *)piece->data + first, piece->length - first, DATA_AT, err) : r;
}

static int write_piece(struct spool_file *file, const struct store_output *piece, struct error *err)
{
    struct run run = {.position = piece->position, .offset_and_stream = piece->offset << 1 | (piece->stream - 1U)};
    int r = write_bytes(file, piece, err);

    if (r == 0 && (file->run_next == file->run_first || piece->stream != file->stream)) {
        r = write_at(file, &run, sizeof run, run_at(file->run_next), err);
        file->run_next++;
    }
    file->stream = piece->stream;
    file->next = piece->position + piece->length;
    return r;
}

/* Too many runs: the oldest go, with their bytes. */
static int forget_runs(struct spool_file *file, struct error *err)
{
    struct run run;

    if (file->run_next - file->run_first <= SPOOL_RUNS_KEPT)
        return 0;
    file->run_first = file->run_next - SPOOL_RUNS_KEPT;
    int r = read_at(file, &run, sizeof run, run_at(file->run_first), err);
    if (r == 0 && run.position > file->first)
        file->first = run.position;
    return r;
}

static int check_pieces(const struct spool_file *file, const struct store_output *pieces, size_t count,
                        struct error *err)
{
    uint64_t next = file->run_next > 0 ? file->next : count > 0 ? pieces[0].position : 0;
    uint64_t length = 0;

    for (size_t i = 0; i < count; i++) {
        if (pieces[i].position != next || pieces[i].stream < 1 || pieces[i].stream > 2 || pieces[i].length == 0)
            return error_set(err, ERROR_INVALID, EINVAL, "spooling output at %llu, but %llu comes next",
                             (unsigned long long)pieces[i].position, (unsigned long long)next);
        next += pieces[i].length;
        length += pieces[i].length;
    }
    return count == 0 || count > SPOOL_PIECES_MAX || length > SPOOL_SLACK
               ? error_set(err, ERROR_INVALID, EINVAL, "spooling %llu bytes at once", (unsigned long long)length)
               : 0;
}

int spool_file_write(struct spool_file *file, const struct store_output *pieces, size_t count, struct error *err)
{
    int r = check_pieces(file, pieces, count, err);

    if (r == 0 && file->run_next == 0)
        file->first = pieces[0].position;
    for (size_t i = 0; r == 0 && i < count; i++)
        r = write_piece(file, &pieces[i], err);
    if (r < 0)
        return r;
    if (file->next > file->cap && file->next - file->cap > file->first)
        file->first = file->next - file->cap;
    r = forget_runs(file, err);
    return r == 0 ? write_header(file, err) : r;
}

static bool is_sane(const struct header *header, uint64_t size, uint64_t boot)
{
    return header->magic == MAGIC && header->cap > 0 && header->cap <= CAP_MAX &&
           size >= spool_file_size(header->cap) && header->first < header->next &&
           header->next - header->first <= header->cap && header->run_first < header->run_next &&
           header->run_next - header->run_first <= SPOOL_RUNS_KEPT && header->boot == boot;
}

int spool_file_open(struct spool_file *file, const char *path, uint64_t boot, struct error *err)
{
    struct header header = {0};
    struct stat status;

    *file = (struct spool_file){.fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)};
    if (file->fd < 0 || fstat(file->fd, &status) < 0) {
        int r = error_errno(err, "opening %s", path);
        spool_file_close(file);
        return r;
    }
    int r = read_at(file, &header, sizeof header, 0, err);
    if (r == 0 && !is_sane(&header, (uint64_t)status.st_size, boot))
        r = error_set(err, ERROR_INVALID, EBADMSG, "%s is not whole", path);
    if (r < 0) {
        spool_file_close(file);
        return r;
    }
    *file = (struct spool_file){.fd = file->fd,
                                .cap = header.cap,
                                .boot = header.boot,
                                .first = header.first,
                                .next = header.next,
                                .run_first = header.run_first,
                                .run_next = header.run_next};
    return 0;
}

/* The run that `position` lies in, and where that ends. The next search starts there: positions come in order. */
static int find_run(struct spool_file *file, uint64_t position, struct run *ret_run, uint64_t *ret_end,
                    struct error *err)
{
    struct run next = {0};
    int r = read_at(file, ret_run, sizeof *ret_run, run_at(file->run_first), err);

    *ret_end = file->next;
    while (r == 0 && file->run_first + 1 < file->run_next) {
        r = read_at(file, &next, sizeof next, run_at(file->run_first + 1), err);
        if (next.position > position) {
            *ret_end = next.position;
            break;
        }
        *ret_run = next;
        file->run_first++;
    }
    if (r == 0 && (ret_run->position > position || *ret_end > file->next))
        r = error_set(err, ERROR_INVALID, EBADMSG, "spooled output whose runs are not in order");
    return r;
}

int spool_file_read(struct spool_file *file, uint64_t position, void *buffer, size_t size,
                    struct store_output *ret_output, struct error *err)
{
    struct run run = {0};
    uint64_t end = 0;

    position = position > file->first ? position : file->first;
    if (position >= file->next)
        return 0;
    int r = find_run(file, position, &run, &end, err);
    if (r < 0)
        return r;
    uint64_t at = position % room_of(file);
    size_t length = end - position < size ? (size_t)(end - position) : size;
    length = room_of(file) - at < length ? (size_t)(room_of(file) - at) : length;
    r = read_at(file, buffer, length, DATA_AT + at, err);
    *ret_output = (struct store_output){.position = position,
                                        .stream = (uint8_t)(1 + (run.offset_and_stream & 1)),
                                        .offset = (run.offset_and_stream >> 1) + (position - run.position),
                                        .data = buffer,
                                        .length = length,
                                        .keep_bytes = file->cap};
    return r < 0 ? r : 1;
}

void spool_file_close(struct spool_file *file)
{
    close_fd(&file->fd);
}
