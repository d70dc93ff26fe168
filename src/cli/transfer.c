#include "cli/transfer.h"

#include "base/cleanup.h"
#include "base/fd.h"
#include "cli/host.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

/* The folder may be one that the command could write to: it must not have guessed the name. */
static int choose_temporary(struct transfer *transfer)
{
    uint64_t number;

    if (getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number)
        return -errno;
    (void)snprintf(transfer->temporary, sizeof transfer->temporary, ".hutch-get-%016llx", (unsigned long long)number);
    return 0;
}

static int open_source(struct transfer *transfer, struct error *err)
{
    struct stat st;
    char byte;
    int r = host_open(transfer->copy->host, transfer->option, O_RDONLY | O_NONBLOCK | O_NOCTTY, &transfer->fd, err);

    if (r < 0)
        return r;
    if (fstat(transfer->fd, &st) < 0 || !S_ISREG(st.st_mode))
        return error_set(err, ERROR_INVALID, 0, "%s: %.200s is no file", transfer->option, transfer->copy->host);
    /* Files of /proc and the like. */
    if (st.st_size == 0 && pread(transfer->fd, &byte, 1, 0) != 0)
        return error_set(err, ERROR_INVALID, 0, "%s: %.200s does not say how large it is; copy it to a file first",
                         transfer->option, transfer->copy->host);
    transfer->size = (uint64_t)st.st_size;
    transfer->mode = st.st_mode & 0777;
    return 0;
}

