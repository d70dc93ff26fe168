/*
 * test_guest_streams: hutch-init on the guest link, without a sandbox around it: output with offsets and credits, caps,
 * standard input, RESUME. Every case has an init of its own.
 *
 *     test_guest_streams HUTCH-INIT PAYLOAD
 */
#include "guest.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHANNELS = 256, BIG = 1000000 };

static uint8_t bytes[BIG];

static uint64_t sum_of_x(uint64_t count)
{
    return 'x' * (count * (count + 1) / 2);
}

static void answers_in_one_frame(struct guest *guest)
{
    guest_exec(guest, 1, WIRE_EXEC_COLLECT, 0, WORDS("lines", "3"));
    if (!CHECK(guest_expect(guest, WIRE_EXIT)))
        return;
    const struct wire_exit *exit = &guest->message.exit;
    CHECK(exit->channel == 1 && exit->kind == WIRE_EXIT_CODE && exit->value == 0);
    CHECK(exit->stdout_total == 6 && exit->stdout_offset == 0 && exit->stderr_total == 0);
    CHECK(exit->stdout_tail.length == 6 && memcmp(exit->stdout_tail.data, "0\n1\n2\n", 6) == 0);
    CHECK(exit->duration_ns > 0 && exit->disk_free_bytes > 0 && exit->disk_free_inodes > 0);
    CHECK(guest_is_silent(guest));
}

/* Collected output waits for the end as long as it fits into EXIT; streamed output does not wait. */
static void streams_at_once(struct guest *guest)
{
    guest_exec(guest, 1, 0, 0, WORDS("sleep", "60"));
    CHECK(guest_expect(guest, WIRE_STDOUT) && guest->message.stdout_data.offset == 0);
    CHECK(guest->message.stdout_data.data.length == 6);
    guest_exec(guest, 2, WIRE_EXEC_COLLECT, 0, WORDS("sleep", "60"));
    CHECK(guest_is_silent(guest));
    guest_signal(guest, 2, SIGTERM, WIRE_SCOPE_PROCESS);
    CHECK(guest_expect(guest, WIRE_EXIT) && guest->message.exit.channel == 2);
    CHECK(guest->message.exit.kind == WIRE_EXIT_SIGNAL && guest->message.exit.value == SIGTERM);
    CHECK(guest->message.exit.stdout_tail.length == 6);
}

static void keeps_order(struct guest *guest)
{
    struct guest_heard heard = {0};

    guest_exec(guest, 1, 0, 0, WORDS("bytes", "1000000"));
    CHECK(guest_hear_all(guest, 1, &heard));
    CHECK(guest_ended_with(&heard, WIRE_EXIT_CODE, 0) && heard.exit.stdout_total == BIG);
    CHECK(heard.next[0] == BIG && heard.sum[0] == sum_of_x(BIG));
}

static void honours_credits(struct guest *guest)
{
    struct guest_heard heard = {0};

    guest_exec(guest, 1, 0, 0, WORDS("bytes", "1000000"));
    while (heard.next[0] < WIRE_WINDOW && CHECK(guest_receive_within(guest, GUEST_WAIT_MS)))
        CHECK(guest_hear(guest, 1, &heard));
    CHECK(heard.next[0] == WIRE_WINDOW);
    CHECK(guest_is_silent(guest));
    guest_ack(guest, 1, 1000, 0);
    CHECK(guest_expect(guest, WIRE_STDOUT) && guest_hear(guest, 1, &heard) && heard.next[0] == WIRE_WINDOW + 1000);
    CHECK(guest_is_silent(guest));
    guest_ack(guest, 1, heard.next[0], 0);
    CHECK(guest_hear_all(guest, 1, &heard));
    CHECK(heard.next[0] == BIG && heard.sum[0] == sum_of_x(BIG));
}

/* A channel without credit does not keep another from speaking. */
static void serves_neighbours(struct guest *guest)
{
    guest_exec(guest, 1, 0, 0, WORDS("bytes", "1000000"));
    for (uint64_t got = 0; got < WIRE_WINDOW && CHECK(guest_expect(guest, WIRE_STDOUT));)
        got += guest->message.stdout_data.data.length;
    for (uint64_t channel = 2; channel < 12; channel++)
        CHECK(guest_is_alive(guest, channel));
}

static void caps_output(struct guest *guest)
{
    static const struct {
        uint64_t cap;
        const char *printed;
        uint64_t forwarded;
    } rows[] = {{1000, "100000", 1000},      {1000, "999", 999}, {1000, "1000", 1000},
                {200000, "1000000", 200000}, {1, "50000000", 1}, {0, "300000", 300000}};

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct guest_heard heard = {0};
        guest_exec(guest, i + 1, WIRE_EXEC_COLLECT, rows[i].cap, WORDS("bytes", rows[i].printed));
        CHECK(guest_hear_all(guest, i + 1, &heard) && guest_ended_with(&heard, WIRE_EXIT_CODE, 0));
        CHECK(heard.next[0] == rows[i].forwarded && heard.sum[0] == sum_of_x(rows[i].forwarded));
        CHECK(heard.exit.stdout_total == strtoull(rows[i].printed, NULL, 10));
        guest_release(guest, i + 1);
    }
}

