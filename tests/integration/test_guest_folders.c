/*
 * test_guest_folders: hutch-init on the guest link, without a sandbox around it: folders, names, modes and watches.
 * Every case has an init of its own; all share one file system, on which each uses names of its own.
 *
 *     test_guest_folders HUTCH-INIT PAYLOAD
 */
#include "asking.h"

#include "base/cleanup.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum { FAR = 1 << 30, MANY = 50000, DEEP = 5000, RACES = 300 };

static bool make_folder(const char *name)
{
    return mkdir(in_folder(name), 0755) == 0 && chown(in_folder(name), ASKING_USER, ASKING_USER) == 0;
}

static mode_t mode_of(const char *name)
{
    struct stat st;

    return lstat(in_folder(name), &st) == 0 ? st.st_mode & 07777 : 0;
}

/* What a listing said, as "kind:name " each. */
static void gather(const struct wire_message *record, void *context)
{
    char *text = context;
    size_t length = strlen(text);

    if (record->type == WIRE_ENTRY)
        (void)snprintf(text + length, 4096 - length, "%d:%s%s%s ", record->entry.kind, record->entry.name.text,
                       record->entry.target.length > 0 ? ">" : "", record->entry.target.text);
    else
        (void)snprintf(text + length, 4096 - length, "!%u:%s ", record->problem.error, record->problem.path.text);
}

static int list(struct guest *guest, const char *name, uint32_t flags, char text[4096])
{
    struct asked asked = {.on_record = gather, .context = text};

    text[0] = '\0';
    return asked_once(guest, question(WIRE_FILE_LIST, in_folder(name), flags), NULL, 0, &asked);
}

static void lists_every_kind(struct guest *guest)
{
    char text[4096];

    CHECK(make_folder("kinds") && make_folder("kinds/folder") && asking_write("kinds/folder/file", "abc", 3));
    CHECK(symlink("folder", in_folder("kinds/link")) == 0 && mkfifo(in_folder("kinds/fifo"), 0644) == 0);
    CHECK(list(guest, "kinds", 0, text) == 0);
    CHECK(strstr(text, "1:folder ") != NULL && strstr(text, "2:link>folder ") != NULL);
    CHECK(strstr(text, "3:fifo ") != NULL && strstr(text, "file") == NULL);
    CHECK(list(guest, "kinds", WIRE_FILE_RECURSIVE, text) == 0);
    CHECK(strstr(text, "0:folder/file ") != NULL && strstr(text, "link/") == NULL);
    CHECK(list(guest, "kinds/link", 0, text) == 0 && strcmp(text, "0:file ") == 0);
    CHECK(list(guest, "kinds/folder/file", 0, text) == ENOTDIR);
    CHECK(symlink("nowhere", in_folder("kinds/dangling")) == 0 && list(guest, "kinds/dangling", 0, text) == ENOENT);
}

static void tells_problems(struct guest *guest)
{
    char text[4096];

    CHECK(make_folder("mixed") && make_folder("mixed/open") && asking_write("mixed/open/file", "", 0));
    CHECK(mkdir(in_folder("mixed/closed"), 0700) == 0 && asking_write("mixed/closed/file", "", 0));
    CHECK(list(guest, "mixed", WIRE_FILE_RECURSIVE, text) == EACCES);
    CHECK(strstr(text, "!13:closed ") != NULL && strstr(text, "0:open/file ") != NULL);
    struct asked asked = {.on_record = gather, .context = text};
    text[0] = '\0';
    struct wire_file file = question(WIRE_FILE_REMOVE, in_folder("mixed"), WIRE_FILE_RECURSIVE);
    CHECK(asked_once(guest, file, NULL, 0, &asked) == EACCES && strcmp(text, "!13:closed ") == 0);
    CHECK(!asking_is_there("mixed/open") && asking_is_there("mixed/closed/file"));
    file.uid = 0;
    CHECK(asked_simply(guest, file) == 0 && !asking_is_there("mixed"));
}

static void count(const struct wire_message *record, void *context)
{
    size_t *sum = context;

    *sum += record->entry.name.length;
}

/* Streamed: a client that takes its time holds up the listing, not memory. */
static void lists_many(struct guest *guest)
{
    struct asked asked = {.on_record = count, .context = &(size_t){0}};
    char name[128];

    CHECK(make_folder("many"));
    for (int i = 0; i < MANY; i++) {
        (void)snprintf(name, sizeof name, "many/%0100d", i % 2 == 0 ? i : i + MANY);
        if (!CHECK(symlink("x", in_folder(name)) == 0))
            return;
    }
    struct wire_file file = question(WIRE_FILE_LIST, in_folder("many"), WIRE_FILE_RECURSIVE);
    CHECK(asked_once(guest, file, NULL, 0, &asked) == 0 && asked.records == MANY && asked.problems == 0);
    CHECK(*(size_t *)asked.context == 100 * (size_t)MANY);
    CHECK(asked.exit.peak_bytes < 4 << 20);
    asked = (struct asked){0};
    file.operation = WIRE_FILE_REMOVE;
    CHECK(asked_once(guest, file, NULL, 0, &asked) == 0 && !asking_is_there("many"));
    CHECK(asked.exit.peak_bytes < 4 << 20);
}

