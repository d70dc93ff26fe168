/*
 * test_guest_terminal: hutch-init on the guest link, without a sandbox around it: commands with a terminal, which is
 * one of this machine's. Every case has an init of its own.
 *
 *     test_guest_terminal HUTCH-INIT PAYLOAD
 */
#include "guest.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BIG = 1000000, TEXT_MAX = 65536 };

/* What a terminal has shown, as text, acknowledged as it comes. */
struct screen {
    char text[TEXT_MAX];
    size_t length;
    bool ended;
    uint8_t kind;
    uint32_t value;
};

static struct screen screen;

static void show(struct wire_bytes data)
{
    if (CHECK(data.length < TEXT_MAX - screen.length))
        memcpy(screen.text + screen.length, data.data, data.length);
    screen.length += data.length;
    screen.text[screen.length] = '\0';
}

static bool see(struct guest *guest, uint64_t channel)
{
    if (!CHECK(guest_receive_within(guest, GUEST_WAIT_MS)))
        return false;
    if (guest->message.type == WIRE_TAKEN)
        return true; /* perhaps of one that was released meanwhile */
    if (!CHECK(guest->message.ack.channel == channel))
        return false;
    switch ((int)guest->message.type) {
    case WIRE_STDOUT:
        CHECK(guest->message.stdout_data.offset == screen.length);
        show(guest->message.stdout_data.data);
        break;
    case WIRE_EXIT:
        show(guest->message.exit.stdout_tail);
        CHECK(guest->message.exit.stderr_total == 0);
        screen.ended = true;
        screen.kind = guest->message.exit.kind;
        screen.value = guest->message.exit.value;
        break;
    default:
        return CHECK(false);
    }
    guest_ack(guest, channel, screen.length, 0);
    return true;
}

static bool see_text(struct guest *guest, uint64_t channel, const char *text)
{
    while (strstr(screen.text, text) == NULL) {
        if (!CHECK(!screen.ended) || !see(guest, channel))
            return false;
    }
    return true;
}

static bool see_end(struct guest *guest, uint64_t channel, enum wire_exit_kind kind, uint32_t value)
{
    while (!screen.ended && see(guest, channel))
        ;
    return screen.ended && screen.kind == kind && screen.value == value;
}

/* A shell script at a terminal of 24 rows and 80 columns. */
static void start(struct guest *guest, uint64_t channel, uint32_t flags, const char *script)
{
    char strings[1024];
    int length = snprintf(strings, sizeof strings, "/bin/bash%c-c%c%s%cPATH=/usr/bin:/bin", 0, 0, script, 0);
    struct wire_message message = {
        .type = WIRE_EXEC,
        .exec = {.channel = channel,
                 .flags = WIRE_EXEC_TTY | flags,
                 .filter = WIRE_FILTER_STANDARD,
                 .rows = 24,
                 .columns = 80,
                 .folder = wire_str("/"),
                 .argc = 3,
                 .envc = 1,
                 .strings = {.data = (const uint8_t *)strings, .length = (uint32_t)length + 1}},
    };

    memset(&screen, 0, sizeof screen);
    guest_send(guest, &message);
}

static void resize(const struct guest *guest, uint64_t channel, uint16_t rows, uint16_t columns)
{
    guest_send(guest, &(struct wire_message){.type = WIRE_RESIZE, .resize = {channel, rows, columns}});
}

static void close_stream(const struct guest *guest, uint64_t channel, uint8_t stream)
{
    guest_send(guest, &(struct wire_message){.type = WIRE_CLOSE, .close = {channel, stream}});
}

static void is_a_terminal(struct guest *guest)
{
    start(guest, 1, 0, "for fd in 0 1 2; do test -t $fd || exit 1; done; stty size; echo err >&2; : </dev/tty; exit 7");
    CHECK(see_end(guest, 1, WIRE_EXIT_CODE, 7));
    CHECK(strcmp(screen.text, "24 80\r\nerr\r\n") == 0);
}

