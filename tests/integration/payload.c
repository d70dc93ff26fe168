/*
 * payload: the program that the integration tests run inside a sandbox. Static, so that it runs in a root folder with
 * nothing else in it. `payload NAME [ARGUMENT...]`; each name is a row of the table at the end.
 *
 * What fails inside is printed, not judged: "NAME NUMBER" with the errno, 0 for success. The tests judge.
 */
#include "payload.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { CHUNK = 65536, MIB = 1 << 20 };

static char chunk[CHUNK];

static unsigned long number(const char *text)
{
    return text != NULL ? strtoul(text, NULL, 10) : 0;
}

/* Done: with what did not work, and how often it did before that. */
static int report(const char *what, unsigned long count, int error)
{
    printf("%s %lu %d\n", what, count, error);
    return error == 0 ? 0 : 1;
}

static void say_ready(void)
{
    printf("ready\n");
    (void)fflush(stdout);
}

static _Noreturn void wait_for_ever(void)
{
    for (;;)
        (void)pause();
}

static int exit_with(char **argv)
{
    return (int)number(argv[0]);
}

static int kill_self(char **argv)
{
    (void)kill(getpid(), (int)number(argv[0]));
    wait_for_ever();
}

static int print_bytes(char **argv)
{
    unsigned long left = number(argv[0]);

    memset(chunk, 'x', sizeof chunk);
    while (left > 0) {
        ssize_t n = write(STDOUT_FILENO, chunk, left < sizeof chunk ? left : sizeof chunk);
        if (n < 0)
            return 1;
        left -= (unsigned long)n;
    }
    return 0;
}

static int print_lines(char **argv)
{
    for (unsigned long i = 0; i < number(argv[0]); i++)
        printf("%lu\n", i);
    return fflush(stdout) == 0 ? 0 : 1;
}

/* Standard input to standard output, and what was copied to standard error. */
static int copy(char **argv)
{
    unsigned long total = 0;
    ssize_t n;

    (void)argv;
    while ((n = read(STDIN_FILENO, chunk, sizeof chunk)) > 0) {
        for (ssize_t done = 0, w; done < n; done += w) {
            w = write(STDOUT_FILENO, chunk + done, (size_t)(n - done));
            if (w < 0)
                return 1;
        }
        total += (unsigned long)n;
    }
    (void)fprintf(stderr, "%lu\n", total);
    return n < 0 ? 1 : 0;
}

static int print_arguments(char **argv)
{
    size_t total = 0;
    int count = 0;

    for (; argv[count] != NULL; count++)
        total += strlen(argv[count]);
    printf("%d %zu\n", count, total);
    return 0;
}

static int print_file(char **argv)
{
    int fd = open(argv[0], O_RDONLY | O_CLOEXEC);
    ssize_t n = 0;

    while (fd >= 0 && (n = read(fd, chunk, sizeof chunk)) > 0) {
        if (write(STDOUT_FILENO, chunk, (size_t)n) != n)
            return 1;
    }
    return fd < 0 || n < 0 ? report(argv[0], 0, errno) : 0;
}

static int print_folder(char **argv)
{
    DIR *folder = opendir(argv[0]);
    const struct dirent *entry;

    if (folder == NULL)
        return report(argv[0], 0, errno);
    while ((entry = readdir(folder)) != NULL) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            printf("%s\n", entry->d_name);
    }
    return closedir(folder);
}

/* Every descriptor below 1024 that is open: found without opening one. */
static int print_descriptors(char **argv)
{
    (void)argv;
    for (int fd = 0; fd < 1024; fd++) {
        if (fcntl(fd, F_GETFD) >= 0)
            printf("%d\n", fd);
    }
    return 0;
}