/* Deeper than any path can say, than there are descriptors, than there are levels. */
static bool make_deep(const char *name, int levels)
{
    int fd = open(asking_folder, O_PATH | O_DIRECTORY | O_CLOEXEC);

    for (int i = 0; i < levels && fd >= 0; i++) {
        const char *step = i == 0 ? name : "abc";
        int below = mkdirat(fd, step, 0755) == 0 && fchownat(fd, step, ASKING_USER, ASKING_USER, 0) == 0
                        ? openat(fd, step, O_PATH | O_DIRECTORY | O_CLOEXEC)
                        : -1;
        (void)close(fd);
        fd = below;
    }
    bool is_made = fd >= 0;
    close_fd(&fd);
    return is_made;
}

static void goes_deep(struct guest *guest)
{
    struct asked asked = {0};
    struct wire_file file = question(WIRE_FILE_LIST, in_folder("deep"), WIRE_FILE_RECURSIVE);

    CHECK(make_deep("deep", DEEP));
    int error = asked_once(guest, file, NULL, 0, &asked);
    CHECK((error == ENAMETOOLONG || error == EMFILE) && asked.problems == 1 && asked.records > 500);
    CHECK(asked_simply(guest, question(WIRE_FILE_REMOVE, in_folder("deep"), 0)) == ENOTEMPTY);
    file.operation = WIRE_FILE_REMOVE;
    CHECK(asked_simply(guest, file) == 0 && !asking_is_there("deep"));
    CHECK(guest_is_alive(guest, FAR));
}

static void removes(struct guest *guest)
{
    CHECK(make_folder("full") && make_folder("full/folder") && make_folder("kept") &&
          asking_write("kept/file", "k", 1));
    CHECK(symlink("../kept", in_folder("full/link")) == 0 && asking_write("full/folder/file", "", 0));
    CHECK(symlink("kept", in_folder("to-kept")) == 0);
    CHECK(asked_simply(guest, question(WIRE_FILE_REMOVE, in_folder("full"), 0)) == ENOTEMPTY);
    CHECK(asked_simply(guest, question(WIRE_FILE_REMOVE, in_folder("full"), WIRE_FILE_RECURSIVE)) == 0);
    CHECK(asked_simply(guest, question(WIRE_FILE_REMOVE, in_folder("to-kept"), WIRE_FILE_RECURSIVE)) == 0);
    CHECK(!asking_is_there("full") && !asking_is_there("to-kept") && asking_holds("kept/file", "k", 1));
    CHECK(make_folder("empty") && asked_simply(guest, question(WIRE_FILE_REMOVE, in_folder("empty"), 0)) == 0);
    CHECK(asked_simply(guest, question(WIRE_FILE_REMOVE, in_folder("kept/."), WIRE_FILE_RECURSIVE)) == EINVAL);
    CHECK(asked_simply(guest, question(WIRE_FILE_REMOVE, in_folder("kept/.."), WIRE_FILE_RECURSIVE)) == EINVAL);
    CHECK(asked_simply(guest, question(WIRE_FILE_REMOVE, "/", WIRE_FILE_RECURSIVE)) == EBUSY);
    CHECK(asking_holds("kept/file", "k", 1));
}

