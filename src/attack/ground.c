#include "attack/ground.h"

#include "attack/host.h"
#include "attack/process.h"
#include "base/cleanup.h"
#include "base/fd.h"
#include "base/tree.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <netinet/in.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/sendfile.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>

enum { DESCRIPTION_MAX = 1 << 18, COPY_MAX = 64 << 20, SWAPS = 64, SWAP_REST_US = 100, EXCHANGE = 2 };

static int join(char *ret_path, const char *folder, const char *name)
{
    int n = snprintf(ret_path, GROUND_PATH_SIZE, "%s/%s", folder, name);

    return n < 0 || n >= GROUND_PATH_SIZE ? -ENAMETOOLONG : 0;
}

static int write_file(const char *path, const char *text, mode_t mode)
{
    _cleanup_fd_ int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    if (fd < 0 || fchmod(fd, mode) < 0)
        return -errno;
    return fd_write_all(fd, text, strlen(text));
}

static int copy_file(const char *from, const char *to, mode_t mode)
{
    _cleanup_fd_ int in = open(from, O_RDONLY | O_CLOEXEC);
    _cleanup_fd_ int out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    ssize_t n = 1;

    if (in < 0 || out < 0)
        return -errno;
    while (n > 0)
        n = sendfile(out, in, NULL, COPY_MAX);
    return n < 0 || fchmod(out, mode) < 0 ? -errno : 0;
}

/* Everything in it is open to everybody, so that a refusal is the sandbox's and not a question of permissions. */
static int make_folder(struct ground *ground, const char *own, struct error *err)
{
    char path[GROUND_PATH_SIZE];

    (void)snprintf(ground->folder, sizeof ground->folder, "/var/tmp/hutch-attack-XXXXXX");
    if (mkdtemp(ground->folder) == NULL) {
        ground->folder[0] = '\0';
        return error_errno(err, "making a folder in /var/tmp");
    }
    (void)umask(0);
    int r = chmod(ground->folder, 0755) < 0 ? -errno : 0;
    if (r == 0)
        r = join(ground->canary, ground->folder, "canary");
    if (r == 0)
        r = join(ground->shared, ground->folder, "shared");
    if (r == 0)
        r = join(ground->root, ground->folder, "root");
    if (r == 0)
        r = join(ground->program, ground->folder, "program");
    if (r == 0 &&
        (mkdir(ground->canary, 0777) < 0 || mkdir(ground->program, 0755) < 0 || mkdir(ground->shared, 0777) < 0))
        r = -errno;
    if (r == 0)
        r = join(path, ground->program, "hutch-attack");
    if (r == 0)
        r = copy_file(own, path, 0755);
    if (r == 0)
        r = join(path, ground->canary, "secret");
    if (r == 0)
        r = write_file(path, "the secret of the host", 0666);
    if (r == 0)
        r = join(path, ground->folder, "link");
    if (r == 0 && symlink(ground->canary, path) < 0)
        r = -errno;
    if (r == 0)
        ground->leaked_fd = open(ground->canary, O_RDONLY | O_DIRECTORY); /* on purpose without O_CLOEXEC */
    return r < 0 ? error_set(err, ERROR_SYSTEM, -r, "filling %s", ground->folder) : 0;
}

/* On loopback, any free port, and as an abstract name. */
static int make_listeners(struct ground *ground, const char *name, int *ret_port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    struct sockaddr_un local = {.sun_family = AF_UNIX};
    socklen_t size = sizeof address;
    size_t length = strlen(name);

    memcpy(local.sun_path + 1, name, length);
    ground->tcp_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    ground->abstract_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (ground->tcp_fd < 0 || bind(ground->tcp_fd, (struct sockaddr *)&address, size) < 0 ||
        listen(ground->tcp_fd, 1) < 0 || getsockname(ground->tcp_fd, (struct sockaddr *)&address, &size) < 0)
        return -errno;
    if (ground->abstract_fd < 0 ||
        bind(ground->abstract_fd, (struct sockaddr *)&local,
             (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length)) < 0 ||
        listen(ground->abstract_fd, 1) < 0)
        return -errno;
    *ret_port = ntohs(address.sin_port);
    return 0;
}

