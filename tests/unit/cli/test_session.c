/*
 * The session's side of the guest link: we are init, at the other end of a socket pair, and send what it may and what
 * it may not.
 */
#include "base/cleanup.h"
#include "cli/session.h"
#include "test.h"
#include "wire/link.h"

#include <signal.h>

struct guest {
    struct run_options options;
    struct session session;
    struct error err;
    int end;
};

static void set_up(struct guest *guest, enum session_state session_state)
{
    int ends[2];

    *guest = (struct guest){.options = {.json = true}};
    session_init(&guest->session, &guest->options, 0);
    test_sockets(ends);
    guest->session.guest_fd = ends[0];
    guest->session.state = session_state;
    guest->session.has_stdin = true;
    guest->end = ends[1];
}

static void tear_down(struct guest *guest)
{
    close_fd(&guest->end);
    session_release(&guest->session);
}

static int say(struct guest *guest, const struct wire_message *message)
{
    assert_int_equal(link_send(guest->end, message, NULL, 0), 0);
    return session_handle_guest(&guest->session, &guest->err);
}

static const uint8_t output[] = "output";

#define DATA(at) .channel = 1, .offset = (at), .data = {output, 6}

static const struct {
    const char *name;
    enum session_state state;
    struct wire_message message;
    int result;
    enum session_state after;
} rows[] = {
    {"HELLO", SESSION_STARTING, {.type = WIRE_HELLO}, 0, SESSION_RUNNING},
    {"SETUP", SESSION_STARTING, {.type = WIRE_SETUP, .setup.detail = {"", 0}}, 0, SESSION_STARTING},
    {"SETUP that failed", SESSION_STARTING, {.type = WIRE_SETUP, .setup = {.error = EIO}}, -EIO, SESSION_STARTING},
    {"HELLO again", SESSION_RUNNING, {.type = WIRE_HELLO}, -EBADMSG, SESSION_RUNNING},
    {"SETUP too late", SESSION_RUNNING, {.type = WIRE_SETUP}, -EBADMSG, SESSION_RUNNING},
    {"output too early", SESSION_STARTING, {.type = WIRE_STDOUT, .stdout_data = {DATA(0)}}, -EBADMSG, SESSION_STARTING},
    {"EXIT too early", SESSION_STARTING, {.type = WIRE_EXIT, .exit.channel = 1}, -EBADMSG, SESSION_STARTING},
    {"what only a client may", SESSION_RUNNING, {.type = WIRE_ACK}, -EBADMSG, SESSION_RUNNING},
    {"what only the keeper may", SESSION_RUNNING, {.type = WIRE_OOM}, -EBADMSG, SESSION_RUNNING},
    {"output", SESSION_RUNNING, {.type = WIRE_STDOUT, .stdout_data = {DATA(0)}}, 0, SESSION_RUNNING},
    {"output with a gap", SESSION_RUNNING, {.type = WIRE_STDOUT, .stdout_data = {DATA(1)}}, -EBADMSG, SESSION_RUNNING},
    {"errors", SESSION_RUNNING, {.type = WIRE_STDERR, .stderr_data = {DATA(0)}}, 0, SESSION_RUNNING},
    {"errors with a gap", SESSION_RUNNING, {.type = WIRE_STDERR, .stderr_data = {DATA(1)}}, -EBADMSG, SESSION_RUNNING},
    {"input taken", SESSION_RUNNING, {.type = WIRE_TAKEN, .taken.offset = 0}, 0, SESSION_RUNNING},
    {"input taken that was not sent",
     SESSION_RUNNING,
     {.type = WIRE_TAKEN, .taken.offset = 1},
     -EBADMSG,
     SESSION_RUNNING},
    {"EXIT", SESSION_RUNNING, {.type = WIRE_EXIT, .exit = {.channel = 1, .value = 4}}, 0, SESSION_ENDED},
    {"EXIT of another", SESSION_RUNNING, {.type = WIRE_EXIT, .exit.channel = 2}, -EBADMSG, SESSION_RUNNING},
};

