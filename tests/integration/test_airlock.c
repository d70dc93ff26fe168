/*
 * The airlock's process, spoken to as keeper and gateway will: rules that change while connections are open, limits,
 * decisions, and the end of a sandbox. The server is one of the machine's own, host.hutch:PORT, so no name is resolved.
 *
 *     test_airlock AIRLOCK
 */
#include "airlock_world.h"
#include "base/cleanup.h"
#include "base/fd.h"
#include "keeper/airlock_sockets.h"
#include "wire/link.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/wait.h>

TEST(rules_change_while_connections_are_open)
{
    struct world world = begin();
    unsigned status = 0;
    char byte;

    assert_string_equal(rule(&world, (struct wire_rules){.mode = ALLOWLIST}, own_service()), "");
    int fd = ask(&status);
    assert_int_equal(status, 200);
    assert_true(echoes(fd));
    /* One that is wrong changes nothing. */
    assert_non_null(strstr(rule(&world, (struct wire_rules){.mode = ALLOWLIST}, "a..b"), "rule 'a..b'"));
    assert_true(echoes(fd));
    assert_string_equal(rule(&world, (struct wire_rules){.mode = 9}, NULL), "there is no such mode of the network");
    assert_true(echoes(fd));
    assert_string_equal(rule(&world, (struct wire_rules){.mode = ALLOWLIST}, "other.test"), "");
    assert_true(recv(fd, &byte, 1, 0) <= 0);
    (void)close(fd);
    fd = ask(&status);
    assert_int_equal(status, 403);
    (void)close(fd);
    assert_string_equal(rule(&world, (struct wire_rules){.mode = ALLOWLIST}, own_service()), "");
    fd = ask(&status);
    assert_true(status == 200 && echoes(fd));
    (void)close(fd);
    end(&world);
}

TEST(nothing_is_let_through_before_the_first_rules)
{
    struct world world = begin();
    int fd = dial_proxy();
    struct pollfd ready = {.fd = fd, .events = POLLIN};
    char text[100];

    int length = snprintf(text, sizeof text, "CONNECT %s HTTP/1.1\r\nHost: x\r\n\r\n", own_service());
    assert_int_equal(send(fd, text, (size_t)length, 0), length);
    assert_int_equal(poll(&ready, 1, 50), 0);
    assert_string_equal(rule(&world, (struct wire_rules){.mode = NONE}, own_service()), "");
    assert_int_equal(poll(&ready, 1, WAIT_MS), 1);
    assert_true(recv(fd, text, sizeof text, 0) > 12 && memcmp(text, "HTTP/1.1 403", 12) == 0);
    (void)close(fd);
    end(&world);
}

TEST(every_decision_is_told)
{
    struct world world = begin();
    unsigned status = 0;

    assert_string_equal(rule(&world, (struct wire_rules){.mode = ALLOWLIST}, own_service()), "");
    int fd = ask(&status);
    struct wire_message message = hear(&world, WIRE_DECISION);
    assert_int_equal(message.decision.kind, WIRE_DECISION_CONNECT);
    assert_int_equal(message.decision.verdict, WIRE_VERDICT_ALLOWED);
    assert_string_equal(message.decision.name.text, "host.hutch");
    assert_string_equal(message.decision.rule.text, own_service());
    assert_int_equal(message.decision.port, own_port());
    assert_int_equal(message.decision.sandbox, SANDBOX);
    assert_true(message.decision.time_ms > UINT64_C(1600000000000));
    assert_true(echoes(fd));
    (void)close(fd);
    message = hear(&world, WIRE_DECISION);
    assert_int_equal(message.decision.kind, WIRE_DECISION_END);
    assert_int_equal(message.decision.sent_bytes, 3);
    assert_int_equal(message.decision.received_bytes, 3);
    end(&world);
}

