#include "attack/door.h"

#include "attack/process.h"
#include "base/cleanup.h"
#include "base/fd.h"
#include "base/tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum {
    START_LIMIT_MS = 60000,
    END_LIMIT_MS = 30000,
    SETTLE_LIMIT_MS = 10000,
    LOG_MAX = 4 << 20,
    PATH_SIZE = GROUND_PATH_SIZE + 96,
    MEMORY_MORE_MB = 96, /* what an attack may make it take at most, at any time */
    DESCRIPTORS_MORE = 2,
};

/* A second is enough for a client that means well, and attacks should not take long. No pool: what is there is ours. */
static const char *const settings[] = {
    "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HUTCH_LIMITS_PER_IP_RATE=0",
    "HUTCH_SERVER_HEADER_TIMEOUT_SECONDS=1",
    "HUTCH_SERVER_BODY_TIMEOUT_SECONDS=1",
    "HUTCH_SERVER_SEND_TIMEOUT_SECONDS=1",
    "HUTCH_SERVER_IDLE_TIMEOUT_SECONDS=60",
    "HUTCH_SERVER_DRAIN_SECONDS=1",
    "HUTCH_SERVER_MAX_CONNECTIONS=1000",
    "HUTCH_SANDBOX_MAX_CONCURRENT=6",
    "HUTCH_SANDBOX_MAX_EXECS=12",
    "HUTCH_SANDBOX_POOL_ENABLED=false",
};
enum { SETTINGS = sizeof settings / sizeof *settings, OWN_SETTINGS = 4 };

static bool find_program(struct door *door, const char *beside)
{
    const char *slash = strrchr(beside, '/');

    (void)snprintf(door->program, sizeof door->program, "%.*s/hutchd", slash != NULL ? (int)(slash - beside) : 0,
                   beside);
    return access(door->program, X_OK) == 0;
}

static int make_secret(char secret[DOOR_SECRET_SIZE])
{
    uint8_t bytes[(DOOR_SECRET_SIZE - 1) / 2];

    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return -EIO;
    for (size_t i = 0; i < sizeof bytes; i++)
        (void)snprintf(secret + 2 * i, 3, "%02x", bytes[i]);
    return 0;
}

static int make_folder(struct door *door, const struct ground *ground)
{
    char path[PATH_SIZE];

    (void)snprintf(door->folder, sizeof door->folder, "%s/daemon", ground->folder);
    if (mkdir(door->folder, 0755) < 0) /* what is in it is kept by the daemon, not by us */
        return -errno;
    (void)snprintf(path, sizeof path, "%s/hutch.yaml", door->folder);
    _cleanup_fd_ int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd < 0)
        return -errno;
    int r = make_secret(door->key);
    return r < 0 ? r : make_secret(door->password);
}

static void remove_folder(struct door *door)
{
    char parent[PATH_SIZE];
    const char *slash = strrchr(door->folder, '/');

    if (slash == NULL)
        return;
    (void)snprintf(parent, sizeof parent, "%.*s", (int)(slash - door->folder), door->folder);
    _cleanup_fd_ int fd = open(parent, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0)
        tree_remove(fd, slash + 1);
}

static int start(struct door *door, struct error *err)
{
    char own[OWN_SETTINGS][PATH_SIZE];
    char state[PATH_SIZE];
    char config[PATH_SIZE];
    char log[PATH_SIZE];
    const char *envp[SETTINGS + OWN_SETTINGS + 1] = {0};
    const char *argv[] = {door->program, "--config", config, "--state", state, "--listen", "127.0.0.1:0", NULL};
    const char *sanitizer = getenv("ASAN_OPTIONS");

    (void)snprintf(state, sizeof state, "%s/state", door->folder);
    (void)snprintf(config, sizeof config, "%s/hutch.yaml", door->folder);
    (void)snprintf(log, sizeof log, "%s/log", door->folder);
    (void)snprintf(own[0], sizeof own[0], "HUTCH_API_KEY=%s", door->key);
    (void)snprintf(own[1], sizeof own[1], "HUTCH_ADMIN_PASSWORD=%s", door->password);
    (void)snprintf(own[2], sizeof own[2], "ASAN_OPTIONS=%.200s", sanitizer != NULL ? sanitizer : "");
    memcpy(envp, settings, sizeof settings);
    for (size_t i = 0; i < (sanitizer != NULL ? 3 : 2); i++)
        envp[SETTINGS + i] = own[i];
    _cleanup_fd_ int fd = open(log, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600);
    if (fd < 0)
        return error_errno(err, "making %s", log);
    struct process process = {.argv = argv, .envp = envp, .fds = {-1, fd, fd}};
    pid_t pid = process_start(&process);
    if (pid < 0)
        return error_set(err, ERROR_SYSTEM, (int)-pid, "starting %s", door->program);
    door->pid = pid;
    return 0;
}