static void answers_in_one_frame(struct guest *guest)
{
    start(guest, 1, WIRE_EXEC_COLLECT, "echo short");
    CHECK(guest_expect(guest, WIRE_EXIT) && guest->message.exit.stdout_tail.length == 7);
    CHECK(memcmp(guest->message.exit.stdout_tail.data, "short\r\n", 7) == 0);
    CHECK(guest_is_silent(guest));
}

static void can_be_resized(struct guest *guest)
{
    start(guest, 1, 0, "trap 'stty size; exit' WINCH; echo ready; while :; do read -t 0.05 <&1; done");
    CHECK(see_text(guest, 1, "ready\r\n"));
    resize(guest, 1, 50, 132);
    CHECK(see_text(guest, 1, "50 132\r\n"));
    CHECK(see_end(guest, 1, WIRE_EXIT_CODE, 0));
    resize(guest, 1, 1, 1);
    resize(guest, 99, 1, 1); /* there is no such channel */
    guest_exec(guest, 2, 0, 0, WORDS("sleep", "60"));
    CHECK(guest_expect(guest, WIRE_STDOUT) && guest->message.stdout_data.channel == 2);
    resize(guest, 2, 1, 1); /* which has no terminal */
    CHECK(guest_is_silent(guest));
}

static void takes_keys(struct guest *guest)
{
    start(guest, 1, WIRE_EXEC_STDIN, "read x; echo got-$x; exec sleep 60");
    guest_stdin(guest, 1, 0, "one\r", 4, false);
    CHECK(see_text(guest, 1, "one\r\ngot-one\r\n"));
    guest_stdin(guest, 1, 4, "\003", 1, false);
    CHECK(see_end(guest, 1, WIRE_EXIT_SIGNAL, SIGINT));
    CHECK(strstr(screen.text, "^C") != NULL);
}

static void ends_its_input(struct guest *guest)
{
    start(guest, 1, WIRE_EXEC_STDIN, "stty -echo; cat; echo over");
    guest_stdin(guest, 1, 0, "line\rhalf", 9, true);
    CHECK(see_end(guest, 1, WIRE_EXIT_CODE, 0));
    CHECK(strstr(screen.text, "halfover\r\n") != NULL);
}

/* Without WIRE_EXEC_STDIN nothing can be typed, and nothing has to be. */
static void needs_no_keys(struct guest *guest)
{
    start(guest, 1, 0, "echo ready; read -t 0.3 x; echo $?");
    CHECK(see_text(guest, 1, "ready\r\n"));
    guest_stdin(guest, 1, 0, "typed\r", 6, true);
    CHECK(see_end(guest, 1, WIRE_EXIT_CODE, 0));
    CHECK(strcmp(screen.text, "ready\r\n142\r\n") == 0);
}

static void hangs_up(struct guest *guest)
{
    start(guest, 1, WIRE_EXEC_STDIN, "trap 'exit 9' HUP; echo ready; while :; do sleep 0.05; done");
    CHECK(see_text(guest, 1, "ready\r\n"));
    close_stream(guest, 1, WIRE_STREAM_STDERR);
    close_stream(guest, 1, 77);
    guest_stdin(guest, 1, 0, "still there\r", 12, false);
    CHECK(see_text(guest, 1, "still there\r\n"));
    close_stream(guest, 1, WIRE_STREAM_STDOUT);
    close_stream(guest, 1, WIRE_STREAM_STDOUT);
    guest_stdin(guest, 1, 12, "too late\r", 9, false);
    CHECK(see_end(guest, 1, WIRE_EXIT_CODE, 9));
    guest_release(guest, 1);
    CHECK(guest_is_alive(guest, 2) && guest_cgroups(guest) == 0);
}

/* Credits hold for a terminal as for a pipe, and a client that comes back reads on. */
static void honours_credits(struct guest *guest)
{
    struct guest_heard heard = {0};

    start(guest, 1, 0, "stty -opost; head -c 1000000 /dev/zero | tr '\\0' x");
    while (heard.next[0] < WIRE_WINDOW && CHECK(guest_receive_within(guest, GUEST_WAIT_MS)))
        CHECK(guest_hear(guest, 1, &heard));
    CHECK(heard.next[0] == WIRE_WINDOW);
    CHECK(guest_is_silent(guest));
    heard = (struct guest_heard){0};
    guest_resume(guest, 1, 0, 0);
    CHECK(guest_hear_all(guest, 1, &heard));
    CHECK(heard.next[0] == BIG && heard.sum[0] == 'x' * ((uint64_t)BIG * (BIG + 1) / 2));
    CHECK(guest_ended_with(&heard, WIRE_EXIT_CODE, 0));
}

