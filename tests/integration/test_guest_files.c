/*
 * test_guest_files: hutch-init on the guest link, without a sandbox around it: single files, read and written by its
 * workers. Every case has an init of its own; all share one file system, on which each uses names of its own.
 *
 *     test_guest_files HUTCH-INIT PAYLOAD
 */
#include "asking.h"

#include "base/clock.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FAR = 1 << 30, MIB = 1 << 20, BIG = 5 * MIB + 7 };

static uint8_t bytes[BIG];

static void fill(void)
{
    for (size_t i = 0; i < BIG; i++)
        bytes[i] = (uint8_t)(i * 31 + i / 251);
}

static void writes_and_reads(struct guest *guest)
{
    static const size_t sizes[] = {0, 1, 4095, 30720, 30721, 65536, MIB, MIB + 1, BIG};

    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct asked wrote = {0};
        struct asked read = {0};
        struct wire_file file = question(WIRE_FILE_WRITE, in_folder("round"), 0);
        file.length = i % 2 == 0 ? sizes[i] : WIRE_FILE_ALL;
        file.mode = 0640;
        CHECK(asked_once(guest, file, bytes, sizes[i], &wrote) == 0 && wrote.written == sizes[i]);
        CHECK(asking_holds("round", bytes, sizes[i]));
        CHECK(asked_once(guest, question(WIRE_FILE_READ, in_folder("round"), 0), NULL, 0, &read) == 0);
        CHECK(read.content.length == sizes[i] && (sizes[i] == 0 || memcmp(read.content.data, bytes, sizes[i]) == 0));
        CHECK(read.entry.kind == WIRE_ENTRY_FILE && read.entry.size == sizes[i] && read.entry.mode == 0640);
        CHECK(read.entry.uid == ASKING_USER && read.entry.gid == ASKING_USER && read.entry.modified_ns > 1U << 30);
        buf_release(&wrote.content);
        buf_release(&read.content);
    }
}

static void reads_parts(struct guest *guest)
{
    static const struct {
        uint64_t offset;
        uint64_t length;
        size_t expected;
    } rows[] = {
        {0, 10, 10}, {5, 3, 3}, {99, 10, 1}, {100, 10, 0}, {5000, 1, 0}, {40, WIRE_FILE_ALL, 60}, {0, 0, 0},
    };

    CHECK(asking_write("parts", bytes, 100));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct asked asked = {0};
        struct wire_file file = question(WIRE_FILE_READ, in_folder("parts"), 0);
        file.offset = rows[i].offset;
        file.length = rows[i].length;
        CHECK(asked_once(guest, file, NULL, 0, &asked) == 0 && asked.entry.size == 100);
        CHECK(asked.content.length == rows[i].expected);
        CHECK(rows[i].expected == 0 || memcmp(asked.content.data, bytes + rows[i].offset, rows[i].expected) == 0);
        buf_release(&asked.content);
    }
    struct wire_file file = question(WIRE_FILE_READ, in_folder("parts"), 0);
    file.offset = UINT64_MAX;
    CHECK(asked_simply(guest, file) == EINVAL);
}

static void starts_in_folder(struct guest *guest)
{
    struct wire_file file = question(WIRE_FILE_WRITE, "a/../relative", 0);

    CHECK(mkdir(in_folder("a"), 0755) == 0);
    file.folder = wire_str(asking_folder);
    CHECK(asked_simply(guest, file) == 0 && asking_holds("relative", "x", 1));
    file.folder = wire_str(in_folder("nowhere"));
    CHECK(asked_simply(guest, file) == ENOENT);
}