/* What a client that asks wrong, or for an address that stands for nothing, gets is a refusal like any other. */
TEST(every_refusal_is_told)
{
    static const char wrong[] = "GET /x HTTP/1.1\r\nHost: x\r\n\r\n";
    struct world world = begin();
    struct sockaddr_in nameless = {.sin_family = AF_INET, .sin_port = htons(80)};

    assert_string_equal(rule(&world, (struct wire_rules){.mode = ALLOWLIST}, own_service()), "");
    int fd = dial_proxy();
    assert_int_equal(send(fd, wrong, sizeof wrong - 1, 0), sizeof wrong - 1);
    struct wire_message message = hear(&world, WIRE_DECISION);
    assert_int_equal(message.decision.verdict, WIRE_VERDICT_DENIED);
    assert_non_null(strstr(message.decision.why.text, "this is a proxy"));
    (void)close(fd);
    assert_int_equal(inet_pton(AF_INET, "198.18.77.77", &nameless.sin_addr), 1);
    fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_return_code(connect(fd, (const struct sockaddr *)&nameless, sizeof nameless), errno);
    message = hear(&world, WIRE_DECISION);
    assert_int_equal(message.decision.verdict, WIRE_VERDICT_DENIED);
    assert_string_equal(message.decision.name.text, "198.18.77.77");
    assert_int_equal(message.decision.port, 80);
    (void)close(fd);
    end(&world);
}

TEST(refusals_hide_nothing_from_a_client_that_does_not_read)
{
    enum { REFUSED = 300, LISTS = 5 };
    struct world world = begin();
    struct wire_message list = {.type = WIRE_RULES, .rules = {.sandbox = SANDBOX, .mode = ALLOWLIST}};
    unsigned status = 0;
    unsigned ruled = 0;
    uint64_t refused = 0;
    unsigned connected = 0;
    unsigned ended = 0;

    assert_string_equal(rule(&world, (struct wire_rules){.mode = ALLOWLIST}, own_service()), "");
    for (int i = 0; i < REFUSED; i++) {
        (void)close(ask_for("other.test:80", &status));
        assert_int_equal(status, 403);
    }
    int fd = ask(&status);
    assert_true(status == 200 && echoes(fd));
    (void)close(fd);
    for (int i = 0; i < LISTS; i++)
        assert_int_equal(link_send(world.client_fd, &list, NULL, 0), 0);
    while (ruled < LISTS || refused < REFUSED || connected == 0 || ended == 0) {
        struct wire_message message = hear_any(&world);
        ruled += message.type == WIRE_RULED;
        if (message.type != WIRE_DECISION)
            continue;
        refused += message.decision.lost + (strcmp(message.decision.name.text, "other.test") == 0);
        connected += message.decision.kind == WIRE_DECISION_CONNECT && message.decision.verdict == WIRE_VERDICT_ALLOWED;
        ended += message.decision.kind == WIRE_DECISION_END;
    }
    assert_int_equal(ruled, LISTS);
    assert_true(connected == 1 && ended == 1);
    end(&world);
}

TEST(limits_hold)
{
    struct world world = begin();
    unsigned status = 0;
    int fds[3];
    static uint8_t piece[65536];

    struct wire_rules rules = {.mode = ALLOWLIST, .connections_max = 2, .bytes_max = 1 << 20};
    assert_string_equal(rule(&world, rules, own_service()), "");
    fds[0] = ask(&status);
    assert_int_equal(status, 200);
    fds[1] = ask(&status);
    assert_int_equal(status, 200);
    fds[2] = ask(&status);
    assert_int_equal(status, 0);
    assert_true(echoes(fds[0]));
    (void)close(fds[1]);
    (void)close(fds[2]);
    ssize_t n = 1;
    for (size_t sent = 0; n > 0 && sent < 4 << 20; sent += sizeof piece) {
        n = send(fds[0], piece, sizeof piece, MSG_NOSIGNAL);
        for (size_t back = 0; n > 0 && back < sizeof piece; back += (size_t)n)
            n = recv(fds[0], piece, sizeof piece, 0);
    }
    assert_true(n <= 0);
    (void)close(fds[0]);
    end(&world);
}

/*
 * What waits in the sockets of a process's namespace: received and not read of those connected to `remote_port`, or not
 * taken by the other side of those connected from `local_port`.
 */