/* Everything the daemon wrote so far; ends in NUL. */
static int read_log(const struct door *door, struct buf *text)
{
    char path[PATH_SIZE];
    char chunk[8192];
    ssize_t n = 0;
    int r = 0;

    (void)snprintf(path, sizeof path, "%s/log", door->folder);
    _cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    while (r == 0 && (n = read(fd, chunk, sizeof chunk)) > 0)
        r = buf_append(text, chunk, (size_t)n);
    return r < 0 ? r : buf_append(text, "", 1);
}

static bool has_ended(struct door *door, int *ret_status)
{
    if (door->pid == 0 || waitpid(door->pid, ret_status, WNOHANG) != door->pid)
        return false;
    door->pid = 0;
    return true;
}

/* The port, or 0 while it is not ready. */
static long ready_port(const struct door *door, struct buf *text)
{
    static const char words[] = "event=listening address=127.0.0.1:";

    text->length = 0;
    if (read_log(door, text) < 0 || strstr((const char *)text->data, "event=ready") == NULL)
        return 0;
    const char *at = strstr((const char *)text->data, words);
    return at != NULL ? strtol(at + sizeof words - 1, NULL, 10) : 0;
}

static int wait_until_ready(struct door *door, long *ret_port, struct error *err)
{
    struct buf text = buf_init(LOG_MAX);
    int status = 0;
    bool is_over = false;

    *ret_port = 0;
    for (unsigned ms = 0; *ret_port == 0 && !is_over && ms < START_LIMIT_MS; ms += 2) {
        (void)usleep(2000);
        is_over = has_ended(door, &status);
        *ret_port = ready_port(door, &text);
    }
    int r = 0;
    if (*ret_port == 0)
        r = error_set(err, ERROR_SYSTEM, 0, "starting hutchd: %.300s", text.data != NULL ? (char *)text.data : "");
    buf_release(&text);
    return r;
}

/* The child of hutchd's that serves. */
static pid_t find_gateway(pid_t pid)
{
    char path[64];
    char text[4096];
    char words[256];
    char *rest = text;

    (void)snprintf(path, sizeof path, "/proc/%d/task/%d/children", pid, pid);
    ssize_t n = fd_read_file(AT_FDCWD, path, text, sizeof text);
    for (char *word; n > 0 && (word = strtok_r(rest, " \n", &rest)) != NULL;) {
        pid_t child = (pid_t)strtol(word, NULL, 10);
        (void)snprintf(path, sizeof path, "/proc/%d/cmdline", child);
        ssize_t length = fd_read_file(AT_FDCWD, path, words, sizeof words);
        if (length > 0 && memmem(words, (size_t)length, "--serve", 7) != NULL)
            return child;
    }
    return 0;
}

static int start_pulse(struct door *door, const struct ground *ground, struct error *err)
{
    char program[GROUND_PATH_SIZE + 16];
    const char *argv[] = {program, "--pulse", NULL};
    const char *envp[DOOR_VARIABLES + 1] = {0};

    (void)snprintf(program, sizeof program, "%s/hutch-attack", ground->program);
    for (size_t i = 0; i < DOOR_VARIABLES; i++)
        envp[i] = door->variables[i];
    return neighbour_start(&door->pulse, "the daemon", argv, envp, err);
}

static void set_variables(struct door *door, const struct ground *ground, long port)
{
    size_t size = sizeof *door->variables;

    (void)snprintf(door->variables[0], size, "HUTCH_ATTACK_DOOR_PORT=%ld", port);
    (void)snprintf(door->variables[1], size, "HUTCH_ATTACK_DOOR_KEY=%s", door->key);
    (void)snprintf(door->variables[2], size, "HUTCH_ATTACK_DOOR_PASSWORD=%s", door->password);
    (void)snprintf(door->variables[3], size, "HUTCH_ATTACK_DOOR_FOLDER=%s", door->folder);
    (void)snprintf(door->variables[4], size, "HUTCH_ATTACK_DOOR_PID=%d", door->pid);
    (void)snprintf(door->variables[5], size, "HUTCH_ATTACK_DOOR_DAEMON=%s", door->program);
    (void)snprintf(door->variables[6], size, "HUTCH_ATTACK_PROGRAM=%s/hutch-attack", ground->program);
}

int door_open(struct door *door, const struct ground *ground, const char *hutch, struct error *err)
{
    long port = 0;

    *door = DOOR_EMPTY;
    if (!find_program(door, hutch))
        return error_set(err, ERROR_NOT_FOUND, ENOENT, "there is no hutchd beside %.200s", hutch);
    int r = make_folder(door, ground);
    if (r < 0)
        return error_set(err, ERROR_SYSTEM, -r, "making a folder for hutchd");
    r = start(door, err);
    if (r == 0)
        r = wait_until_ready(door, &port, err);
    if (r == 0) {
        door->gateway = find_gateway(door->pid);
        set_variables(door, ground, port);
        r = start_pulse(door, ground, err);
    }
    if (r < 0)
        (void)door_close(door);
    return r;
}

