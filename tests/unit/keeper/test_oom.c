#include "keeper/oom.h"

#include "base/cleanup.h"
#include "base/fd.h"
#include "test.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HITS_MAX = 8 };

struct hits {
    int count;
    int watches[HITS_MAX];
};

static void hit(void *context, int watch)
{
    struct hits *hits = context;

    assert_true(hits->count < HITS_MAX);
    hits->watches[hits->count++] = watch;
}

static struct hits take(struct oom *oom)
{
    struct hits hits = {0};

    oom_take(oom, 0, hit, &hits);
    return hits;
}

static void make(int folder, const char *name)
{
    char path[64];

    assert_return_code(mkdirat(folder, name, 0700), errno);
    (void)snprintf(path, sizeof path, "%s/memory.events", name);
    _cleanup_fd_ int fd = openat(folder, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    assert_return_code(fd, errno);
}

static void change(int folder, const char *path)
{
    assert_int_equal(fd_write_file(folder, path, "x"), 0);
}

static void remove_all(int folder, const char *name)
{
    char path[64];

    (void)snprintf(path, sizeof path, "%s/memory.events", name);
    assert_return_code(unlinkat(folder, path, 0), errno);
    assert_return_code(unlinkat(folder, name, AT_REMOVEDIR), errno);
}

/* Plain files stand for those of cgroup v2: only the one that changed is named. */
TEST(test_one_of_many)
{
    char place[] = "/tmp/hutch-oom-XXXXXX";
    struct error err = {0};
    struct oom oom;
    int first = -1;
    int second = -1;

    assert_non_null(mkdtemp(place));
    _cleanup_fd_ int folder = open(place, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    oom_init(&oom, folder, false);
    make(folder, "a");
    make(folder, "b");
    assert_int_equal(oom_watch(&oom, "missing", &first, &err), -ENOENT);
    assert_int_equal(oom_watch(&oom, "a", &first, &err), 0);
    assert_int_equal(oom_watch(&oom, "b", &second, &err), 0);
    assert_int_not_equal(first, second);
    assert_int_equal(oom_group_of(&oom, second), 0);
    assert_true(oom_fd(&oom, 0) >= 0);
    assert_int_equal(take(&oom).count, 0);
    change(folder, "b/memory.events");
    struct hits hits = take(&oom);
    assert_true(hits.count >= 1);
    for (int i = 0; i < hits.count; i++)
        assert_int_equal(hits.watches[i], second);
    /* The watch goes with the cgroup; it would stay by itself. */
    oom_unwatch(&oom, second);
    change(folder, "b/memory.events");
    assert_int_equal(take(&oom).count, 0);
    oom_release(&oom);
    remove_all(folder, "a");
    remove_all(folder, "b");
    assert_return_code(rmdir(place), errno);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_one_of_many)};

    return cmocka_run_group_tests_name("keeper/oom", tests, NULL, NULL);
}