static uint64_t queued(pid_t pid, const char *table, unsigned local_port, unsigned remote_port)
{
    char path[64];
    char line[512];
    uint64_t total = 0;

    (void)snprintf(path, sizeof path, "/proc/%d/net/%s", (int)pid, table);
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    while (fgets(line, sizeof line, file) != NULL) {
        unsigned local = 0;
        unsigned remote = 0;
        unsigned sent = 0;
        unsigned received = 0;
        if (sscanf(line, "%*d: %*[^:]:%x %*[^:]:%x 01 %x:%x", &local, &remote, &sent, &received) != 4)
            continue;
        total += remote == remote_port ? received : 0;
        total += local == local_port ? sent : 0;
    }
    (void)fclose(file);
    return total;
}

/* A client that reads fast first, so that the kernel lets the buffers grow, and then no more. */
TEST(what_nobody_reads_is_bounded)
{
    enum { STALLED = 50, READ_BYTES = 4 << 20, MOST = 512 << 10 };
    struct world world = begin();
    unsigned status = 0;
    int fds[STALLED];
    static uint8_t piece[262144];
    uint64_t before = 0;
    uint64_t unread = 0;
    uint64_t unsent = 0;

    assert_string_equal(rule(&world, (struct wire_rules){.mode = ALLOWLIST}, own_service()), "");
    for (size_t i = 0; i < STALLED; i++) {
        fds[i] = ask(&status);
        assert_int_equal(status, 200);
        assert_int_equal(send(fds[i], "\2", 1, 0), 1);
        ssize_t n = 1;
        for (size_t got = 0; n > 0 && got < READ_BYTES; got += (size_t)n)
            n = recv(fds[i], piece, sizeof piece, 0);
        assert_true(n > 0);
    }
    for (uint64_t now = 1; now != before;) {
        before = now;
        (void)usleep(100000);
        unread = queued(world.airlock, "tcp", 0, own_port());
        unsent = queued(getpid(), "tcp6", WIRE_PROXY_PORT, 0) + queued(getpid(), "tcp", WIRE_PROXY_PORT, 0);
        now = unread + unsent;
    }
    print_message("# %llu KiB wait to be sent, %llu to be read, of %d connections\n", (unsigned long long)unsent >> 10,
                  (unsigned long long)unread >> 10, STALLED);
    assert_true(unsent > 0 && unsent < (uint64_t)STALLED * MOST);
    assert_true(unread > 0 && unread < (uint64_t)STALLED * MOST);
    for (size_t i = 0; i < STALLED; i++)
        (void)close(fds[i]);
    end(&world);
}

TEST(an_unplugged_sandbox_has_no_network)
{
    struct world world = begin();
    struct wire_message message = {.type = WIRE_UNPLUG, .unplug = {.sandbox = SANDBOX}};
    unsigned status = 0;
    char byte;

    assert_string_equal(rule(&world, (struct wire_rules){.mode = ALLOWLIST}, own_service()), "");
    int fd = ask(&status);
    assert_int_equal(status, 200);
    assert_int_equal(link_send(world.client_fd, &message, NULL, 0), 0);
    assert_true(recv(fd, &byte, 1, 0) <= 0);
    (void)close(fd);
    int again = 0;
    /* It closes its sockets a moment later. */
    for (int ms = 0; ms < WAIT_MS && again >= 0; ms++) {
        again = dial_proxy();
        if (again >= 0)
            (void)close(again);
        (void)usleep(1000);
    }
    assert_int_equal(again, -ECONNREFUSED);
    end(&world);
}

TEST(a_sandbox_that_is_unplugged_first_is_not_plugged_in)
{
    struct world world = begin();
    struct wire_message message = {.type = WIRE_UNPLUG, .unplug = {.sandbox = SANDBOX + 1}};
    int again = 0;

    assert_int_equal(link_send(world.client_fd, &message, NULL, 0), 0);
    /* It was heard before this was answered. */
    assert_string_equal(rule(&world, (struct wire_rules){.mode = NONE}, NULL), "");
    bring_up();
    assert_int_equal(airlock_sockets_plug(world.keeper_fd, SANDBOX + 1), 0);
    for (int ms = 0; ms < WAIT_MS && again >= 0; ms++) {
        again = dial_proxy();
        if (again >= 0)
            (void)close(again);
        (void)usleep(1000);
    }
    assert_int_equal(again, -ECONNREFUSED);
    end(&world);
}

