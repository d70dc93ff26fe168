#include "gateway/handover.h"

#include "base/cleanup.h"
#include "base/fd.h"
#include "test.h"
#include "wire/link.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define BOOT (UINT64_MAX - 5)
#define KEY "0123456789abcdef\0\1\2\3\4\5\6\7ABCDEFGH"

static int file_with(const char *text, size_t length)
{
    int fd = memfd_create("test", MFD_CLOEXEC);

    assert_true(fd >= 0);
    assert_int_equal(fd_write_all(fd, text, length), 0);
    return fd;
}

static bool is_same_file(int a, int b)
{
    struct stat x;
    struct stat y;

    assert_return_code(fstat(a, &x), errno);
    assert_return_code(fstat(b, &y), errno);
    return x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* A listener is any descriptor here. */
static struct wire_settings settings_of(uint32_t flags, const char *listeners, uint32_t length, uint32_t count)
{
    return (struct wire_settings){
        .generation = 1, .boot = BOOT, .flags = flags, .listeners = {listeners, length, count}};
}

TEST(test_take)
{
    static const char names[] = "127.0.0.1:80\0unix";
    static const char presets[] = "pass\0key\0" KEY;
    int ends[2];
    int other[2];
    int fds[] = {file_with("sandbox: {max_concurrent: 5}\n", 29), file_with(presets, sizeof presets - 1),
                 file_with("a", 1), file_with("b", 1)};
    struct wire_message message = {.type = WIRE_SETTINGS};
    struct handover handover;
    struct error err = {0};
    static uint8_t frame[WIRE_FRAME_MAX];
    size_t before = test_open_fds();

    assert_return_code(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), errno);
    assert_return_code(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, other), errno);
    message.settings = settings_of(WIRE_SETTINGS_PRESETS | WIRE_SETTINGS_UNIX, names, sizeof names, 2);
    assert_int_equal(link_send(ends[0], &message, fds, 4), 0);
    for (uint64_t i = 10; i < 15; i++) {
        message = (struct wire_message){.type = WIRE_ADOPT, .adopt = {.sandbox = i, .uid_first = 65536}};
        assert_int_equal(link_send(ends[0], &message, &other[0], 1), 0);
    }
    message = (struct wire_message){.type = WIRE_ADOPTED, .adopted = {.count = 5}};
    assert_int_equal(link_send(ends[0], &message, NULL, 0), 0);

    assert_int_equal(handover_take(ends[1], &handover, &err), 0);
    assert_true(handover.boot == BOOT);
    assert_int_equal(link_receive(ends[0], WIRE_BY_CLIENT, WIRE_IN_STARTING, frame, &message, NULL, NULL), 1);
    assert_int_equal(message.type, WIRE_ATTACH);
    assert_int_equal(handover.config->sandbox.max_concurrent, 5);
    assert_string_equal(handover.presets.admin_password, "pass");
    assert_string_equal(handover.presets.api_key, "key");
    assert_memory_equal(handover.seal.key, KEY, SEAL_KEY_BYTES);
    assert_int_equal(handover.listener_count, 2);
    assert_string_equal(handover.listeners[0].name, "127.0.0.1:80");
    assert_false(handover.listeners[0].is_unix);
    assert_true(handover.listeners[1].is_unix);
    assert_true(is_same_file(handover.listeners[1].fd, fds[3]));
    assert_int_equal(handover.sandbox_count, 5);
    assert_int_equal(handover.sandboxes[4].sandbox, 14);
    assert_true(is_same_file(handover.sandboxes[2].guest_fd, other[0]));
    assert_int_equal(handover.certificate_fd, -1);
    handover_forget_presets(&handover);
    assert_null(handover.presets.api_key);
    handover_release(&handover);
    close_fd(&ends[0]);
    fd_close_many(other, 2);
    assert_int_equal(test_open_fds(), before);
    fd_close_many(fds, 4);
}

static void update(struct handover *handover, struct wire_settings settings, int *fds, size_t fd_count, int result,
                   size_t expected_gone)
{
    int gone[HANDOVER_LISTENERS_MAX];
    size_t gone_count = 0;
    struct config *replaced = NULL;
    struct error err = {0};

    assert_int_equal(handover_update(handover, &settings, fds, fd_count, gone, &gone_count, &replaced, &err), result);
    assert_int_equal(gone_count, expected_gone);
    fd_close_many(gone, gone_count);
    config_free(replaced);
}

/* What stays keeps its descriptor, what is not wanted is given back, and a bad one changes nothing. */
TEST(test_update)
{
    static const char two[] = "a:1\0b:2";
    static const char other[] = "b:2\0c:3\0d:4";
    struct handover handover = HANDOVER_EMPTY;
    size_t before = test_open_fds();
    int first[] = {file_with("", 0), file_with("1", 1), file_with("2", 1)};
    int second[] = {file_with("logging: {level: debug}\n", 24),
                    file_with("k", 1),
                    file_with("l", 1),
                    file_with("2", 1),
                    file_with("3", 1),
                    file_with("4", 1)};
    int bad[] = {file_with("x: 1\n", 5), file_with("5", 1), file_with("6", 1)};
    int few[] = {file_with("", 0)};

    update(&handover, settings_of(0, two, sizeof two, 2), first, 3, 0, 0);
    int kept = handover.listeners[1].fd;
    update(&handover, settings_of(WIRE_SETTINGS_TLS, other, sizeof other, 3), second, 6, 0, 1);
    assert_int_equal(handover.listener_count, 3);
    assert_int_equal(handover.listeners[0].fd, kept);
    assert_string_equal(handover.listeners[0].name, "b:2");
    assert_true(handover.certificate_fd >= 0 && handover.key_fd >= 0);
    assert_int_equal(handover.config->logging_level, 0);
    size_t open = test_open_fds();
    update(&handover, settings_of(0, two, sizeof two, 2), bad, 3, -EINVAL, 0);
    assert_int_equal(handover.listener_count, 3);
    assert_int_equal(handover.config->logging_level, 0);
    assert_int_equal(test_open_fds(), open - 3);
    update(&handover, settings_of(0, two, sizeof two, 2), few, 1, -EBADMSG, 0);
    handover_release(&handover);
    assert_int_equal(test_open_fds(), before);
}

TEST(test_credentials)
{
    static char open[] = "HUTCH_SERVER_LISTEN=0.0.0.0:80";
    char *environment[] = {open, NULL};
    struct config_problems problems = config_problems_init();
    static char key[] = "key";
    struct handover handover = HANDOVER_EMPTY;
    struct error err = {0};

    assert_int_equal(config_load("x", "", 0, NULL, &handover.config, &problems), 0);
    assert_int_equal(handover_check_credentials(&handover, false, &err), 0);
    config_free(handover.config);
    assert_int_equal(config_load("x", "", 0, environment, &handover.config, &problems), 0);
    assert_int_equal(handover_check_credentials(&handover, false, &err), -EINVAL);
    assert_int_equal(handover_check_credentials(&handover, true, &err), 0);
    handover.presets.api_key = key;
    assert_int_equal(handover_check_credentials(&handover, false, &err), 0);
    handover.presets.api_key = NULL;
    handover_release(&handover);
    config_problems_release(&problems);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_take), cmocka_unit_test(test_update),
                                       cmocka_unit_test(test_credentials)};

    return cmocka_run_group_tests_name("gateway/handover", tests, NULL, NULL);
}