TEST(test_messages)
{
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct guest guest;
        set_up(&guest, rows[i].state);
        int r = say(&guest, &rows[i].message);
        assert_row(rows[i].name, r == rows[i].result);
        assert_row(rows[i].name, (guest.err.message[0] != '\0') == (r < 0));
        assert_row(rows[i].name, guest.session.state == rows[i].after);
        assert_row(rows[i].name, guest.session.result.has_exit == (rows[i].after == SESSION_ENDED));
        tear_down(&guest);
    }
}

/* EXIT brings the last of the output, which must fit to what came before. */
TEST(test_exit)
{
    struct wire_message first = {.type = WIRE_STDOUT, .stdout_data = {DATA(0)}};
    struct wire_message last = {.type = WIRE_EXIT,
                                .exit = {.channel = 1, .value = 4, .stdout_offset = 6, .stdout_tail = {output, 6}}};
    struct guest guest;

    set_up(&guest, SESSION_RUNNING);
    assert_int_equal(say(&guest, &first), 0);
    assert_int_equal(say(&guest, &last), 0);
    assert_int_equal(guest.session.sinks[0].collected.length, 12);
    assert_memory_equal(guest.session.sinks[0].collected.data, "outputoutput", 12);
    assert_int_equal(guest.session.result.exit.value, 4);
    tear_down(&guest);

    set_up(&guest, SESSION_RUNNING);
    assert_int_equal(say(&guest, &last), -EBADMSG);
    tear_down(&guest);
}

/* Descriptors are for nobody to receive from a sandbox. */
TEST(test_descriptors)
{
    struct wire_message hello = {.type = WIRE_HELLO};
    struct guest guest;

    set_up(&guest, SESSION_STARTING);
    size_t open_before = test_open_fds();
    assert_int_equal(link_send(guest.end, &hello, &guest.end, 1), 0);
    assert_true(session_handle_guest(&guest.session, &guest.err) < 0);
    assert_int_equal(test_open_fds(), open_before);
    tear_down(&guest);
}

/* More than anybody could have asked for ends it. */
TEST(test_too_much_output)
{
    static const uint8_t zeros[WIRE_DATA_MAX];
    struct wire_message message = {.type = WIRE_STDOUT, .stdout_data = {.data = {zeros, sizeof zeros}}};
    struct guest guest;
    int r = 0;

    set_up(&guest, SESSION_RUNNING);
    for (size_t i = 0; i < 100 && r == 0; i++) {
        r = say(&guest, &message);
        message.stdout_data.offset += sizeof zeros;
    }
    assert_true(r < 0);
    assert_true(guest.session.sinks[0].collected.length <= guest.session.sinks[0].collected.cap);
    tear_down(&guest);
}

/* The link's end is no error: why it ended is for the keeper to say. */
TEST(test_gone)
{
    struct guest guest;

    set_up(&guest, SESSION_RUNNING);
    close_fd(&guest.end);
    assert_int_equal(session_handle_guest(&guest.session, &guest.err), 0);
    assert_int_equal(guest.session.guest_fd, -1);
    assert_int_equal(session_signal(&guest.session, SIGTERM, WIRE_SCOPE_GROUP, &guest.err), 0);
    assert_int_equal(session_stdin_room(&guest.session), 0);
    tear_down(&guest);
}

static struct wire_message hear(struct guest *guest)
{
    static uint8_t frame[WIRE_FRAME_MAX];
    struct wire_message message = {0};

    assert_int_equal(link_receive(guest->end, WIRE_BY_CLIENT, WIRE_IN_RUNNING, frame, &message, NULL, NULL), 1);
    return message;
}

