/*
 * seeds: writes what the harnesses start from into a folder, made from the table so that no layout is written down
 * twice: every message in every size, everything a sender may say, and the conversations below.
 */
#include "sample.h"

#include <stdio.h>

#define MIB (UINT64_C(1) << 20)
#define TEXT(text) (const uint8_t *)(text), sizeof(text) - 1
#define STRINGS(text, count) text, sizeof(text), count

/* What fuzz_channel.c writes to the outputs before it handles a message: the number of its channel. */
#define FEED(out, err) ((uint64_t)(out) | (uint64_t)(err) << 32)

/* Messages, to be put between braces. */
#define HELLO .type = WIRE_HELLO
#define STDOUT(offset, text) .type = WIRE_STDOUT, .stdout_data = {1, offset, {TEXT(text)}}
#define STDERR(offset, text) .type = WIRE_STDERR, .stderr_data = {1, offset, {TEXT(text)}}
#define EXEC(feed, mode, cap)                                                                                          \
    .type = WIRE_EXEC, .exec = {.channel = feed, .flags = mode, .stdout_cap = cap, .stderr_cap = cap}
#define ACK(feed, out, err) .type = WIRE_ACK, .ack = {feed, out, err}
#define RESUME(feed, out, err) .type = WIRE_RESUME, .resume = {feed, out, err, 0}
#define RESUMED(feed, offset, taken) .type = WIRE_RESUMED, .resumed = {feed, 1, offset, taken, 0, 0, 500, 0}
#define INPUT(offset, end, text) .type = WIRE_STDIN, .stdin_data = {0, offset, end, {TEXT(text)}}
#define RESIZE(feed) .type = WIRE_RESIZE, .resize.channel = feed
#define ENTRY(what, path) .type = WIRE_ENTRY, .entry = {.kind = what, .mode = 0644, .name = {path, sizeof(path) - 1}}
#define EVENT(what, path) .type = WIRE_EVENT, .event = {.kind = what, .name = {path, sizeof(path) - 1}}
#define KILL .type = WIRE_SIGNAL
#define RELEASE .type = WIRE_RELEASE
#define CREATE(...)                                                                                                    \
    .type = WIRE_CREATE, .create = {.memory_bytes = 512 * MIB,                                                         \
                                    .disk_bytes = MIB,                                                                 \
                                    .disk_inodes = 1024,                                                               \
                                    .processes = 16,                                                                   \
                                    .hostname = {"sandbox", 7},                                                        \
                                    __VA_ARGS__}

static const uint8_t flags_of_two[16] = {WIRE_DIR_WRITABLE};