static void refuses_questions(struct guest *guest)
{
    static char longest[4097];
    static char name[257];
    struct wire_file wrong[] = {
        question(WIRE_FILE_OPERATIONS, "/tmp", 0),
        question(WIRE_FILE_READ, "/tmp", 1U << 31),
        question(WIRE_FILE_READ, "/tmp", WIRE_FILE_ATOMIC),
        question(WIRE_FILE_CHMOD, "/tmp", 0),
    };

    wrong[3].mode = 0100644;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        guest_send(guest, &(struct wire_message){.type = WIRE_FILE, .file = wrong[i]});
        CHECK(guest_expect(guest, WIRE_EXIT) && guest->message.exit.kind == WIRE_EXIT_NOT_STARTED);
        CHECK(guest->message.exit.value == EINVAL);
        guest_release(guest, 1);
    }
    memset(longest, 'a', sizeof longest - 1);
    memset(name, 'a', sizeof name - 1);
    for (enum wire_file_operation operation = WIRE_FILE_READ; operation < WIRE_FILE_OPERATIONS; operation++) {
        CHECK(asked_simply(guest, question(operation, longest, 0)) == ENAMETOOLONG);
        struct wire_file file = question(operation, in_folder(name), 0);
        file.new_path = wire_str(in_folder("x"));
        CHECK(asked_simply(guest, file) == ENAMETOOLONG);
        CHECK(asked_simply(guest, question(operation, "", 0)) == ENOENT);
        CHECK(asked_simply(guest, question(operation, in_folder("no/where"), 0)) == ENOENT);
    }
    CHECK(asked_simply(guest, question(WIRE_FILE_WRITE, longest, WIRE_FILE_PARENTS)) == ENAMETOOLONG);
    CHECK(guest_is_alive(guest, FAR));
}

/* Nothing waits for the other end of a FIFO, and nobody who waits there is let through. */
static void refuses_what_is_no_file(struct guest *guest)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s", in_folder("socket"));
    CHECK(bind(listener, (const struct sockaddr *)&address, sizeof address) == 0);
    CHECK(mkfifo(in_folder("fifo"), 0666) == 0 && chmod(in_folder("fifo"), 0666) == 0);
    CHECK(mkdir(in_folder("folder"), 0777) == 0 && chmod(in_folder("socket"), 0777) == 0);
    CHECK(symlink("fifo", in_folder("to-fifo")) == 0);
    const struct {
        const char *path;
        int error;
    } rows[] = {
        {in_folder("fifo"), ENXIO}, {in_folder("to-fifo"), ENXIO}, {in_folder("socket"), ENXIO},
        {"/dev/null", ENXIO},       {"/dev/zero", ENXIO},          {asking_folder, EISDIR},
    };
    int reader = open(rows[0].path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    for (int with_reader = 1; with_reader >= 0; with_reader--) {
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            CHECK(asked_simply(guest, question(WIRE_FILE_READ, rows[i].path, 0)) == rows[i].error);
            CHECK(asked_simply(guest, question(WIRE_FILE_WRITE, rows[i].path, 0)) == rows[i].error);
            CHECK(asked_simply(guest, question(WIRE_FILE_APPEND, rows[i].path, 0)) == rows[i].error);
        }
        (void)close(reader);
    }
    CHECK(asked_simply(guest, question(WIRE_FILE_WRITE, in_folder("fifo"), WIRE_FILE_ATOMIC)) == ENXIO);
    CHECK(asked_simply(guest, question(WIRE_FILE_WRITE, in_folder("folder"), WIRE_FILE_ATOMIC)) == EISDIR);
    CHECK(asked_simply(guest, question(WIRE_FILE_WRITE, in_folder("new/"), WIRE_FILE_ATOMIC)) == EISDIR);
    CHECK(asked_simply(guest, question(WIRE_FILE_LIST, in_folder("fifo"), 0)) == ENOTDIR);
    (void)close(listener);
}