/* It ended its side, so nothing is read from it any more, and then it is gone. */
TEST(a_client_that_is_gone_after_its_end_is_noticed)
{
    struct world world = begin();
    struct linger at_once = {.l_onoff = 1};
    unsigned status = 0;

    assert_string_equal(rule(&world, (struct wire_rules){.mode = ALLOWLIST}, own_service()), "");
    int fd = ask(&status);
    assert_int_equal(status, 200);
    assert_int_equal(send(fd, "\3", 1, 0), 1);
    assert_return_code(shutdown(fd, SHUT_WR), errno);
    (void)usleep(50000);
    (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    (void)close(fd);
    struct wire_message message = hear(&world, WIRE_DECISION);
    while (message.decision.kind != WIRE_DECISION_END)
        message = hear(&world, WIRE_DECISION);
    assert_int_equal(message.decision.sent_bytes, 1);
    end(&world);
}

TEST(too_many_questions_are_answered_at_once)
{
    enum { QUESTIONS = 129, SERVFAIL = 2 };
    struct world world = begin();
    uint8_t data[512];

    assert_string_equal(rule(&world, (struct wire_rules){.mode = ALLOWLIST}, "*.test"), "");
    _cleanup_fd_ int fd = dial_resolver();
    for (unsigned i = 0; i < QUESTIONS; i++)
        send_question(fd, (uint8_t)i, "a");
    assert_true(recv(fd, data, sizeof data, 0) >= 12);
    assert_int_equal(data[1], QUESTIONS - 1);
    assert_int_equal(data[3] & 15, SERVFAIL);
    end(&world);
}

TEST(a_denied_address_is_denied_to_names)
{
    static const char denied[] = "192.0.2.7";
    enum { OK = 0, NXDOMAIN = 3 };
    struct world world = begin();
    struct wire_rules rules = {.mode = ALLOWLIST};
    uint8_t data[512];

    assert_string_equal(rule(&world, rules, "*.test"), "");
    _cleanup_fd_ int fd = dial_resolver();
    send_question(fd, 1, "first");
    assert_true(recv(fd, data, sizeof data, 0) >= 12);
    assert_int_equal(data[3] & 15, OK);
    rules.deny = (struct wire_strv){.data = denied, .length = sizeof denied, .count = 1};
    assert_string_equal(rule(&world, rules, "*.test"), "");
    send_question(fd, 2, "second");
    assert_true(recv(fd, data, sizeof data, 0) >= 12);
    assert_int_equal(data[3] & 15, NXDOMAIN);
    struct wire_message message = hear(&world, WIRE_DECISION);
    assert_string_equal(message.decision.why.text, "second.test leads to an address that a rule denies");
    /* The first one's address is known still. */
    unsigned status = 0;
    (void)close(ask_for("first.test:80", &status));
    assert_int_equal(status, 403);
    message = hear(&world, WIRE_DECISION);
    assert_int_equal(message.decision.verdict, WIRE_VERDICT_DENIED);
    assert_string_equal(message.decision.why.text, "first.test leads to an address that a rule denies");
    end(&world);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rules_change_while_connections_are_open),
        cmocka_unit_test(nothing_is_let_through_before_the_first_rules),
        cmocka_unit_test(every_decision_is_told),
        cmocka_unit_test(every_refusal_is_told),
        cmocka_unit_test(refusals_hide_nothing_from_a_client_that_does_not_read),
        cmocka_unit_test(limits_hold),
        cmocka_unit_test(what_nobody_reads_is_bounded),
        cmocka_unit_test(an_unplugged_sandbox_has_no_network),
        cmocka_unit_test(a_sandbox_that_is_unplugged_first_is_not_plugged_in),
        cmocka_unit_test(a_client_that_is_gone_after_its_end_is_noticed),
        cmocka_unit_test(too_many_questions_are_answered_at_once),
        cmocka_unit_test(a_denied_address_is_denied_to_names),
    };

    if (argc != 2)
        return 2;
    set_airlock(argv[1]);
    (void)signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