/* Up to the first WIRE_NOTHING. */
static const struct {
    const char *name;
    struct wire_message messages[8];
} conversations[] = {
    {"guest-short",
     {{.type = WIRE_SETUP}, {HELLO}, {.type = WIRE_EXIT, .exit = {.channel = 1, .stdout_tail = {TEXT("hello\n")}}}}},
    {"guest-stream",
     {{HELLO},
      {.type = WIRE_TAKEN, .taken = {1, 50000, 0}},
      {STDOUT(0, "one")},
      {STDERR(0, "two")},
      {STDOUT(3, "three")},
      {.type = WIRE_EXIT, .exit = {.channel = 1, .kind = WIRE_EXIT_SIGNAL, .stdout_offset = 8, .stderr_offset = 3}}}},
    {"guest-gap", {{HELLO}, {STDERR(0, "two")}, {STDERR(4, "two")}}},
    {"guest-resumed",
     {{HELLO},
      {.type = WIRE_TAKEN, .taken = {6, 400, 0}},
      {RESUMED(6, 70000, 4000)},
      {.type = WIRE_TAKEN, .taken = {6, 70000, 1}}}},
    {"guest-setup-failed", {{.type = WIRE_SETUP, .setup = {.step = 3, .error = 13}}}},
    {"channel-collect", {{EXEC(FEED(6, 3), WIRE_EXEC_COLLECT, 0)}, {KILL}, {RELEASE}}},
    {"channel-input",
     {{EXEC(FEED(1000, 0), WIRE_EXEC_STDIN, 0)},
      {INPUT(0, 0, "some ")},
      {RESUME(0, 0, 0)},
      {INPUT(5, 1, "input")},
      {RESIZE(0)},
      {RELEASE}}},
    {"channel-terminal",
     {{EXEC(FEED(1000, 0), WIRE_EXEC_TTY | WIRE_EXEC_STDIN, 0)},
      {INPUT(0, 0, "some ")},
      {RESIZE(FEED(50, 7))},
      {INPUT(5, 1, "input")},
      {.type = WIRE_CLOSE, .close.stream = WIRE_STREAM_STDOUT},
      {INPUT(10, 0, "too late")},
      {RELEASE}}},
    {"channel-terminal-ended",
     {{EXEC(FEED(65536, 0), WIRE_EXEC_TTY, 0)}, {ACK(FEED(60000, 0), 1, 0)}, {KILL}, {RESIZE(0)}, {RELEASE}}},
    {"channel-resume",
     {{EXEC(FEED(1000, 7), 0, 0)}, {ACK(0, 500, 7)}, {RESUME(0, 700, 7)}, {KILL}, {RESUME(0, 100, 0)}, {RELEASE}}},
    {"channel-wrap",
     {{EXEC(FEED(60000, 65536), 0, 0)},
      {ACK(FEED(60000, 65536), 60000, 65536)},
      {ACK(FEED(60000, 65536), 120000, 131072)},
      {RESUME(0, 180000, 196608)},
      {RELEASE}}},
    {"channel-full",
     {{EXEC(FEED(65536, 1), 0, 0)},
      {RESIZE(FEED(65536, 1))},
      {RESIZE(FEED(65536, 1))},
      {ACK(0, 131072, 0)},
      {KILL},
      {ACK(0, 196608, 3)}}},
    {"channel-cap",
     {{EXEC(FEED(60000, 60000), WIRE_EXEC_COLLECT, 100)}, {RESIZE(FEED(60000, 60000))}, {KILL}, {RESUME(0, 50, 100)}}},
    {"channel-closed",
     {{EXEC(FEED(10, 10), 0, 0)}, {.type = WIRE_CLOSE, .close = {FEED(10, 10), WIRE_STREAM_STDOUT}}, {RELEASE}}},
    {"answer-list",
     {{ENTRY(WIRE_ENTRY_FOLDER, "a")},
      {ENTRY(WIRE_ENTRY_FILE, "a/b")},
      {.type = WIRE_PROBLEM, .problem = {13, {"c", 1}}}}},
    {"answer-list-out", {{ENTRY(WIRE_ENTRY_FILE, "a/../../b")}}},
    {"answer-read", {{ENTRY(WIRE_ENTRY_FILE, "")}, {STDOUT(0, "content that looks like a message")}}},
    {"answer-watch",
     {{.type = WIRE_EVENT}, {EVENT(WIRE_EVENT_MOVED_TO, "new")}, {EVENT(WIRE_EVENT_GONE, "")}, {.type = WIRE_EVENT}}},
    {"create-plain", {{CREATE(.user = 65534)}}},
    {"create-dirs",
     {{CREATE(.flags = WIRE_CREATE_FOLDER, .dirs = {STRINGS("/workspace\0/srv/..a", 2)},
              .dir_flags = {flags_of_two, 2})}}},
    {"create-only", {{CREATE(.only = {STRINGS("ls\0/usr/bin/python3\0..a", 3)})}}},
    {"create-only-dots", {{CREATE(.only = {STRINGS("ls\0/usr/../bin/id\0..", 3)})}}},
    {"config",
     {{.type = WIRE_CONFIG,
       .config = {.id_first = 0x10000000,
                  .id_last = 0x6fffffff,
                  .listeners = {STRINGS("127.0.0.1:8080", 1)},
                  .unix_socket = {"auto", 4},
                  .templates = {STRINGS("a\0/srv/a", 2)},
                  .shares = {STRINGS("b\0/srv/b\0rw", 3)}}}}},
    {"create-names",
     {{CREATE(.flags = WIRE_CREATE_FOLDER, .template_name = {"a", 1}, .dirs = {STRINGS("/data", 1)},
              .dir_flags = {flags_of_two, 1}, .shares = {STRINGS("b\0sub", 2)})}}},
    {"create-dotdot", {{CREATE(.dirs = {STRINGS("/a/../proc", 1)}, .dir_flags = {flags_of_two, 1})}}},
};

static const char *const size_names[SAMPLE_SIZES] = {"least", "small", "most"};

static FILE *open_seed(const char *folder, const char *name, const char *size)
{
    char path[4096];

    (void)snprintf(path, sizeof path, "%s/%s%s%s", folder, name, size[0] != 0 ? "-" : "", size);
    return fopen(path, "wb");
}

static bool write_message(FILE *file, const struct wire_message *message)
{
    static uint8_t frame[WIRE_FRAME_MAX];
    int length = wire_encode(message, frame, sizeof frame);

    return file != NULL && length > 0 && fwrite(frame, (size_t)length, 1, file) == 1;
}

/* The rows from `row` on that `sender` may send, one frame after the other. */
static bool write_rows(FILE *file, size_t row, size_t end, unsigned sender, enum sample_size size)
{
    for (; row < end; row++) {
        struct wire_message message;
        (void)sample_fill(row, size, SAMPLE_NONE, &message);
        if ((sample_rows[row].senders & sender) != 0 && !write_message(file, &message))
            return false;
    }
    return file != NULL && fclose(file) == 0;
}

static bool write_table(const char *folder)
{
    bool good = true;

    for (enum sample_size size = SAMPLE_LEAST; size < SAMPLE_SIZES; size++) {
        for (size_t row = 0; good && row < sample_count; row++)
            good = write_rows(open_seed(folder, sample_rows[row].name, size_names[size]), row, row + 1, ~0U, size);
    }
    for (unsigned sender = WIRE_BY_CLIENT; good && sender <= WIRE_BY_WORKER; sender *= 2) {
        char name[32];
        (void)snprintf(name, sizeof name, "all-by-%u", sender);
        good = write_rows(open_seed(folder, name, ""), 0, sample_count, sender, SAMPLE_LEAST);
    }
    return good;
}

static bool write_conversations(const char *folder)
{
    bool good = true;

    for (size_t i = 0; good && i < sizeof conversations / sizeof *conversations; i++) {
        FILE *file = open_seed(folder, conversations[i].name, "");
        for (const struct wire_message *message = conversations[i].messages; good && message->type != WIRE_NOTHING;
             message++)
            good = write_message(file, message);
        good = file != NULL && fclose(file) == 0 && good;
    }
    return good;
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    return write_table(argv[1]) && write_conversations(argv[1]) ? 0 : 1;
}