/* More typed than terminal and window hold, to a command that reads late: nothing is lost, nothing deadlocks. */
static void takes_a_paste(struct guest *guest)
{
    static uint8_t typed[WIRE_DATA_MAX];
    uint64_t sent = 0;
    uint64_t taken = 0;

    memset(typed, 'x', sizeof typed);
    start(guest, 1, WIRE_EXEC_STDIN, "stty raw -echo; echo ready; sleep 0.3; head -c 1000000 | tr -d x | wc -c");
    CHECK(see_text(guest, 1, "ready"));
    while (sent < BIG) {
        uint64_t room = WIRE_WINDOW - (sent - taken);
        uint64_t part = room < sizeof typed ? room : sizeof typed;
        part = part < BIG - sent ? part : BIG - sent;
        guest_stdin(guest, 1, sent, typed, (size_t)part, false);
        sent += part;
        while (sent - taken == WIRE_WINDOW && CHECK(guest_receive_within(guest, GUEST_WAIT_MS))) {
            if (CHECK(guest->message.type == WIRE_TAKEN))
                taken = guest->message.taken.offset;
        }
    }
    CHECK(see_text(guest, 1, "0\n") && see_end(guest, 1, WIRE_EXIT_CODE, 0));
}

/* What the shell left running in the background ends with it, job control or not. */
static void leaves_nothing(struct guest *guest)
{
    start(guest, 1, 0, "set -m; sleep 1000 & setsid sleep 1000 & echo ready");
    CHECK(see_end(guest, 1, WIRE_EXIT_CODE, 0));
    guest_release(guest, 1);
    CHECK(guest_is_alive(guest, 2) && guest_cgroups(guest) == 0);
}

static void signals_the_job(struct guest *guest)
{
    start(guest, 1, 0, "set -m; (trap 'exit 33' USR1; echo ready; while :; do sleep 0.05; done); echo said-$?");
    CHECK(see_text(guest, 1, "ready\r\n"));
    guest_signal(guest, 1, SIGUSR1, WIRE_SCOPE_GROUP);
    CHECK(see_text(guest, 1, "said-33\r\n"));
    CHECK(see_end(guest, 1, WIRE_EXIT_CODE, 0));
}

/* Released while it runs, hung up while it runs, many of them: no terminal is left. */
static void gives_back(struct guest *guest)
{
    for (uint64_t channel = 1; channel <= 40; channel++) {
        start(guest, channel, WIRE_EXEC_STDIN, "echo ready; exec sleep 1000");
        CHECK(see_text(guest, channel, "ready\r\n"));
        if (channel % 2 == 0)
            close_stream(guest, channel, WIRE_STREAM_STDOUT);
        guest_release(guest, channel);
    }
    start(guest, 100, 0, "tty");
    CHECK(see_end(guest, 100, WIRE_EXIT_CODE, 0));
}

static const struct guest_case cases[] = {
    {"a command has a terminal of the size it was given", is_a_terminal},
    {"a short command at a terminal answers in one frame", answers_in_one_frame},
    {"a terminal can be resized, and RESIZE of what has none is ignored", can_be_resized},
    {"what is typed arrives, and Ctrl-C is a signal", takes_keys},
    {"the end of input is typed, in the middle of a line too", ends_its_input},
    {"a terminal without input", needs_no_keys},
    {"a reader that goes away hangs up", hangs_up},
    {"credits and RESUME", honours_credits},
    {"a paste of a megabyte", takes_a_paste},
    {"nothing is left behind", leaves_nothing},
    {"a signal to the group is one to the foreground", signals_the_job},
    {"terminals are given back", gives_back},
};

int main(int argc, char **argv)
{
    return guest_main(argc, argv, cases, sizeof cases / sizeof *cases);
}