static int make_file(char **argv)
{
    int fd = open(argv[0], O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

    return report(argv[0], 0, fd < 0 ? errno : 0);
}

/* Print when each of these can be opened for writing, which changes nothing. */
static int try_writing(char **argv)
{
    for (; *argv != NULL; argv++) {
        int fd = open(*argv, O_WRONLY | O_CLOEXEC);
        printf("%s %d\n", *argv, fd < 0 ? errno : 0);
        if (fd >= 0)
            (void)close(fd);
    }
    return 0;
}

/* What the standard output's reader makes of it is its business: touched memory, not output. */
static int eat_memory(char **argv)
{
    unsigned long mib = number(argv[0]);

    for (unsigned long i = 0; i < mib; i++) {
        char *part = mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (part == MAP_FAILED)
            return report("mmap", i, errno);
        memset(part, 1, MIB);
    }
    return report("mmap", mib, 0);
}

/* A child that is killed for its memory, below a parent that would go on. */
static int eat_memory_in_child(char **argv)
{
    pid_t pid = fork();

    if (pid == 0)
        _exit(eat_memory(argv));
    (void)waitpid(pid, NULL, 0);
    say_ready();
    wait_for_ever();
}

static int fork_many(char **argv)
{
    unsigned long most = number(argv[0]);

    for (unsigned long i = 0; i < most; i++) {
        pid_t pid = fork();
        if (pid < 0)
            return report("fork", i, errno);
        if (pid == 0)
            wait_for_ever();
    }
    return report("fork", most, 0);
}

static int fork_bomb(char **argv)
{
    (void)argv;
    while (fork() >= 0 || errno == EAGAIN)
        ;
    return report("fork", 0, errno);
}

static void *sleep_in_thread(void *nothing)
{
    (void)nothing;
    wait_for_ever();
}

static int start_threads(char **argv)
{
    unsigned long most = number(argv[0]);
    pthread_attr_t small;
    pthread_t thread;

    (void)pthread_attr_init(&small);
    (void)pthread_attr_setstacksize(&small, 16384);
    for (unsigned long i = 0; i < most; i++) {
        int error = pthread_create(&thread, &small, sleep_in_thread, NULL);
        if (error != 0)
            return report("thread", i, error);
    }
    return report("thread", most, 0);
}

/* Leave a process behind that belongs to no session of ours, keeps the streams open and ignores what it can. */
static int daemonise(char **argv)
{
    int ready[2];
    char byte;

    if (pipe(ready) < 0)
        return 1;
    if (fork() == 0) {
        (void)setsid();
        for (int signal_number = 1; signal_number < 32; signal_number++)
            (void)signal(signal_number, SIG_IGN);
        if (fork() != 0)
            _exit(0);
        say_ready();
        (void)close(ready[0]);
        if (write(ready[1], "r", 1) == 1)
            wait_for_ever();
    }
    (void)wait(NULL);
    if (read(ready[0], &byte, 1) != 1)
        return 1;
    if (argv[0] != NULL && strcmp(argv[0], "stay") == 0)
        wait_for_ever();
    return 0;
}

static int ignore_signals(char **argv)
{
    (void)argv;
    for (int signal_number = 1; signal_number < 32; signal_number++)
        (void)signal(signal_number, SIG_IGN);
    say_ready();
    wait_for_ever();
}

/* Print each signal that comes; SIGTERM is the last. */
static int print_signals(char **argv)
{
    sigset_t set;
    int got = 0;

    (void)argv;
    (void)sigfillset(&set);
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    say_ready();
    while (got != SIGTERM && sigwait(&set, &got) == 0) {
        printf("%d\n", got);
        (void)fflush(stdout);
    }
    return 0;
}

/* Print "NAME NUMBER" for each signal that comes, in a line of one write. */
static _Noreturn void print_named_signals(const char *name)
{
    sigset_t set;
    char line[64];
    int got = 0;

    (void)sigfillset(&set);
    (void)dprintf(STDOUT_FILENO, "%s ready\n", name);
    while (sigwait(&set, &got) == 0) {
        int length = snprintf(line, sizeof line, "%s %d\n", name, got);
        if (write(STDOUT_FILENO, line, (size_t)length) != length)
            break;
    }
    _exit(1);
}

/* Three processes: the command's own, one in its group, and one that left group and session. */
static int make_family(char **argv)
{
    sigset_t set;

    (void)argv;
    (void)sigfillset(&set);
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    if (fork() == 0)
        print_named_signals("group");
    if (fork() == 0) {
        (void)setsid();
        print_named_signals("session");
    }
    print_named_signals("main");
}

/* Signal argv[1] to process argv[0]. */
static int signal_other(char **argv)
{
    printf("signal %d\n", kill((pid_t)number(argv[0]), (int)number(argv[1])) < 0 ? errno : 0);
    return 0;
}

/* A line every 20 ms: who stops it, and for how long, can be read off the pauses. */
static int tick(char **argv)
{
    static const struct timespec pause_time = {.tv_nsec = 20000000};

    for (unsigned long i = 0; i < number(argv[0]); i++) {
        printf("%lu\n", i);
        if (fflush(stdout) != 0)
            return 1;
        (void)nanosleep(&pause_time, NULL);
    }
    return 0;
}

static int sleep_for(char **argv)
{
    say_ready();
    (void)sleep((unsigned)number(argv[0]));
    return 0;
}

/* Milliseconds of CPU time used in so many milliseconds of wall time. */
static int spin(char **argv)
{
    clock_t limit = (clock_t)number(argv[0]);
    struct timespec start;
    struct timespec now;
    long ms;

    (void)clock_gettime(CLOCK_MONOTONIC, &start);
    do {
        (void)clock_gettime(CLOCK_MONOTONIC, &now);
        ms = (now.tv_sec - start.tv_sec) * 1000 + (now.tv_nsec - start.tv_nsec) / 1000000;
    } while (ms < limit);
    printf("%ld\n", (long)(clock() / (CLOCKS_PER_SEC / 1000)));
    return 0;
}

static int fill_file(char **argv)
{
    int fd = open(argv[0], O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    unsigned long total = 0;

    if (fd < 0)
        return report("open", 0, errno);
    for (;;) {
        ssize_t n = write(fd, chunk, sizeof chunk);
        if (n < 0)
            return report("write", total, errno);
        total += (unsigned long)n;
    }
}

static int allocate_file(char **argv)
{
    int fd = open(argv[0], O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

    if (fd < 0)
        return report("open", 0, errno);
    return report("fallocate", 0, fallocate(fd, 0, 0, (off_t)number(argv[1])) < 0 ? errno : 0);
}

static int make_files(char **argv)
{
    char path[256];

    for (unsigned long i = 0;; i++) {
        (void)snprintf(path, sizeof path, "%s/%lu", argv[0], i);
        int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
        if (fd < 0)
            return report("create", i, errno);
        (void)close(fd);
    }
}

static int open_many(char **argv)
{
    (void)argv;
    for (unsigned long i = 0;; i++) {
        if (open("/dev/null", O_RDONLY | O_CLOEXEC) < 0)
            return report("open", i, errno);
    }
}

/* Take an exclusive lock without waiting and keep it. */
static int hold_lock(char **argv)
{
    int fd = open(argv[0], O_RDONLY | O_CLOEXEC);
    int error = fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0 ? errno : 0;

    printf("lock %d\n", error);
    (void)fflush(stdout);
    if (error != 0)
        return 1;
    wait_for_ever();
}

static const struct {
    const char *name;
    int (*run)(char **argv);
} commands[] = {
    {"exit", exit_with},
    {"kill", kill_self},
    {"bytes", print_bytes},
    {"lines", print_lines},
    {"copy", copy},
    {"arguments", print_arguments},
    {"file", print_file},
    {"folder", print_folder},
    {"descriptors", print_descriptors},
    {"make", make_file},
    {"writable", try_writing},
    {"memory", eat_memory},
    {"memory-in-child", eat_memory_in_child},
    {"forks", fork_many},
    {"fork-bomb", fork_bomb},
    {"threads", start_threads},
    {"daemon", daemonise},
    {"stubborn", ignore_signals},
    {"signals", print_signals},
    {"family", make_family},
    {"tick", tick},
    {"sleep", sleep_for},
    {"spin", spin},
    {"fill", fill_file},
    {"allocate", allocate_file},
    {"files", make_files},
    {"open-many", open_many},
    {"lock", hold_lock},
    {"attempts", payload_attempts},
    {"families", payload_families},
    {"set-id", payload_set_id},
    {"int80", payload_int80},
    {"x32", payload_x32},
    {"loopback", payload_loopback},
    {"connect", payload_connect},
    {"abstract", payload_abstract},
    {"signal", signal_other},
};

int main(int argc, char **argv)
{
    for (size_t i = 0; argc > 1 && i < sizeof commands / sizeof *commands; i++) {
        if (strcmp(argv[1], commands[i].name) == 0)
            return commands[i].run(argv + 2);
    }
    (void)fprintf(stderr, "payload: no such command\n");
    return 64;
}