static int make_shared_memory(struct ground *ground, key_t key)
{
    ground->shared_memory = shmget(key, 4096, IPC_CREAT | IPC_EXCL | 0666);
    if (ground->shared_memory < 0)
        return -errno;
    char *memory = shmat(ground->shared_memory, NULL, 0);
    if (memory == (char *)-1) // NOLINT(performance-no-int-to-ptr): shmat's own word for an error
        return -errno;
    (void)snprintf(memory, 4096, "the host's");
    ground->shared_memory_pid = getpid();
    return shmdt(memory) < 0 ? -errno : 0;
}

/* Any signal that reaches it changes how it ends, or that it goes on. */
static int make_process(struct ground *ground)
{
    pid_t parent = getpid();
    pid_t pid = fork();

    if (pid < 0)
        return -errno;
    ground->process = pid;
    while (pid == 0) {
        (void)usleep(100000);
        if (getppid() != parent)
            _exit(0);
    }
    return 0;
}

static int make_canaries(struct ground *ground, struct error *err)
{
    const char *name = strrchr(ground->folder, '/') + 1;
    key_t key = (key_t)(getpid() | 0x48000000);
    int port = 0;
    int r = make_listeners(ground, name, &port);

    if (r == 0)
        r = make_shared_memory(ground, key);
    if (r == 0)
        r = make_process(ground);
    if (r < 0)
        return error_set(err, ERROR_SYSTEM, -r, "setting up canaries");
    size_t size = sizeof *ground->variables;
    (void)snprintf(ground->variables[0], size, "HUTCH_ATTACK_FILE=%s/secret", ground->canary);
    (void)snprintf(ground->variables[1], size, "HUTCH_ATTACK_PORT=%d", port);
    (void)snprintf(ground->variables[2], size, "HUTCH_ATTACK_PID=%d", ground->process);
    (void)snprintf(ground->variables[3], size, "HUTCH_ATTACK_NAME=%s", name);
    (void)snprintf(ground->variables[4], size, "HUTCH_ATTACK_KEY=%d", key);
    return 0;
}

static int describe(const struct ground *ground, struct buf *text)
{
    char secret[GROUND_PATH_SIZE];
    char program[GROUND_PATH_SIZE + 16];
    const char *files[] = {ground->canary, secret, program, ground->programs[0], ground->programs[1], ground->init};

    (void)snprintf(program, sizeof program, "%s/hutch-attack", ground->program);
    int r = join(secret, ground->canary, "secret");
    return r < 0 ? r : host_describe(files, sizeof files / sizeof *files, text);
}

int ground_init(struct ground *ground, const char *hutch, const char *own, struct error *err)
{
    *ground = GROUND_EMPTY;
    ground->programs[0] = hutch;
    ground->programs[1] = own;
    ground->before = buf_init(DESCRIPTION_MAX);
    const char *slash = strrchr(own, '/');
    (void)snprintf(ground->init, sizeof ground->init, "%.*s/hutch-init", slash != NULL ? (int)(slash - own) : 0, own);
    int r = make_folder(ground, own, err);
    if (r == 0)
        r = make_canaries(ground, err);
    if (r == 0) {
        r = describe(ground, &ground->before);
        r = r < 0 ? error_set(err, ERROR_SYSTEM, -r, "looking at the host") : 0;
    }
    return r;
}

/* Everybody may write in some of it: only the folder that holds it is named by a path. */
static void remove_tree(const char *path)
{
    char parent[GROUND_PATH_SIZE];
    const char *slash = strrchr(path, '/');

    if (slash == NULL)
        return;
    (void)snprintf(parent, sizeof parent, "%.*s", (int)(slash - path), path);
    _cleanup_fd_ int fd = open(parent, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0)
        tree_remove(fd, slash + 1);
}

void ground_release(struct ground *ground)
{
    (void)process_end(&ground->process);
    if (ground->shared_memory >= 0)
        (void)shmctl(ground->shared_memory, IPC_RMID, NULL);
    close_fd(&ground->tcp_fd);
    close_fd(&ground->abstract_fd);
    close_fd(&ground->leaked_fd);
    remove_tree(ground->folder);
    buf_release(&ground->before);
    *ground = GROUND_EMPTY;
}

static bool is_running(struct ground *ground)
{
    siginfo_t info = {0};

    return waitid(P_PID, (id_t)ground->process, &info, WEXITED | WSTOPPED | WCONTINUED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid == 0;
}

/* Nobody has spoken to a listener of ours. */
static bool is_quiet(int listener)
{
    bool quiet = true;

    for (int fd; (fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC)) >= 0; quiet = false)
        (void)close(fd);
    return quiet;
}