static void passes_input(struct guest *guest)
{
    struct guest_heard heard = {0};
    uint64_t sent = 0;
    uint64_t taken = 0;
    uint64_t sum = 0;

    for (size_t i = 0; i < sizeof bytes; i++) {
        bytes[i] = (uint8_t)(i * 31 + i / 251);
        sum += bytes[i] * (i + 1);
    }
    guest_exec(guest, 1, WIRE_EXEC_STDIN, 0, WORDS("copy"));
    while (!heard.ended) {
        while (sent < BIG && sent - taken < WIRE_WINDOW) {
            size_t room = WIRE_WINDOW - (sent - taken) < 12345 ? WIRE_WINDOW - (sent - taken) : 12345;
            size_t part = BIG - sent < room ? BIG - sent : room;
            guest_stdin(guest, 1, sent, bytes + sent, part, sent + part == BIG);
            sent += part;
        }
        if (!CHECK(guest_receive_within(guest, GUEST_WAIT_MS)) || !CHECK(guest_hear(guest, 1, &heard)))
            return;
        if (guest->message.type == WIRE_TAKEN) {
            CHECK(guest->message.taken.offset >= taken && guest->message.taken.offset <= sent);
            taken = guest->message.taken.offset;
        } else {
            guest_ack(guest, 1, heard.next[0], heard.next[1]);
        }
    }
    CHECK(guest_ended_with(&heard, WIRE_EXIT_CODE, 0));
    CHECK(heard.next[0] == BIG && heard.sum[0] == sum);
    CHECK(heard.next[1] == 8); /* "1000000\n" */
}

/* An empty frame with `end`, input for a command that has none, and input that nobody reads any more. */
static void ends_input(struct guest *guest)
{
    guest_exec(guest, 1, WIRE_EXEC_STDIN | WIRE_EXEC_COLLECT, 0, WORDS("copy"));
    guest_stdin(guest, 1, 0, "hi", 2, false);
    guest_stdin(guest, 1, 2, NULL, 0, true);
    while (guest_receive_within(guest, GUEST_WAIT_MS) && guest->message.type == WIRE_TAKEN)
        CHECK(guest->message.taken.offset <= 2);
    CHECK(guest->message.type == WIRE_EXIT && guest->message.exit.stdout_tail.length == 2);
    guest_exec(guest, 2, WIRE_EXEC_COLLECT, 0, WORDS("copy"));
    guest_stdin(guest, 2, 0, "hi", 2, true);
    CHECK(guest_expect(guest, WIRE_EXIT) && guest->message.exit.stdout_tail.length == 0);
    guest_stdin(guest, 2, 0, "too late", 8, false);
    guest_stdin(guest, 1, 2, "too late", 8, true);
    CHECK(guest_is_alive(guest, 3));
}

/* The window is full, which is right; one byte more is not. */
static void bounds_input(struct guest *guest)
{
    guest_exec(guest, 1, WIRE_EXEC_STDIN | WIRE_EXEC_COLLECT, 0, WORDS("sleep", "60"));
    uint64_t sent = 0;
    uint64_t taken = 0;
    for (; sent < WIRE_WINDOW; sent += 32768)
        guest_stdin(guest, 1, sent, bytes, 32768, false);
    while (guest_receive_within(guest, 500) && CHECK(guest->message.type == WIRE_TAKEN))
        taken = guest->message.taken.offset;
    CHECK(taken > 0 && taken < WIRE_WINDOW);
    for (; sent < taken + WIRE_WINDOW; sent += 1)
        guest_stdin(guest, 1, sent, bytes, 1, false);
    CHECK(guest_is_silent(guest));
    guest_stdin(guest, 1, sent, bytes, 1, false);
    CHECK(guest_wait(guest) == 3);
}

static void sends_again(struct guest *guest)
{
    struct guest_heard first = {0};
    struct guest_heard again = {0};

    guest_exec(guest, 1, 0, 0, WORDS("bytes", "100000"));
    while (!first.ended && CHECK(guest_receive_within(guest, GUEST_WAIT_MS)))
        CHECK(guest_hear(guest, 1, &first));
    guest_resume(guest, 1, 0, 0);
    while (!again.ended && CHECK(guest_receive_within(guest, GUEST_WAIT_MS)))
        CHECK(guest_hear(guest, 1, &again));
    CHECK(again.next[0] == 100000 && again.sum[0] == first.sum[0]);
    CHECK(again.exit.stdout_total == 100000 && again.exit.value == first.exit.value);
    guest_ack(guest, 1, 60000, 0);
    again = (struct guest_heard){.next = {60000, 0}};
    guest_resume(guest, 1, 60000, 0);
    while (!again.ended && CHECK(guest_receive_within(guest, GUEST_WAIT_MS)))
        CHECK(guest_hear(guest, 1, &again));
    CHECK(again.next[0] == 100000);
    CHECK(guest_is_silent(guest));
    guest_release(guest, 1);
    guest_resume(guest, 1, 0, 0); /* there is no such channel any more: nothing to say */
    CHECK(guest_is_alive(guest, 2));
}

