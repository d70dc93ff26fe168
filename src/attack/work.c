#include "attack/work.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>

enum { CHUNK = 65536, PAGE = 4096, DESCRIPTOR_MOST = 64 << 20 };

static char chunk[CHUNK];

void work_touch_memory(size_t size)
{
    char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    for (size_t at = 0; memory != MAP_FAILED && at < size; at += PAGE)
        ((volatile char *)memory)[at] = 'x';
}

int work_fill_file(const char *path, uint64_t most, uint64_t *ret_size)
{
    _cleanup_fd_ int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    uint64_t size = 0;

    (void)signal(SIGXFSZ, SIG_IGN);
    (void)memset(chunk, 'x', sizeof chunk);
    *ret_size = 0;
    if (fd < 0)
        return errno;
    while (size < most) {
        ssize_t n = write(fd, chunk, most - size < CHUNK ? (size_t)(most - size) : CHUNK);
        if (n < 0)
            return errno;
        size += (uint64_t)n;
        *ret_size = size;
    }
    return 0;
}

void work_fill_descriptor(int fd)
{
    (void)fcntl(fd, F_SETFL, O_NONBLOCK);
    for (size_t size = 0; size < DESCRIPTOR_MOST;) {
        ssize_t n = write(fd, chunk, sizeof chunk);
        if (n <= 0)
            return;
        size += (size_t)n;
    }
}

void work_print(size_t size)
{
    (void)memset(chunk, 'x', sizeof chunk);
    for (; size > 0; size -= size < CHUNK ? size : CHUNK)
        ignore_result(fd_write_all(STDOUT_FILENO, chunk, size < CHUNK ? size : CHUNK));
}

uint64_t work_deadline_ns(unsigned ms)
{
    return clock_now_ns() + (uint64_t)ms * 1000000U;
}

bool work_goes_on(uint64_t deadline_ns)
{
    return clock_now_ns() < deadline_ns;
}

unsigned work_count_processes(void)
{
    DIR *folder = opendir("/proc");
    unsigned count = 0;

    for (struct dirent *entry; folder != NULL && (entry = readdir(folder)) != NULL;)
        count += entry->d_name[0] >= '0' && entry->d_name[0] <= '9' ? 1 : 0;
    if (folder != NULL)
        (void)closedir(folder);
    return count;
}