static void follows_symlinks(struct guest *guest)
{
    CHECK(asking_write("real", "old", 3) && symlink("real", in_folder("link")) == 0);
    CHECK(symlink("loop", in_folder("loop")) == 0 && symlink("made", in_folder("dangling")) == 0);
    CHECK(asked_simply(guest, question(WIRE_FILE_WRITE, in_folder("link"), 0)) == 0);
    CHECK(asking_holds("real", "x", 1));
    CHECK(asked_simply(guest, question(WIRE_FILE_WRITE, in_folder("dangling"), 0)) == 0 &&
          asking_holds("made", "x", 1));
    CHECK(asked_simply(guest, question(WIRE_FILE_READ, in_folder("loop"), 0)) == ELOOP);
    /* What is given a name in one step takes the place of the name. */
    CHECK(asking_write("real", "old", 3));
    CHECK(asked_simply(guest, question(WIRE_FILE_WRITE, in_folder("link"), WIRE_FILE_ATOMIC)) == 0);
    CHECK(asking_holds("real", "old", 3) && asking_holds("link", "x", 1));

    struct asked asked = {0};
    struct wire_file file = question(WIRE_FILE_STAT, in_folder("dangling"), WIRE_FILE_NO_FOLLOW);
    CHECK(asked_once(guest, file, NULL, 0, &asked) == 0 && asked.entry.kind == WIRE_ENTRY_SYMLINK);
    CHECK(strcmp(asked.target, "made") == 0);
    asked = (struct asked){0};
    file.flags = 0;
    CHECK(asked_once(guest, file, NULL, 0, &asked) == 0 && asked.entry.kind == WIRE_ENTRY_FILE &&
          asked.entry.size == 1);
}

/* What a hostile process plants for the next upload or download finds nothing of init's. */
static void finds_nothing_of_init(struct guest *guest)
{
    static const char *const names[] = {"/proc/self/fd/0", "/proc/self/fd/1", "/proc/self/fd/2"};
    static const char *const hidden[] = {"/proc/1/environ", "/proc/1/mem", "/proc/1/root/etc/passwd"};

    for (size_t i = 0; i < 3; i++) {
        struct wire_file file = question(WIRE_FILE_READ, in_folder("planted"), 0);
        file.uid = 0; /* whom no permission stops */
        (void)unlink(file.path.text);
        CHECK(symlink(names[i], file.path.text) == 0);
        CHECK(asked_simply(guest, file) == ENXIO);
        file.operation = WIRE_FILE_WRITE;
        CHECK(asked_simply(guest, file) == ENXIO);
        CHECK(asked_simply(guest, question(WIRE_FILE_READ, hidden[i], 0)) != 0);
    }
    CHECK(asked_simply(guest, question(WIRE_FILE_READ, "/proc/self/fd/3", 0)) == ENOENT);
}

static void acts_as_user(struct guest *guest)
{
    struct wire_file file = question(WIRE_FILE_READ, in_folder("private"), 0);

    CHECK(asking_write("private", "secret", 6) && chown(in_folder("private"), 0, 0) == 0);
    CHECK(chmod(in_folder("private"), 0600) == 0);
    CHECK(asked_simply(guest, file) == EACCES);
    file.operation = WIRE_FILE_CHMOD;
    CHECK(asked_simply(guest, file) == EPERM);
    file.uid = 0;
    CHECK(asked_simply(guest, file) == 0);
    file.uid = ASKING_USER;
    file.operation = WIRE_FILE_READ;
    CHECK(asked_simply(guest, file) == 0);
    /* Not a file of the machine's: should this ever be wrong, only the test is to notice. */
    CHECK(asked_simply(guest, question(WIRE_FILE_WRITE, in_folder("private"), 0)) == EACCES);
    CHECK(mkdir(in_folder("roots"), 0755) == 0);
    CHECK(asked_simply(guest, question(WIRE_FILE_WRITE, in_folder("roots/new"), 0)) == EACCES);
}