static bool hears_resumed(struct guest *guest, struct wire_resumed *ret_resumed)
{
    while (CHECK(guest_receive_within(guest, GUEST_WAIT_MS))) {
        if (guest->message.type == WIRE_RESUMED) {
            *ret_resumed = guest->message.resumed;
            return CHECK(ret_resumed->start == GUEST_START);
        }
    }
    return false;
}

/* A client that comes back hears how much was accepted, taken or not. */
static void says_where_input_goes_on(struct guest *guest)
{
    struct wire_resumed resumed = {0};

    guest_exec(guest, 1, WIRE_EXEC_STDIN | WIRE_EXEC_COLLECT, 0, WORDS("sleep", "60"));
    guest_exec(guest, 2, WIRE_EXEC_COLLECT, 0, WORDS("sleep", "60"));
    for (uint64_t sent = 0; sent < 98304; sent += 32768)
        guest_stdin(guest, 1, sent, bytes, 32768, false);
    guest_resume(guest, 1, 0, 0);
    CHECK(hears_resumed(guest, &resumed) && resumed.channel == 1 && resumed.stdin_offset == 98304);
    CHECK(resumed.taken > 0 && resumed.taken < 98304 && !resumed.closed && !resumed.ended);
    guest_stdin(guest, 1, 98304, bytes, 1, true);
    guest_resume(guest, 1, 0, 0);
    CHECK(hears_resumed(guest, &resumed) && resumed.stdin_offset == 98305 && resumed.ended);
    guest_resume(guest, 2, 0, 0);
    CHECK(hears_resumed(guest, &resumed) && resumed.channel == 2 && resumed.stdin_offset == 0 && resumed.closed);
}

static void closes_streams(struct guest *guest)
{
    guest_exec(guest, 1, 0, 0, WORDS("bytes", "1000000000"));
    CHECK(guest_expect(guest, WIRE_STDOUT));
    guest_send(guest, &(struct wire_message){.type = WIRE_CLOSE, .close = {1, WIRE_STREAM_STDOUT}});
    do
        CHECK(guest_receive_within(guest, GUEST_WAIT_MS));
    while (!guest_case_failed() && guest->message.type == WIRE_STDOUT);
    CHECK(guest->message.type == WIRE_EXIT && guest->message.exit.kind == WIRE_EXIT_SIGNAL);
    CHECK(guest->message.exit.value == SIGPIPE);
    guest_send(guest, &(struct wire_message){.type = WIRE_CLOSE, .close = {1, 77}});
    CHECK(guest_is_alive(guest, 2));
}

/* A client that is busy elsewhere for a while finds everything in its place: also the refusal it has earned. */
static void waits_for_a_slow_client(struct guest *guest)
{
    size_t ended = 0;

    for (uint64_t channel = 1; channel <= CHANNELS; channel++)
        guest_exec(guest, channel, 0, 0, WORDS("bytes", "20000"));
    guest_exec(guest, CHANNELS + 1, 0, 0, WORDS("exit", "0"));
    CHECK(guest_has_read(guest));
    bool refused = false;
    while ((ended < CHANNELS || !refused) && CHECK(guest_receive_within(guest, GUEST_WAIT_MS))) {
        if (guest->message.type != WIRE_EXIT)
            continue;
        if (guest->message.exit.channel == CHANNELS + 1)
            refused = guest->message.exit.kind == WIRE_EXIT_NOT_STARTED && guest->message.exit.value == EAGAIN;
        else
            ended += CHECK(guest->message.exit.kind == WIRE_EXIT_CODE && guest->message.exit.stdout_total == 20000);
    }
    CHECK(refused && ended == CHANNELS);
}

static const struct guest_case cases[] = {
    {"collect: a short command's whole answer is one EXIT frame", answers_in_one_frame},
    {"stream: output comes at once, collected output with the end", streams_at_once},
    {"output has offsets without gaps", keeps_order},
    {"credits: never more than the window is unacknowledged", honours_credits},
    {"a channel without credits does not delay its neighbours", serves_neighbours},
    {"collect: cap and true totals", caps_output},
    {"standard input with offsets, TAKEN never goes back", passes_input},
    {"standard input ends, and too late is not wrong", ends_input},
    {"standard input beyond the window ends init", bounds_input},
    {"RESUME sends again what is not acknowledged, EXIT included", sends_again},
    {"RESUMED says where standard input goes on", says_where_input_goes_on},
    {"CLOSE: the next write is SIGPIPE", closes_streams},
    {"a client that does not read for a while loses nothing", waits_for_a_slow_client},
};

int main(int argc, char **argv)
{
    return guest_main(argc, argv, cases, sizeof cases / sizeof *cases);
}
