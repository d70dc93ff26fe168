#include "init/worker.h"

#include "base/cleanup.h"
#include "base/sys.h"
#include "init/confine.h"
#include "init/files.h"
#include "init/reply.h"
#include "wire/filter.h"

#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>

static const struct sock_filter filter[] = {
#include "files.inc"
};

static const struct operation {
    int (*run)(const struct wire_file *file);
    uint32_t flags; /* that mean something to it */
    bool takes_input;
} operations[WIRE_FILE_OPERATIONS] = {
    [WIRE_FILE_READ] = {files_read, WIRE_FILE_GROWING, false},
    [WIRE_FILE_WRITE] = {files_write, WIRE_FILE_PARENTS | WIRE_FILE_EXCLUSIVE | WIRE_FILE_ATOMIC, true},
    [WIRE_FILE_APPEND] = {files_append, WIRE_FILE_PARENTS | WIRE_FILE_EXCLUSIVE, true},
    [WIRE_FILE_STAT] = {files_stat, WIRE_FILE_NO_FOLLOW, false},
    [WIRE_FILE_LIST] = {files_list, WIRE_FILE_RECURSIVE, false},
    [WIRE_FILE_MKDIR] = {files_mkdir, WIRE_FILE_PARENTS, false},
    [WIRE_FILE_REMOVE] = {files_remove, WIRE_FILE_RECURSIVE, false},
    [WIRE_FILE_RENAME] = {files_rename, WIRE_FILE_PARENTS | WIRE_FILE_EXCLUSIVE, false},
    [WIRE_FILE_CHMOD] = {files_chmod, 0, false},
    [WIRE_FILE_WATCH] = {files_watch, 0, false},
};

static int confine(const struct wire_file *file)
{
    struct rlimit limit;
    int r = confine_apart();

    if (r == 0)
        r = confine_user(file->uid, file->gid);
    if (r < 0)
        return r;
    /* Its memory is a copy of init's. A change of user alone does not always say so (fs.suid_dumpable). */
    if (setsid() < 0 || prctl(PR_SET_DUMPABLE, 0) < 0)
        return -errno;
    /* A walk holds a descriptor for each folder it is in. */
    if (sys_prlimit(RLIMIT_NOFILE, NULL, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        ignore_result(sys_prlimit(RLIMIT_NOFILE, &limit, NULL));
    }
    (void)umask(0); /* a mode means what it says */
    if (chdir(file->folder.length > 0 ? file->folder.text : "/") < 0)
        return -errno;
    return filter_load(filter, sizeof filter);
}

/* Nothing of init's stays open: a symlink to /proc/self/fd/0 would find it. */
static _Noreturn void work(const struct wire_file *file, int input, int output)
{
    bool ready = dup2(input >= 0 ? input : output, STDIN_FILENO) >= 0 && dup2(output, STDOUT_FILENO) >= 0 &&
                 dup2(output, STDERR_FILENO) >= 0;
    int r = ready ? confine(file) : -errno;

    if (r == 0)
        r = operations[file->operation].run(file);
    int flushed = reply_flush();
    if (r == 0)
        r = flushed;
    _exit(-r);
}

static int make_pipe(bool inwards, int *ret_inner, int *ret_outer)
{
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    *ret_inner = ends[inwards ? 0 : 1];
    *ret_outer = ends[inwards ? 1 : 0];
    return fcntl(*ret_outer, F_SETFL, O_NONBLOCK) < 0 ? -errno : 0;
}

int worker_start(const struct wire_file *file, int *ret_stdin, int *ret_stdout, pid_t *ret_pid)
{
    struct clone_args args = {.exit_signal = SIGCHLD};
    _cleanup_fd_ int inner_in = -1;
    _cleanup_fd_ int inner_out = -1;
    _cleanup_fd_ int outer_in = -1;
    _cleanup_fd_ int outer_out = -1;

    if (file->operation >= WIRE_FILE_OPERATIONS || (file->flags & ~operations[file->operation].flags) != 0 ||
        (file->mode & ~07777U) != 0)
        return -EINVAL;
    int r = make_pipe(false, &inner_out, &outer_out);
    if (r == 0 && operations[file->operation].takes_input)
        r = make_pipe(true, &inner_in, &outer_in);
    if (r < 0)
        return r;
    pid_t pid = sys_clone3(&args);
    if (pid == 0)
        work(file, inner_in, inner_out);
    if (pid < 0)
        return -errno;
    *ret_stdin = TAKE_FD(outer_in);
    *ret_stdout = TAKE_FD(outer_out);
    *ret_pid = pid;
    return 0;
}
