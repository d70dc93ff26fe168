#include "keeper/ids.h"

#include "base/cleanup.h"
#include "base/fd.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { SUBID_FILE_MAX = 65536 };

struct ids {
    int fd;
    uint32_t first_slot;
    uint32_t slot_count;
    uint32_t next;   /* where the next search starts */
    uint8_t taken[]; /* one bit per slot, ours or another tool's: a lock does not exclude its own holder */
};

static bool is_taken(const struct ids *ids, uint32_t i)
{
    return (ids->taken[i / 8] & (1U << (i % 8))) != 0;
}

static void set_taken(struct ids *ids, uint32_t i, bool taken)
{
    uint8_t bit = (uint8_t)(1U << (i % 8));

    ids->taken[i / 8] = (uint8_t)(taken ? ids->taken[i / 8] | bit : ids->taken[i / 8] & ~bit);
}

static int lock_slot(const struct ids *ids, uint32_t slot, short type)
{
    struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = slot, .l_len = 1};

    return fcntl(ids->fd, F_OFD_SETLK, &lock) < 0 ? -errno : 0;
}

static void exclude_range(struct ids *ids, unsigned long long start, unsigned long long count)
{
    if (count == 0)
        return;
    unsigned long long low = start / IDS_PER_SANDBOX;
    unsigned long long last = count - 1 > ~0ULL - start ? ~0ULL : start + count - 1;
    unsigned long long high = last / IDS_PER_SANDBOX;
    for (uint32_t i = 0; i < ids->slot_count; i++) {
        if (ids->first_slot + i >= low && ids->first_slot + i <= high)
            set_taken(ids, i, true);
    }
}

/* Lines of name:start:count, as in subuid(5). */
static int exclude_file(struct ids *ids, const char *path, struct error *err)
{
    static char text[SUBID_FILE_MAX]; /* too much for the stack, and there is one thread */
    char *save = NULL;
    _cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return errno == ENOENT ? 0 : error_errno(err, "reading %s", path);
    ssize_t n = fd_read_all(fd, text, sizeof text);
    if (n < 0 || n == (ssize_t)sizeof text)
        return error_set(err, ERROR_SYSTEM, n < 0 ? (int)-n : EFBIG, "reading %s", path);
    text[n] = '\0';
    for (char *line = strtok_r(text, "\n", &save); line != NULL; line = strtok_r(NULL, "\n", &save)) {
        const char *start = strchr(line, ':');
        const char *count = start != NULL ? strchr(start + 1, ':') : NULL;
        if (count != NULL)
            exclude_range(ids, strtoull(start + 1, NULL, 10), strtoull(count + 1, NULL, 10));
    }
    return 0;
}

int ids_new(int run_fd, uint32_t first, uint32_t last, struct ids **ret_ids, struct error *err)
{
    uint32_t count = (last - first) / IDS_PER_SANDBOX + 1;
    struct ids *ids = calloc(1, sizeof *ids + count / 8 + 1);

    if (ids == NULL)
        return error_set(err, ERROR_SYSTEM, ENOMEM, "claiming user ids");
    ids->first_slot = first / IDS_PER_SANDBOX;
    ids->slot_count = count;
    ids->next = (uint32_t)getpid() * 31U % count; /* so that keepers seldom try the same one */
    ids->fd = openat(run_fd, "ids", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    int r = ids->fd < 0 ? error_errno(err, "opening /run/hutch/ids") : exclude_file(ids, "/etc/subuid", err);
    if (r == 0)
        r = exclude_file(ids, "/etc/subgid", err);
    if (r < 0) {
        ids_free(ids);
        return r;
    }
    *ret_ids = ids;
    return 0;
}

void ids_free(struct ids *ids)
{
    if (ids == NULL)
        return;
    close_fd(&ids->fd);
    free(ids);
}

int ids_claim(struct ids *ids, uint32_t *ret_first, struct error *err)
{
    for (uint32_t tried = 0; tried < ids->slot_count; tried++) {
        uint32_t i = (ids->next + tried) % ids->slot_count;
        if (is_taken(ids, i))
            continue;
        int r = lock_slot(ids, ids->first_slot + i, F_WRLCK);
        if (r == -EAGAIN || r == -EACCES)
            continue;
        if (r < 0)
            return error_set(err, ERROR_SYSTEM, -r, "locking a range in /run/hutch/ids");
        set_taken(ids, i, true);
        ids->next = (i + 1) % ids->slot_count;
        *ret_first = (ids->first_slot + i) * IDS_PER_SANDBOX;
        return 0;
    }
    return error_set(err, ERROR_LIMIT, EAGAIN, "all %u ranges of user ids are in use; end a sandbox or widen the range",
                     ids->slot_count);
}

uint32_t ids_available(const struct ids *ids)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < ids->slot_count; i++)
        count += is_taken(ids, i) ? 0 : 1;
    return count;
}

int ids_claim_fd(const struct ids *ids)
{
    return ids->fd;
}

void ids_release(struct ids *ids, uint32_t first)
{
    uint32_t slot = first / IDS_PER_SANDBOX;

    if (lock_slot(ids, slot, F_UNLCK) == 0)
        set_taken(ids, slot - ids->first_slot, false);
}
