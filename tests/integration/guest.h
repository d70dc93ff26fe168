/*
 * guest: a hutch-init of its own to talk to, as the gateway will: PID 1 of a new pid namespace, the guest link at
 * descriptor 3 and, when wanted, a cgroup at 4. Everything else is the host's: its commands run as the host's root.
 */
#pragma once

#include "wire/link.h"

#include <sys/types.h>

enum { GUEST_WAIT_MS = 30000, GUEST_START = 5 };

struct guest {
    int fd;
    pid_t pid;
    enum wire_state state;
    struct wire_message message; /* the last one; its views point into the frame */
    char cgroup[256];            /* "" when there is none */
};

/* A case gets an init that has said HELLO. */
struct guest_case {
    const char *name;
    void (*run)(struct guest *guest);
};

/* Run them all and print TAP; argv names hutch-init and the payload. The program's exit status. */
int guest_main(int argc, char **argv, const struct guest_case *cases, size_t count);

/* A check that does not hold is printed and fails the case, which goes on. */
#define CHECK(condition) guest_check((condition), #condition, __LINE__)
bool guest_check(bool holds, const char *what, int line);
bool guest_case_failed(void);

/* The payload's path. */
const char *guest_payload(void);

/* The words of a command line. */
#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

/* Start init and take its HELLO. False when it does not say it. */
bool guest_start(struct guest *guest, bool with_cgroup);

/* Close the link and wait; removes the cgroup. */
void guest_end(struct guest *guest);

/* Wait for init to end by itself: its exit status, or -1 when it does not. */
int guest_wait(struct guest *guest);

void guest_send(const struct guest *guest, const struct wire_message *message);
void guest_send_raw(const struct guest *guest, const void *data, size_t length);

/* Run the payload with these words, ending in NULL. */
void guest_exec(const struct guest *guest, uint64_t channel, uint32_t flags, uint64_t cap, const char *const *words);

void guest_ack(const struct guest *guest, uint64_t channel, uint64_t stdout_offset, uint64_t stderr_offset);
void guest_resume(const struct guest *guest, uint64_t channel, uint64_t stdout_offset, uint64_t stderr_offset);
void guest_signal(const struct guest *guest, uint64_t channel, uint32_t number, enum wire_scope scope);
void guest_release(const struct guest *guest, uint64_t channel);
void guest_stdin(const struct guest *guest, uint64_t channel, uint64_t offset, const void *data, size_t length,
                 bool end);

/* How many cgroups of commands there are, but for the few empty ones that wait for the next. */
size_t guest_cgroups(const struct guest *guest);

/* Wait until init has read all that was sent. */
bool guest_has_read(const struct guest *guest);

/* The next message within `ms`; false when none comes or the link ends. */
bool guest_receive_within(struct guest *guest, int ms);

/* The next message, which must be of this type. */
bool guest_expect(struct guest *guest, enum wire_type type);

/* Nothing comes for a while. */
bool guest_is_silent(struct guest *guest);

/* Still there: a new command on `channel` runs to its end, with nothing else in between. */
bool guest_is_alive(struct guest *guest, uint64_t channel);

/* What a channel has said so far. */
struct guest_heard {
    uint64_t next[2];
    uint64_t sum[2]; /* of the bytes, each weighed with its place */
    bool ended;
    struct wire_exit exit;
};

/* Take the last message into account: false when it is another channel's, or its offset is not what comes next. */
bool guest_hear(const struct guest *guest, uint64_t channel, struct guest_heard *heard);

/* Everything until EXIT, acknowledging as it comes. */
bool guest_hear_all(struct guest *guest, uint64_t channel, struct guest_heard *heard);
bool guest_ended_with(const struct guest_heard *heard, enum wire_exit_kind kind, uint32_t value);