/* One process swaps a folder for a symlink to what must stay, as fast as it can, while root removes. */
static void is_not_led_astray(struct guest *guest)
{
    CHECK(make_folder("stays") && asking_write("stays/a", "a", 1) && make_folder("stays/b"));
    CHECK(asking_write("stays/b/c", "c", 1));
    for (int i = 0; i < RACES && !guest_case_failed(); i++) {
        CHECK(make_folder("race") && make_folder("race/x") && make_folder("race/x/y") && make_folder("race/x/y/z"));
        CHECK(asking_write("race/x/y/z/1", "", 0) && asking_write("race/x/y/2", "", 0) &&
              asking_write("race/x/3", "", 0));
        CHECK(symlink("../stays", in_folder("race/link")) == 0);
        int race = open(in_folder("race"), O_PATH | O_DIRECTORY | O_CLOEXEC);
        pid_t racer = fork();
        if (racer == 0) {
            for (;;) {
                for (int k = 0; k < 1000; k++)
                    (void)syscall(SYS_renameat2, race, "x", race, "link", RENAME_EXCHANGE);
                (void)syscall(SYS_renameat2, race, "link/y", race, "moved", 0);
                (void)syscall(SYS_renameat2, race, "moved", race, "link/y", 0);
            }
        }
        while (readlink(in_folder("race/x"), (char[8]){0}, 8) < 0 && kill(racer, 0) == 0)
            continue; /* until it is at it */
        struct wire_file file = question(WIRE_FILE_REMOVE, in_folder("race"), WIRE_FILE_RECURSIVE);
        file.uid = 0;
        CHECK(asked_simply(guest, file) >= 0);
        (void)kill(racer, SIGKILL);
        (void)waitpid(racer, NULL, 0);
        (void)close(race);
        CHECK(asked_simply(guest, file) == 0 || !asking_is_there("race"));
        CHECK(asking_holds("stays/a", "a", 1) && asking_holds("stays/b/c", "c", 1));
    }
}

static void makes_folders(struct guest *guest)
{
    struct wire_file file = question(WIRE_FILE_MKDIR, in_folder("new"), 0);

    file.mode = 0751;
    CHECK(asked_simply(guest, file) == 0 && mode_of("new") == 0751 && asked_simply(guest, file) == EEXIST);
    file = question(WIRE_FILE_MKDIR, in_folder("one/two//three/"), WIRE_FILE_PARENTS);
    file.mode = 0700;
    CHECK(asked_simply(guest, file) == 0 && mode_of("one") == 0755 && mode_of("one/two/three") == 0700);
    CHECK(asked_simply(guest, file) == 0);
    CHECK(asking_write("one/file", "", 0));
    file.path = wire_str(in_folder("one/file"));
    CHECK(asked_simply(guest, file) == EEXIST);
    file.path = wire_str(in_folder("one/file/below"));
    CHECK(asked_simply(guest, file) == ENOTDIR);
    CHECK(asked_simply(guest, question(WIRE_FILE_WRITE, in_folder("p/q/r"), 0)) == ENOENT);
    CHECK(asked_simply(guest, question(WIRE_FILE_WRITE, in_folder("p/q/r"), WIRE_FILE_PARENTS)) == 0);
    CHECK(asked_simply(guest, question(WIRE_FILE_WRITE, in_folder("p/s/t"), WIRE_FILE_PARENTS | WIRE_FILE_ATOMIC)) ==
          0);
    CHECK(asked_simply(guest, question(WIRE_FILE_APPEND, in_folder("p/u/v"), WIRE_FILE_PARENTS)) == 0);
    CHECK(asking_holds("p/q/r", "x", 1) && asking_holds("p/s/t", "x", 1) && asking_holds("p/u/v", "x", 1));
}

static void renames(struct guest *guest)
{
    struct wire_file file = question(WIRE_FILE_RENAME, in_folder("from"), WIRE_FILE_EXCLUSIVE);

    CHECK(asking_write("from", "1", 1) && asking_write("to", "2", 1));
    file.new_path = wire_str(in_folder("to"));
    CHECK(asked_simply(guest, file) == EEXIST && asking_holds("to", "2", 1));
    file.flags = 0;
    CHECK(asked_simply(guest, file) == 0 && asking_holds("to", "1", 1) && !asking_is_there("from"));
    CHECK(asked_simply(guest, file) == ENOENT);
    CHECK(symlink("to", in_folder("from")) == 0);
    file.new_path = wire_str(in_folder("far/away"));
    CHECK(asked_simply(guest, file) == ENOENT);
    file.flags = WIRE_FILE_PARENTS | WIRE_FILE_EXCLUSIVE;
    CHECK(asked_simply(guest, file) == 0 && !asking_is_there("from") && asking_holds("to", "1", 1));
    CHECK(readlink(in_folder("far/away"), (char[8]){0}, 8) == 2);
}

static void changes_modes(struct guest *guest)
{
    struct wire_file file = question(WIRE_FILE_CHMOD, in_folder("mode"), 0);

    CHECK(asking_write("mode", "", 0));
    file.mode = 0710;
    CHECK(asked_simply(guest, file) == 0 && mode_of("mode") == 0710);
    file.path = wire_str(in_folder("none"));
    CHECK(asked_simply(guest, file) == ENOENT);
}

