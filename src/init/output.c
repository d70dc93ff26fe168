#include "init/output.h"

#include "base/cleanup.h"
#include "wire/wire.h"

#include <stdlib.h>
#include <sys/uio.h>

enum { DROP_AT_ONCE = 16384 };

void output_init(struct output *output, int fd, uint64_t cap)
{
    *output = (struct output){.fd = fd, .cap = cap};
}

void output_release(struct output *output)
{
    close_fd(&output->fd);
    free(output->ring);
    output->ring = NULL;
}

static bool is_dropping(const struct output *output)
{
    return output->cap != 0 && output->stored >= output->cap;
}

bool output_has_room(const struct output *output)
{
    return is_dropping(output) || output->stored - output->acked < WIRE_WINDOW;
}

static ssize_t drop(const struct output *output)
{
    uint8_t nowhere[DROP_AT_ONCE];

    return read(output->fd, nowhere, sizeof nowhere);
}

static ssize_t store(struct output *output)
{
    size_t at = output->stored % WIRE_WINDOW;
    size_t room = WIRE_WINDOW - (size_t)(output->stored - output->acked);

    if (output->cap != 0 && output->cap - output->stored < room)
        room = (size_t)(output->cap - output->stored);
    size_t first = room < WIRE_WINDOW - at ? room : WIRE_WINDOW - at;
    struct iovec parts[] = {{output->ring + at, first}, {output->ring, room - first}};
    return readv(output->fd, parts, 2);
}

int output_read(struct output *output)
{
    bool dropping = is_dropping(output);

    if (!dropping && output->ring == NULL) {
        output->ring = malloc(WIRE_WINDOW);
        if (output->ring == NULL)
            return -ENOMEM;
    }
    ssize_t n;
    do {
        n = dropping ? drop(output) : store(output);
    } while (n < 0 && errno == EINTR);
    /* A terminal that nobody has open any more says EIO, when everything was read. */
    if (n < 0 && errno != EIO)
        return -errno;
    if (n <= 0) {
        close_fd(&output->fd);
        return 0;
    }
    output->total += (uint64_t)n;
    if (!dropping)
        output->stored += (uint64_t)n;
    return 1;
}

size_t output_next(const struct output *output, size_t most, const uint8_t **ret_data)
{
    size_t at = output->sent % WIRE_WINDOW;
    uint64_t length = output_unsent(output);

    if (length > WIRE_WINDOW - at)
        length = WIRE_WINDOW - at;
    *ret_data = length > 0 ? output->ring + at : NULL;
    return length < most ? (size_t)length : most;
}

int output_ack(struct output *output, uint64_t offset)
{
    if (offset > output->sent && offset > output->resumed)
        return -EINVAL;
    if (offset > output->acked)
        output->acked = offset;
    /* What a new client heard of what was under way to the old one need not be sent again. */
    if (offset > output->sent)
        output->sent = offset;
    return 0;
}

int output_resume(struct output *output, uint64_t offset)
{
    if (offset > output->stored)
        return -EINVAL;
    if (output->sent > output->resumed)
        output->resumed = output->sent;
    if (offset > output->acked)
        output->acked = offset;
    output->sent = output->acked;
    return 0;
}