/* Input goes out as far as the window reaches, and on when init has taken some. */
TEST(test_input)
{
    static const uint8_t zeros[WIRE_DATA_MAX];
    struct wire_message taken = {.type = WIRE_TAKEN, .taken = {.channel = 1, .offset = 5}};
    struct guest guest;
    size_t room;
    uint64_t sent = 0;

    set_up(&guest, SESSION_RUNNING);
    while ((room = session_stdin_room(&guest.session)) > 0) {
        assert_true(room <= sizeof zeros);
        assert_int_equal(session_send_stdin(&guest.session, zeros, room, &guest.err), 0);
        struct wire_message message = hear(&guest);
        assert_int_equal(message.type, WIRE_STDIN);
        assert_int_equal(message.stdin_data.offset, sent);
        assert_int_equal(message.stdin_data.data.length, room);
        sent += room;
    }
    assert_int_equal(sent, WIRE_WINDOW);
    assert_int_equal(say(&guest, &taken), 0);
    assert_int_equal(session_stdin_room(&guest.session), 5);
    assert_int_equal(session_send_stdin(&guest.session, NULL, 0, &guest.err), 0);
    assert_int_equal(hear(&guest).stdin_data.end, 1);
    assert_int_equal(session_stdin_room(&guest.session), 0);
    tear_down(&guest);
}

TEST(test_acknowledge)
{
    static const uint8_t zeros[WIRE_WINDOW / 16];
    struct wire_message data = {.type = WIRE_STDERR, .stderr_data = {.data = {zeros, sizeof zeros}}};
    struct guest guest;

    set_up(&guest, SESSION_RUNNING);
    for (; data.stderr_data.offset < WIRE_WINDOW / 4; data.stderr_data.offset += sizeof zeros)
        assert_int_equal(say(&guest, &data), 0);
    guest.session.sinks[0].broken = true;
    for (size_t i = 0; i < 2; i++) /* the second time there is nothing to say */
        assert_int_equal(session_acknowledge(&guest.session, &guest.err), 0);
    struct wire_message message = hear(&guest);
    assert_int_equal(message.type, WIRE_CLOSE);
    assert_int_equal(message.close.stream, WIRE_STREAM_STDOUT);
    message = hear(&guest);
    assert_int_equal(message.type, WIRE_ACK);
    assert_int_equal(message.ack.stdout_offset, 0);
    assert_int_equal(message.ack.stderr_offset, WIRE_WINDOW / 4);
    uint8_t byte;
    assert_int_equal(recv(guest.end, &byte, 1, 0), -1);
    tear_down(&guest);
}

/* The terminal inside has a size and may be hung up, once; the command reads nothing from it then. */
TEST(test_terminal)
{
    struct guest guest;

    set_up(&guest, SESSION_RUNNING);
    assert_int_equal(session_resize(&guest.session, 50, 132, &guest.err), 0);
    struct wire_message message = hear(&guest);
    assert_int_equal(message.type, WIRE_RESIZE);
    assert_int_equal(message.resize.channel, 1);
    assert_int_equal(message.resize.rows, 50);
    assert_int_equal(message.resize.columns, 132);
    assert_true(session_stdin_room(&guest.session) > 0);
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(session_hang_up(&guest.session, &guest.err), 0);
    message = hear(&guest);
    assert_int_equal(message.type, WIRE_CLOSE);
    assert_int_equal(message.close.stream, WIRE_STREAM_STDOUT);
    assert_int_equal(session_stdin_room(&guest.session), 0);
    guest.session.sinks[0].broken = true; /* which is no news then */
    assert_int_equal(session_acknowledge(&guest.session, &guest.err), 0);
    guest.session.state = SESSION_ENDED;
    assert_int_equal(session_resize(&guest.session, 1, 1, &guest.err), 0);
    uint8_t byte;
    assert_int_equal(recv(guest.end, &byte, 1, 0), -1);
    tear_down(&guest);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_messages),        cmocka_unit_test(test_exit),     cmocka_unit_test(test_descriptors),
        cmocka_unit_test(test_too_much_output), cmocka_unit_test(test_gone),     cmocka_unit_test(test_input),
        cmocka_unit_test(test_acknowledge),     cmocka_unit_test(test_terminal),
    };
    return cmocka_run_group_tests_name("cli/session", tests, NULL, NULL);
}