/* One process appends as fast as it can while another reads. */
static void stops_at_size(struct guest *guest)
{
    struct asked asked = {0};
    struct stat st;

    CHECK(asking_write("growing", bytes, MIB));
    const char *path = in_folder("growing");
    pid_t writer = fork();
    if (writer == 0) {
        int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
        while (lseek(fd, 0, SEEK_END) < 64 * MIB)
            ignore_result(write(fd, bytes, 4096));
        _exit(0);
    }
    CHECK(asked_once(guest, question(WIRE_FILE_READ, path, 0), NULL, 0, &asked) == 0);
    CHECK(asked.content.length == asked.entry.size && asked.entry.size >= MIB);
    buf_release(&asked.content);
    CHECK(waitpid(writer, NULL, 0) == writer && stat(path, &st) == 0);
    /* As far as it goes, when asked: also what comes after it was opened. */
    CHECK(truncate(path, MIB) == 0);
    asked = (struct asked){0};
    struct wire_file file = question(WIRE_FILE_READ, path, WIRE_FILE_GROWING);
    ask(guest, &file, &asked);
    CHECK(guest_expect(guest, WIRE_STDOUT) && asked_hear(guest, 1, &asked));
    CHECK(truncate(path, 3 * MIB) == 0);
    guest_ack(guest, 1, asked.heard, 0);
    CHECK(asked_finish(guest, 1, NULL, 0, &asked) && asked.content.length == 3 * MIB && asked.entry.size == MIB);
    asked_release(guest, 1, &asked);
}

static void reads_proc_and_holes(struct guest *guest)
{
    struct asked asked = {0};

    CHECK(asked_once(guest, question(WIRE_FILE_READ, "/proc/meminfo", 0), NULL, 0, &asked) == 0);
    CHECK(asked.entry.size == 0 && asked.content.length > 100 && memcmp(asked.content.data, "MemTotal:", 9) == 0);
    buf_release(&asked.content);
    asked = (struct asked){0};
    CHECK(asking_write("holes", "", 0) && truncate(in_folder("holes"), 32 * MIB) == 0);
    CHECK(asked_once(guest, question(WIRE_FILE_READ, in_folder("holes"), 0), NULL, 0, &asked) == 0);
    CHECK(asked.content.length == 32 * MIB && asked.content.data[0] == 0);
    CHECK(memcmp(asked.content.data, asked.content.data + 1, 32 * MIB - 1) == 0);
    buf_release(&asked.content);
}

