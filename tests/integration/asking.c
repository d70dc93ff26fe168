#include "asking.h"

#include "base/cleanup.h"
#include "base/fd.h"

#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>

struct wire_file question(enum wire_file_operation operation, const char *path, uint32_t flags)
{
    return (struct wire_file){.channel = 1,
                              .operation = (uint8_t)operation,
                              .flags = flags,
                              .uid = ASKING_USER,
                              .gid = ASKING_USER,
                              .mode = 0644,
                              .length = WIRE_FILE_ALL,
                              .folder = wire_str("/"),
                              .path = wire_str(path),
                              .new_path = wire_str("")};
}

void ask(const struct guest *guest, const struct wire_file *file, struct asked *asked)
{
    struct wire_message message = {.type = WIRE_FILE, .file = *file};

    asked->content = buf_init(ASKING_LONGEST);
    answer_init(&asked->answer, file);
    guest_send(guest, &message);
}

static void keep(char room[4097], struct wire_str *text)
{
    memcpy(room, text->text, text->length + 1);
    text->text = room;
}

static void take_record(struct asked *asked, const struct wire_message *record)
{
    asked->records++;
    switch ((int)record->type) {
    case WIRE_ENTRY:
        asked->entry = record->entry;
        keep(asked->name, &asked->entry.name);
        keep(asked->target, &asked->entry.target);
        break;
    case WIRE_EVENT:
        asked->event = record->event;
        keep(asked->name, &asked->event.name);
        break;
    case WIRE_WRITTEN:
        asked->written = record->written.bytes;
        break;
    default:
        asked->problems++;
        asked->last_problem = record->problem.error;
    }
    if (asked->on_record != NULL)
        asked->on_record(record, asked->context);
}

static bool take(struct asked *asked, uint64_t offset, struct wire_bytes data)
{
    struct answer_part part;
    int r;

    if (offset != asked->heard)
        return false;
    asked->heard += data.length;
    while ((r = answer_next(&asked->answer, &data, &part)) > 0) {
        if (part.record.type != WIRE_NOTHING)
            take_record(asked, &part.record);
        else if (buf_append(&asked->content, part.content.data, part.content.length) < 0)
            return false;
    }
    asked->is_broken = asked->is_broken || r < 0;
    return r == 0;
}

bool asked_hear(const struct guest *guest, uint64_t channel, struct asked *asked)
{
    const struct wire_message *message = &guest->message;

    if (message->ack.channel != channel)
        return false;
    if (message->type == WIRE_STDOUT)
        return take(asked, message->stdout_data.offset, message->stdout_data.data);
    if (message->type != WIRE_EXIT)
        return message->type == WIRE_TAKEN;
    asked->has_ended = true;
    asked->exit = message->exit;
    return take(asked, message->exit.stdout_offset, message->exit.stdout_tail) &&
           answer_end(&asked->answer, &message->exit) == 0;
}

bool asked_finish(struct guest *guest, uint64_t channel, const void *input, size_t length, struct asked *asked)
{
    uint64_t taken = 0;
    uint64_t acked = asked->heard;
    size_t sent = 0;
    bool ended = input == NULL;

    while (!asked->has_ended) {
        while (!ended && sent - taken <= WIRE_WINDOW - WIRE_DATA_MAX) {
            size_t part = length - sent < WIRE_DATA_MAX ? length - sent : WIRE_DATA_MAX;
            ended = sent + part == length;
            guest_stdin(guest, channel, sent, (const uint8_t *)input + sent, part, ended);
            sent += part;
        }
        if (!guest_receive_within(guest, GUEST_WAIT_MS) || !asked_hear(guest, channel, asked))
            return false;
        if (guest->message.type == WIRE_TAKEN) {
            taken = guest->message.taken.offset;
            ended = ended || guest->message.taken.closed != 0;
        }
        if (asked->heard - acked >= WIRE_WINDOW / 2) {
            acked = asked->heard;
            guest_ack(guest, channel, acked, 0);
        }
    }
    return true;
}

void asked_release(const struct guest *guest, uint64_t channel, struct asked *asked)
{
    guest_release(guest, channel);
    buf_release(&asked->content);
}

int asked_once(struct guest *guest, struct wire_file file, const void *input, size_t length, struct asked *asked)
{
    ask(guest, &file, asked);
    bool is_sound = asked_finish(guest, file.channel, input, length, asked);
    guest_release(guest, file.channel);
    return is_sound && asked->exit.kind != WIRE_EXIT_SIGNAL ? (int)asked->exit.value : -1;
}

int asked_simply(struct guest *guest, struct wire_file file)
{
    struct asked asked = {0};
    int error = asked_once(
        guest, file, file.operation == WIRE_FILE_WRITE || file.operation == WIRE_FILE_APPEND ? "x" : NULL, 1, &asked);

    buf_release(&asked.content);
    return error;
}

char asking_folder[64];

const char *in_folder(const char *name)
{
    static char rooms[IN_FOLDER_ROOMS][PATH_MAX];
    static unsigned next;
    char *room = rooms[next++ % IN_FOLDER_ROOMS];

    (void)snprintf(room, sizeof rooms[0], "%s/%s", asking_folder, name);
    return room;
}

/* What init inherits as standard input and error can be read, should a worker leave it open. */
static bool give_init_a_file(void)
{
    _cleanup_fd_ int fd = open(in_folder("inherited"), O_RDWR | O_CREAT | O_CLOEXEC, 0666);

    return fd >= 0 && dup2(fd, STDIN_FILENO) >= 0 && dup2(fd, STDERR_FILENO) >= 0;
}

static bool set_up(void)
{
    (void)snprintf(asking_folder, sizeof asking_folder, "/tmp/hutch-files-%d", getpid());
    return unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           mkdir(asking_folder, 0755) == 0 && mount("tmpfs", asking_folder, "tmpfs", 0, "mode=0777") == 0 &&
           give_init_a_file();
}

int asking_main(int argc, char **argv, const struct guest_case *cases, size_t count)
{
    if (!set_up()) {
        perror("a file system of our own");
        return 2;
    }
    int status = guest_main(argc, argv, cases, count);
    (void)umount2(asking_folder, MNT_DETACH);
    (void)rmdir(asking_folder);
    return status;
}

bool asking_write(const char *name, const void *data, size_t length)
{
    _cleanup_fd_ int fd = open(in_folder(name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

    return fd >= 0 && fd_write_all(fd, data, length) == 0 && fchown(fd, ASKING_USER, ASKING_USER) == 0;
}

bool asking_holds(const char *name, const void *data, size_t length)
{
    static uint8_t room[16 << 20];
    _cleanup_fd_ int fd = open(in_folder(name), O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? fd_read_all(fd, room, sizeof room) : -1;

    return n == (ssize_t)length && memcmp(room, data, length) == 0;
}

bool asking_is_there(const char *name)
{
    struct stat st;

    return lstat(in_folder(name), &st) == 0;
}