static bool hear_event(struct guest *guest, struct asked *asked, enum wire_event_kind kind, const char *name)
{
    static const char *const names[] = {"WATCHING", "CREATED",    "MODIFIED", "CLOSED",   "CHANGED",
                                        "REMOVED",  "MOVED_FROM", "MOVED_TO", "OVERFLOW", "GONE"};
    size_t records = asked->records;

    while (asked->records == records) {
        if (!guest_receive_within(guest, GUEST_WAIT_MS) || !asked_hear(guest, 1, asked))
            return false;
        guest_ack(guest, 1, asked->heard, 0);
    }
    bool is_it = asked->event.kind == kind && strcmp(asked->name, name) == 0;
    if (!is_it)
        printf("# %s %s instead of %s %s\n", names[asked->event.kind], asked->name, names[kind], name);
    return is_it && asked->records == records + 1;
}

static void watches(struct guest *guest)
{
    struct asked asked = {0};
    struct wire_file file = question(WIRE_FILE_WATCH, in_folder("seen"), 0);

    CHECK(make_folder("seen"));
    ask(guest, &file, &asked);
    CHECK(hear_event(guest, &asked, WIRE_EVENT_WATCHING, ""));
    int fd = open(in_folder("seen/file"), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    CHECK(hear_event(guest, &asked, WIRE_EVENT_CREATED, "file") && asked.event.is_folder == 0);
    CHECK(write(fd, "x", 1) == 1 && hear_event(guest, &asked, WIRE_EVENT_MODIFIED, "file"));
    CHECK(close(fd) == 0 && hear_event(guest, &asked, WIRE_EVENT_CLOSED, "file"));
    CHECK(chmod(in_folder("seen/file"), 0600) == 0 && hear_event(guest, &asked, WIRE_EVENT_CHANGED, "file"));
    CHECK(mkdir(in_folder("seen/below"), 0755) == 0);
    CHECK(hear_event(guest, &asked, WIRE_EVENT_CREATED, "below") && asked.event.is_folder == 1);
    CHECK(rename(in_folder("seen/file"), in_folder("seen/other")) == 0);
    while (asked.event.kind != WIRE_EVENT_MOVED_TO && CHECK(guest_receive_within(guest, GUEST_WAIT_MS)))
        CHECK(asked_hear(guest, 1, &asked));
    CHECK(asked.event.cookie != 0 && strcmp(asked.name, "other") == 0 && asked.records == 8);
    CHECK(unlink(in_folder("seen/other")) == 0 && hear_event(guest, &asked, WIRE_EVENT_REMOVED, "other"));
    CHECK(rmdir(in_folder("seen/below")) == 0 && hear_event(guest, &asked, WIRE_EVENT_REMOVED, "below"));
    CHECK(rmdir(in_folder("seen")) == 0 && asked_finish(guest, 1, NULL, 0, &asked));
    CHECK(asked.event.kind == WIRE_EVENT_GONE && asked.exit.kind == WIRE_EXIT_CODE && asked.exit.value == 0);
}

static void note_overflow(const struct wire_message *record, void *context)
{
    bool *seen = context;

    *seen = *seen || record->event.kind == WIRE_EVENT_OVERFLOW;
}

/* More happens than a client that does not listen can ever be told. */
static void tells_overflow(struct guest *guest)
{
    bool seen = false;
    struct asked asked = {.on_record = note_overflow, .context = &seen};
    struct wire_file file = question(WIRE_FILE_WATCH, in_folder("busy"), 0);
    char name[64];

    CHECK(make_folder("busy"));
    ask(guest, &file, &asked);
    CHECK(hear_event(guest, &asked, WIRE_EVENT_WATCHING, ""));
    for (int i = 0; i < MANY; i++) {
        (void)snprintf(name, sizeof name, "busy/%d", i);
        CHECK(mkdir(in_folder(name), 0755) == 0);
    }
    while (!seen && CHECK(guest_receive_within(guest, GUEST_WAIT_MS)) && CHECK(asked_hear(guest, 1, &asked)))
        guest_ack(guest, 1, asked.heard, 0);
    CHECK(seen && asked.records < MANY);
    guest_release(guest, 1);
    CHECK(asked_simply(guest, question(WIRE_FILE_REMOVE, in_folder("busy"), WIRE_FILE_RECURSIVE)) == 0);
}

static const struct guest_case cases[] = {
    {"lists every kind of entry and follows none", lists_every_kind},
    {"what can't be read or removed is told, the rest is done", tells_problems},
    {"lists and removes many entries in little memory", lists_many},
    {"lists and removes what is deeper than a path", goes_deep},
    {"removes what is named and nothing it points at", removes},
    {"a folder that turns into a symlink leads nowhere", is_not_led_astray},
    {"makes folders, and parents when asked", makes_folders},
    {"renames", renames},
    {"changes modes", changes_modes},
    {"watches a folder until it is gone", watches},
    {"a watch that can't keep up says so", tells_overflow},
};

int main(int argc, char **argv)
{
    return asking_main(argc, argv, cases, sizeof cases / sizeof *cases);
}