/* The worker's memory is a copy of init's. */
static void tells_nothing_of_itself(struct guest *guest)
{
    static const char *const names[] = {"/proc/self/maps", "/proc/self/status", "/proc/thread-self/stat"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        CHECK(asked_simply(guest, question(WIRE_FILE_READ, names[i], 0)) == EACCES);
    CHECK(asked_simply(guest, question(WIRE_FILE_WRITE, "/proc/self/comm", 0)) == EACCES);
}

static bool mount_small(const char *name)
{
    return mkdir(in_folder(name), 0777) == 0 && mount("tmpfs", in_folder(name), "tmpfs", 0, "size=1m,mode=0777") == 0;
}

static void tells_full_disk(struct guest *guest)
{
    struct asked asked = {0};
    struct stat st;

    CHECK(mount_small("small"));
    CHECK(asked_once(guest, question(WIRE_FILE_WRITE, in_folder("small/big"), 0), bytes, BIG, &asked) == ENOSPC);
    CHECK(stat(in_folder("small/big"), &st) == 0 && asked.written == (uint64_t)st.st_size && st.st_size > MIB / 2);
    CHECK(asking_write("small/big", "old", 3));
    asked = (struct asked){0};
    struct wire_file file = question(WIRE_FILE_WRITE, in_folder("small/big"), WIRE_FILE_ATOMIC);
    CHECK(asked_once(guest, file, bytes, BIG, &asked) == ENOSPC && asked.written == 0);
    CHECK(asking_holds("small/big", "old", 3));
    asked = (struct asked){0};
    file.operation = WIRE_FILE_APPEND;
    file.flags = 0;
    CHECK(asked_once(guest, file, bytes, BIG, &asked) == ENOSPC && asked.written > 0);
    CHECK(stat(in_folder("small/big"), &st) == 0 && asked.written + 3 == (uint64_t)st.st_size);
}

/* How many names there are in a folder. */
static size_t names_in(struct guest *guest, const char *name)
{
    struct asked asked = {0};

    CHECK(asked_once(guest, question(WIRE_FILE_LIST, in_folder(name), 0), NULL, 0, &asked) == 0);
    return asked.records;
}

static void writes_all_or_nothing(struct guest *guest)
{
    struct asked asked = {0};
    struct wire_file file = question(WIRE_FILE_WRITE, in_folder("box/file"), WIRE_FILE_ATOMIC);

    CHECK(mkdir(in_folder("box"), 0777) == 0 && chmod(in_folder("box"), 0777) == 0 &&
          asking_write("box/file", "old", 3));
    file.length = 2 * MIB; /* more than comes, then less */
    CHECK(asked_once(guest, file, bytes, MIB, &asked) == ENODATA && asking_holds("box/file", "old", 3));
    asked = (struct asked){0};
    file.length = MIB;
    CHECK(asked_once(guest, file, bytes, MIB + 1, &asked) == EFBIG && asking_holds("box/file", "old", 3));
    /* A client that gives up halfway. */
    asked = (struct asked){0};
    ask(guest, &file, &asked);
    guest_stdin(guest, 1, 0, bytes, WIRE_DATA_MAX, false);
    CHECK(guest_expect(guest, WIRE_TAKEN));
    guest_release(guest, 1);
    CHECK(guest_is_alive(guest, FAR) && asking_holds("box/file", "old", 3) && names_in(guest, "box") == 1);
    asked = (struct asked){0};
    file.mode = 0600;
    CHECK(asked_once(guest, file, bytes, MIB, &asked) == 0 && asked.written == MIB);
    CHECK(asking_holds("box/file", bytes, MIB) && names_in(guest, "box") == 1);
    struct stat st;
    CHECK(stat(in_folder("box/file"), &st) == 0 && (st.st_mode & 07777) == 0600 && st.st_uid == ASKING_USER);
    for (uint32_t flags = WIRE_FILE_EXCLUSIVE; flags <= (WIRE_FILE_EXCLUSIVE | WIRE_FILE_ATOMIC);
         flags += WIRE_FILE_ATOMIC) {
        (void)unlink(in_folder("box/new"));
        CHECK(asked_simply(guest, question(WIRE_FILE_WRITE, in_folder("box/file"), flags)) == EEXIST);
        CHECK(asked_simply(guest, question(WIRE_FILE_WRITE, in_folder("box/new"), flags)) == 0);
    }
    CHECK(asking_holds("box/file", bytes, MIB) && names_in(guest, "box") == 2);
}

/* Several at once: what each adds is in one piece. */
static void appends_in_one_piece(struct guest *guest)
{
    enum { WRITERS = 6, EACH = 50000 };
    static char all[WRITERS * EACH];
    struct asked asked[WRITERS] = {0};
    bool seen[WRITERS] = {false};

    for (uint64_t i = 0; i < WRITERS; i++) {
        struct wire_file file = question(WIRE_FILE_APPEND, in_folder("log"), 0);
        file.channel = i + 1;
        ask(guest, &file, &asked[i]);
    }
    for (uint64_t half = 0; half < 2; half++) {
        for (uint64_t i = 0; i < WRITERS; i++) {
            memset(all, 'a' + (int)i, EACH);
            guest_stdin(guest, i + 1, half * EACH / 2, all, EACH / 2, half == 1);
        }
    }
    for (size_t ended = 0; ended < WRITERS && CHECK(guest_receive_within(guest, GUEST_WAIT_MS));) {
        uint64_t channel = guest->message.ack.channel;
        CHECK(asked_hear(guest, channel, &asked[channel - 1]));
        ended += guest->message.type == WIRE_EXIT;
    }
    int fd = open(in_folder("log"), O_RDONLY | O_CLOEXEC);
    CHECK(read(fd, all, sizeof all) == (ssize_t)sizeof all);
    for (size_t i = 0; i < WRITERS; i++) {
        const char *piece = all + i * EACH;
        size_t who = (size_t)(piece[0] - 'a');
        CHECK(who < WRITERS && !seen[who] && memcmp(piece, piece + 1, EACH - 1) == 0);
        seen[who % WRITERS] = true;
    }
    (void)close(fd);
}

/* A worker that waits for its client, or is stopped, keeps nobody else waiting. */
static void keeps_nobody_waiting(struct guest *guest)
{
    struct wire_file file = question(WIRE_FILE_READ, in_folder("long"), 0);
    struct asked stuck = {0};
    size_t frames = 0;

    CHECK(asking_write("long", bytes, BIG));
    file.channel = 77;
    ask(guest, &file, &stuck);
    while (guest_receive_within(guest, 200) && CHECK(asked_hear(guest, 77, &stuck)))
        frames++;
    CHECK(stuck.heard > WIRE_WINDOW / 2 && stuck.heard <= WIRE_WINDOW && frames >= 2); /* and then it waits for us */
    uint64_t start_ns = clock_now_ns();
    CHECK(asked_simply(guest, question(WIRE_FILE_READ, in_folder("long"), 0)) == 0);
    CHECK(guest_is_alive(guest, FAR) && clock_now_ns() - start_ns < UINT64_C(10000000000));
    guest_signal(guest, 77, SIGSTOP, WIRE_SCOPE_TREE);
    CHECK(guest_is_alive(guest, FAR));
    guest_signal(guest, 77, SIGKILL, WIRE_SCOPE_TREE);
    /* Asking again changes nothing; what was heard is kept until it is acknowledged. */
    guest_send(guest, &(struct wire_message){.type = WIRE_FILE, .file = file});
    guest_ack(guest, 77, stuck.heard, 0);
    while (!stuck.has_ended && CHECK(guest_receive_within(guest, GUEST_WAIT_MS)) && asked_hear(guest, 77, &stuck))
        guest_ack(guest, 77, stuck.heard, 0);
    CHECK(stuck.exit.kind == WIRE_EXIT_SIGNAL && stuck.exit.value == SIGKILL && stuck.content.length < BIG);
    CHECK(memcmp(stuck.content.data, bytes, stuck.content.length) == 0);
    asked_release(guest, 77, &stuck);
    CHECK(guest_is_alive(guest, FAR));
}

static const struct guest_case cases[] = {
    {"writes and reads files of any size", writes_and_reads},
    {"reads parts of files", reads_parts},
    {"relative paths start in the folder that was named", starts_in_folder},
    {"what can't be asked is refused with the reason", refuses_questions},
    {"a FIFO, a socket, a device or a folder is no file, and nothing waits", refuses_what_is_no_file},
    {"symlinks are followed as a program would", follows_symlinks},
    {"planted symlinks find nothing of init's", finds_nothing_of_init},
    {"permissions mean what they mean to a command", acts_as_user},
    {"reading stops at the size at the start, unless asked for more", stops_at_size},
    {"files of /proc and files with holes", reads_proc_and_holes},
    {"nothing about the worker itself", tells_nothing_of_itself},
    {"a full disk is told with what was written", tells_full_disk},
    {"an atomic write leaves the old or the new, and nothing else", writes_all_or_nothing},
    {"appends do not get into each other", appends_in_one_piece},
    {"a worker that hangs keeps nobody waiting", keeps_nobody_waiting},
};

int main(int argc, char **argv)
{
    fill();
    return asking_main(argc, argv, cases, sizeof cases / sizeof *cases);
}