int door_close(struct door *door)
{
    int status = 0;
    int r = 0;

    neighbour_end(&door->pulse);
    if (door->pid > 0) {
        (void)kill(door->pid, SIGTERM);
        for (unsigned ms = 0; door->pid > 0 && !has_ended(door, &status) && ms < END_LIMIT_MS; ms += 2)
            (void)usleep(2000);
        r = door->pid > 0 ? -ETIMEDOUT : process_status(status);
        (void)process_end(&door->pid);
    }
    remove_folder(door);
    *door = DOOR_EMPTY;
    return r;
}

/* A line of /proc/PID/status in bytes. */
static uint64_t read_memory(const struct door *door, const char *name)
{
    char path[64];
    char text[8192];

    (void)snprintf(path, sizeof path, "/proc/%d/status", door->gateway);
    const char *at = fd_read_file(AT_FDCWD, path, text, sizeof text) > 0 ? strstr(text, name) : NULL;
    return at != NULL ? strtoull(at + strlen(name), NULL, 10) << 10 : 0;
}

static size_t count_descriptors(const struct door *door)
{
    char path[64];
    size_t count = 0;

    (void)snprintf(path, sizeof path, "/proc/%d/fd", door->gateway);
    DIR *folder = opendir(path);
    while (folder != NULL && readdir(folder) != NULL)
        count++;
    if (folder != NULL)
        (void)closedir(folder);
    return count;
}

/* Freed memory stays with AddressSanitizer for a while: it says nothing there. */
static bool is_sanitized(const struct door *door)
{
    char path[64];
    char line[512];
    bool is = false;

    (void)snprintf(path, sizeof path, "/proc/%d/maps", door->gateway);
    FILE *file = fopen(path, "re");
    while (file != NULL && !is && fgets(line, sizeof line, file) != NULL)
        is = strstr(line, "libasan") != NULL;
    if (file != NULL)
        (void)fclose(file);
    return is;
}

void door_begin(struct door *door)
{
    struct buf text = buf_init(LOG_MAX);
    char path[64];

    neighbour_begin(&door->pulse);
    door->log_start = read_log(door, &text) == 0 ? text.length - 1 : 0;
    buf_release(&text);
    (void)snprintf(path, sizeof path, "/proc/%d/clear_refs", door->gateway);
    ignore_result(fd_write_file(AT_FDCWD, path, "5")); /* the peak is counted anew; where it is not, it is too high */
    door->memory_bytes = read_memory(door, "VmRSS:");
    door->descriptors = count_descriptors(door);
}

/* Every line is one that log.c wrote, and none has a secret in it. */
static const char *judge_log(const struct door *door, bool was_operator, struct buf *text)
{
    if (read_log(door, text) < 0)
        return "its log could not be read, or is larger than 4 MiB";
    const char *line = text->data != NULL ? (const char *)text->data + door->log_start : "";
    if (strstr(line, door->key) != NULL || strstr(line, door->password) != NULL)
        return "a secret is in its log";
    for (; !was_operator && *line != '\0'; line += strcspn(line, "\n") + 1) {
        if (strncmp(line, "time=20", 7) != 0 || strchr(line, '\n') == NULL)
            return "a line of its log is not its own";
    }
    return NULL;
}

static bool have_descriptors_gone(const struct door *door)
{
    for (unsigned ms = 0; ms < SETTLE_LIMIT_MS; ms += 5) {
        if (count_descriptors(door) <= door->descriptors + DESCRIPTORS_MORE)
            return true;
        (void)usleep(5000);
    }
    return false;
}

bool door_is_well(struct door *door, uint64_t memory_most, bool was_operator, char ret_harm[DOOR_HARM_SIZE])
{
    struct buf text = buf_init(LOG_MAX);
    int status = 0;
    const char *harm = NULL;

    if (has_ended(door, &status))
        harm = "it has ended";
    else if (find_gateway(door->pid) != door->gateway)
        harm = "its gateway has ended";
    else
        harm = judge_log(door, was_operator, &text);
    uint64_t most = memory_most > 0 ? memory_most : (uint64_t)MEMORY_MORE_MB << 20;
    uint64_t peak = read_memory(door, "VmHWM:");
    ret_harm[0] = '\0';
    if (harm == NULL && !neighbour_is_well(&door->pulse))
        (void)snprintf(ret_harm, DOOR_HARM_SIZE, "%s", door->pulse.harm);
    else if (harm == NULL && !is_sanitized(door) && peak > door->memory_bytes + most)
        (void)snprintf(ret_harm, DOOR_HARM_SIZE, "the daemon took %llu MiB of memory more than before",
                       (unsigned long long)(peak - door->memory_bytes) >> 20);
    else if (harm == NULL && !have_descriptors_gone(door))
        harm = "connections, sandboxes or commands are left in it";
    if (harm != NULL)
        (void)snprintf(ret_harm, DOOR_HARM_SIZE, "the daemon: %s", harm);
    buf_release(&text);
    return ret_harm[0] == '\0';
}