/* The folder it goes to, and a file there of which nobody else knows. */
static int open_destination(struct transfer *transfer, struct error *err)
{
    char folder[sizeof transfer->copy->host];
    const char *path = transfer->copy->host;
    const char *slash = strrchr(path, '/');
    struct stat st;

    (void)snprintf(folder, sizeof folder, "%.*s", slash == NULL ? 1 : (int)(slash - path) + 1,
                   slash == NULL ? "." : path);
    transfer->name = slash == NULL ? path : slash + 1;
    int r = host_open(folder, transfer->option, O_PATH | O_DIRECTORY, &transfer->folder, err);
    if (r < 0)
        return r;
    bool is_there = fstatat(transfer->folder, transfer->name, &st, AT_SYMLINK_NOFOLLOW) == 0;
    if (transfer->name[0] == '\0' || (is_there && !S_ISREG(st.st_mode)))
        return error_set(err, ERROR_INVALID, 0, "%s: %.200s is no file; give the path of one, or a name that is free",
                         transfer->option, path);
    r = choose_temporary(transfer);
    if (r < 0)
        return error_set(err, ERROR_SYSTEM, -r, "%s: choosing a name", transfer->option);
    transfer->fd =
        openat(transfer->folder, transfer->temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    return transfer->fd < 0 ? error_errno(err, "%s: making a file in %.200s", transfer->option, folder) : 0;
}

int transfer_open(struct transfer *transfer, const struct run_options *options, const struct option_copy *copy,
                  bool is_put, uint64_t channel, struct error *err)
{
    *transfer = (struct transfer){.copy = copy,
                                  .option = is_put ? "--put" : "--get",
                                  .is_put = is_put,
                                  .is_sent = !is_put,
                                  .fd = -1,
                                  .folder = -1,
                                  .limit = options->disk_bytes};
    int r = is_put ? open_source(transfer, err) : open_destination(transfer, err);
    if (r < 0)
        return r;
    transfer->question = (struct wire_file){.channel = channel,
                                            .operation = is_put ? WIRE_FILE_WRITE : WIRE_FILE_READ,
                                            .flags = is_put ? WIRE_FILE_PARENTS : 0,
                                            .uid = options->uid,
                                            .gid = options->uid,
                                            .mode = transfer->mode,
                                            .length = is_put ? transfer->size : transfer->limit,
                                            .folder = wire_str(options->folder),
                                            .path = wire_str(copy->guest),
                                            .new_path = wire_str("")};
    answer_init(&transfer->answer, &transfer->question);
    return 0;
}

void transfer_release(struct transfer *transfer)
{
    if (!transfer->is_put && !transfer->has_name && transfer->fd >= 0)
        (void)unlinkat(transfer->folder, transfer->temporary, 0);
    close_fd(&transfer->fd);
    close_fd(&transfer->folder);
}

/* The next piece of the caller's file. One that has become shorter ends early, and the sandbox will say so. */
static struct wire_message next_piece(struct transfer *transfer)
{
    static uint8_t piece[WIRE_DATA_MAX];
    uint64_t left = transfer->size - transfer->sent;
    ssize_t n = fd_read_all(transfer->fd, piece, left < sizeof piece ? (size_t)left : sizeof piece);
    struct wire_message message = {.type = WIRE_STDIN, .stdin_data = {.channel = transfer->question.channel}};

    if (n < 0)
        transfer->error = (int)-n;
    message.stdin_data.offset = transfer->sent;
    message.stdin_data.data = (struct wire_bytes){piece, n > 0 ? (uint32_t)n : 0};
    transfer->sent += message.stdin_data.data.length;
    transfer->is_sent = transfer->sent == transfer->size || n <= 0;
    message.stdin_data.end = transfer->is_sent;
    return message;
}

bool transfer_next(struct transfer *transfer, struct wire_message *ret_message)
{
    if (!transfer->is_sent && transfer->sent - transfer->taken <= WIRE_WINDOW - WIRE_DATA_MAX) {
        *ret_message = next_piece(transfer);
        return true;
    }
    if (transfer->heard - transfer->acked < WIRE_WINDOW / 2)
        return false;
    transfer->acked = transfer->heard;
    *ret_message = (struct wire_message){
        .type = WIRE_ACK, .ack = {.channel = transfer->question.channel, .stdout_offset = transfer->acked}};
    return true;
}

static void take_part(struct transfer *transfer, const struct answer_part *part)
{
    if (part->record.type == WIRE_ENTRY) {
        transfer->size = part->record.entry.size;
        transfer->mode = part->record.entry.mode & 0777;
        if (transfer->size > transfer->limit)
            transfer->error = EFBIG;
    }
    if (part->record.type != WIRE_NOTHING || transfer->error != 0)
        return;
    int r = fd_write_all(transfer->fd, part->content.data, part->content.length);
    transfer->written += part->content.length;
    transfer->error = -r;
}

static int take(struct transfer *transfer, uint64_t offset, struct wire_bytes data)
{
    struct answer_part part;
    int r;

    if (offset != transfer->heard || data.length > WIRE_WINDOW - (transfer->heard - transfer->acked))
        return -EBADMSG;
    transfer->heard += data.length;
    while ((r = answer_next(&transfer->answer, &data, &part)) > 0)
        take_part(transfer, &part);
    return r;
}

int transfer_hear(struct transfer *transfer, const struct wire_message *message)
{
    int r;

    if (transfer->ended)
        return -EBADMSG;
    switch ((int)message->type) { /* only some of them come here */
    case WIRE_STDOUT:
        return take(transfer, message->stdout_data.offset, message->stdout_data.data);
    case WIRE_TAKEN:
        if (message->taken.offset > transfer->sent || message->taken.offset < transfer->taken)
            return -EBADMSG;
        transfer->taken = message->taken.offset;
        transfer->is_sent = transfer->is_sent || message->taken.closed != 0;
        return 0;
    case WIRE_EXIT:
        r = take(transfer, message->exit.stdout_offset, message->exit.stdout_tail);
        transfer->ended = true;
        transfer->exit = message->exit;
        return r < 0 ? r : answer_end(&transfer->answer, &message->exit);
    default:
        return -EBADMSG;
    }
}

/* Of what came out: whole, the caller's, with no more than permissions, and only then under its name. */
static int give_name(struct transfer *transfer)
{
    mode_t mask = umask(0);

    (void)umask(mask);
    if (fchown(transfer->fd, host_owner_uid(), host_owner_gid()) < 0 ||
        fchmod(transfer->fd, transfer->mode & ~mask) < 0 ||
        renameat(transfer->folder, transfer->temporary, transfer->folder, transfer->name) < 0)
        return -errno;
    transfer->has_name = true;
    return 0;
}

int transfer_finish(struct transfer *transfer, struct error *err)
{
    const struct option_copy *copy = transfer->copy;
    const char *where = transfer->is_put ? "to" : "from";

    if (!transfer->ended)
        return error_set(err, ERROR_SYSTEM, 0, "%s: the sandbox ended before %.200s was copied", transfer->option,
                         copy->guest);
    if (transfer->error == 0 && transfer->exit.kind == WIRE_EXIT_SIGNAL)
        return error_set(err, ERROR_SYSTEM, 0, "%s: copying %s %.200s in the sandbox was ended by signal %u",
                         transfer->option, where, copy->guest, transfer->exit.value);
    if (transfer->error == 0 && transfer->exit.value != 0)
        return error_set(err, transfer->exit.value == ENOENT ? ERROR_NOT_FOUND : ERROR_SYSTEM,
                         (int)transfer->exit.value, "%s: copying %s %.200s in the sandbox", transfer->option, where,
                         copy->guest);
    if (transfer->error == EFBIG)
        return error_set(err, ERROR_LIMIT, 0, "%s: %.200s has %llu bytes, more than --disk allows", transfer->option,
                         copy->guest, (unsigned long long)transfer->size);
    if (transfer->error == 0 && !transfer->is_put && transfer->written < transfer->size)
        return error_set(err, ERROR_SYSTEM, 0, "%s: %.200s was cut while it was copied", transfer->option, copy->guest);
    if (transfer->error == 0 && !transfer->is_put)
        transfer->error = -give_name(transfer);
    if (transfer->error != 0)
        return error_set(err, ERROR_SYSTEM, transfer->error, "%s: copying %.200s", transfer->option, copy->host);
    return 0;
}