static int judge_entry(const char *path, const struct stat *st, int type, struct FTW *position)
{
    (void)path;
    (void)type;
    (void)position;
    return st->st_uid != getuid() || (st->st_mode & (S_ISUID | S_ISGID)) != 0 ||
                   !(S_ISREG(st->st_mode) || S_ISDIR(st->st_mode))
               ? 1
               : 0;
}

/* What a sandbox made in a folder of the host's belongs to the caller and is nothing but files. It is removed. */
static bool is_share_clean(const struct ground *ground)
{
    bool is_clean = nftw(ground->shared, judge_entry, 16, FTW_PHYS) == 0;

    remove_tree(ground->shared);
    return mkdir(ground->shared, 0777) == 0 && is_clean;
}

static bool is_memory_whole(const struct ground *ground)
{
    struct shmid_ds state;

    return shmctl(ground->shared_memory, IPC_STAT, &state) == 0 && state.shm_nattch == 0 &&
           state.shm_lpid == ground->shared_memory_pid;
}

void ground_forgive(struct ground *ground)
{
    struct shmid_ds state;

    (void)is_quiet(ground->tcp_fd);
    (void)is_quiet(ground->abstract_fd);
    if (shmctl(ground->shared_memory, IPC_STAT, &state) == 0)
        ground->shared_memory_pid = state.shm_lpid;
}

bool ground_is_unharmed(struct ground *ground, char ret_harm[GROUND_HARM_SIZE])
{
    struct buf now = buf_init(DESCRIPTION_MAX);
    const char *harm = NULL;

    if (!is_running(ground))
        harm = "a process of the host's was ended, stopped or woken";
    else if (!is_quiet(ground->tcp_fd) || !is_quiet(ground->abstract_fd))
        harm = "a socket of the host's was reached";
    else if (!is_memory_whole(ground))
        harm = "shared memory of the host's was reached";
    else if (!is_share_clean(ground))
        harm = "a set-user-ID file, a node or somebody else's file is in a folder that was shown";
    else if (describe(ground, &now) < 0)
        harm = "the host could not be looked at";
    if (harm != NULL)
        (void)snprintf(ret_harm, GROUND_HARM_SIZE, "%s", harm);
    else
        harm = host_difference((const char *)ground->before.data, (const char *)now.data, ret_harm, GROUND_HARM_SIZE);
    buf_release(&now);
    return harm == NULL;
}

int ground_copy_program(const struct ground *ground, const char *path, mode_t mode)
{
    char from[GROUND_PATH_SIZE + 16];
    char to[GROUND_PATH_SIZE];
    int r = join(to, ground->root, path);

    (void)snprintf(from, sizeof from, "%s/hutch-attack", ground->program);
    return r < 0 ? r : copy_file(from, to, mode);
}

int ground_make_root(const struct ground *ground)
{
    static const char *const folders[] = {"", "dev", "proc", "tmp", "run", "attack"};
    char path[GROUND_PATH_SIZE];

    ground_remove_root(ground);
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        if (join(path, ground->root, folders[i]) < 0 || mkdir(path, 0755) < 0)
            return -errno;
    }
    return ground_copy_program(ground, "attack/hutch-attack", 0755);
}

void ground_remove_root(const struct ground *ground)
{
    remove_tree(ground->root);
}

int ground_replace_with_symlink(const struct ground *ground, const char *path, const char *target)
{
    char link[GROUND_PATH_SIZE];
    int r = join(link, ground->root, path);

    if (r < 0)
        return r;
    if (rmdir(link) < 0 && unlink(link) < 0 && errno != ENOENT)
        return -errno;
    return symlink(target, link) < 0 ? -errno : 0;
}

int ground_prepare_swap(const struct ground *ground, const char *target)
{
    char path[GROUND_PATH_SIZE];
    int r = join(path, ground->root, target);

    if (r == 0 && mkdir(path, 0755) < 0 && errno != EEXIST)
        r = -errno;
    return r < 0 ? r : ground_replace_with_symlink(ground, "other", ground->canary);
}

void ground_swap(const struct ground *ground, const char *target)
{
    char one[GROUND_PATH_SIZE];
    char other[GROUND_PATH_SIZE];

    if (join(one, ground->root, target) < 0 || join(other, ground->root, "other") < 0)
        return;
    for (int i = 0; i < SWAPS; i++)
        ignore_result(syscall(SYS_renameat2, AT_FDCWD, one, AT_FDCWD, other, EXCHANGE));
    (void)usleep(SWAP_REST_US);
}
