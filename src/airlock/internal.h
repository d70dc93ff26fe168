/*
 * internal: what the parts of the airlock's process know of each other. One thread, one loop.
 *
 * The airlock owns its sandboxes, a sandbox its connections. A sandbox is freed when it was removed and its last handle
 * and its last connection have closed.
 */
#pragma once

#include "airlock/dial.h"
#include "airlock/dns.h"
#include "airlock/flow.h"
#include "airlock/guard.h"
#include "airlock/names.h"
#include "airlock/outbox.h"
#include "airlock/proxy.h"
#include "airlock/resolver.h"
#include "airlock/rules.h"
#include "wire/wire.h"

#include <uv.h>

enum {
    SANDBOX_NAMES_MAX = 1024,
    SANDBOX_CONNECTIONS_MAX = 1024,
    SANDBOX_CONNECTS_PER_SECOND = 500,
    SANDBOX_QUESTIONS_MAX = 128,
    SANDBOX_BUFFER_BYTES = 256 << 10,      /* of each of a connection's sockets, each way; the kernel doubles it */
    SANDBOX_BUFFER_SMALL_BYTES = 32 << 10, /* when there are more connections than */
    SANDBOX_BUFFERS_LARGE = 64,
};

struct airlock {
    uv_loop_t loop;
    uv_poll_t keeper;
    uv_poll_t client;
    struct resolver *resolver;
    struct sandbox *sandboxes;
    struct outbox outbox;
    uv_timer_t summary; /* for decisions that could not be told */
};

/* Tokens, of which one more comes so many times a second. */
struct bucket {
    uint64_t milli;
    uint64_t counted_ms;
};

struct sandbox {
    struct sandbox *next;
    struct airlock *airlock;
    uint64_t id;
    struct rules *rules; /* NULL until the first RULES: nothing is read from its sockets */
    struct names *names;
    int tcp_fd;
    int udp_fd;
    int link_fd; /* what steers connections to tcp_fd */
    uv_poll_t tcp;
    uv_poll_t udp;
    uv_timer_t again; /* after too many connections or too few descriptors */
    bool is_plugged;
    bool is_removed;
    unsigned references; /* handles, connections and questions */
    struct connection *connections;
    uint32_t connection_count;
    uint32_t question_count;
    uint32_t connections_max;
    uint32_t connects_per_second;
    uint64_t bytes_max; /* 0: any number */
    uint64_t bytes;     /* both ways, of connections that have ended */
    struct bucket connects;
    struct bucket refusals; /* that are told */
    uint32_t lost;          /* decisions that could not be told */
};

/* A name or an address that is to be reached. */
struct goal {
    bool is_address;
    char name[NAME_SIZE]; /* or the address as text */
    struct address address;
    uint16_t port;
};

/* decision.c: what is told to the client. Texts that are too long are cut. */
struct decision {
    enum wire_decision_kind kind;
    enum wire_verdict verdict;
    const char *name;
    uint16_t port;
    const char *rule;
    const char *why;
    uint64_t sent_bytes;
    uint64_t received_bytes;
};
void decision_tell(struct sandbox *sandbox, const struct decision *decision);
/* How many could not be told, should nothing else say so. */
void decision_tell_lost(struct sandbox *sandbox);
void decision_init(struct airlock *airlock);

/* sandbox.c */
_must_use_ int sandbox_new(struct airlock *airlock, uint64_t id, struct sandbox **ret_sandbox, struct error *err);
struct sandbox *sandbox_find(struct airlock *airlock, uint64_t id);
/* The descriptors become its own, also when it fails. */
_must_use_ int sandbox_plug(struct sandbox *sandbox, const int fds[3], struct error *err);
/* They become its own. Connections that they do not allow any more end. */
void sandbox_set_rules(struct sandbox *sandbox, struct rules *rules);
void sandbox_remove(struct sandbox *sandbox);
void sandbox_drop(struct sandbox *sandbox); /* one reference */
/* What a socket of one more connection may hold of what its other side does not take: the more there are, the less. */
int sandbox_buffer_bytes(const struct sandbox *sandbox);
/* One token, of a bucket that holds `most`. */
bool bucket_take(struct bucket *bucket, uint64_t now_ms, uint32_t per_second, uint32_t most);
uint64_t sandbox_now_ns(const struct sandbox *sandbox);

/* The verdict on a goal, and its words. */
struct rules_verdict sandbox_judge(const struct sandbox *sandbox, const struct goal *goal, char *why, size_t size);

/*
 * Real addresses, of which those that nobody may be led to are left out. How many are left; when it is none of some,
 * `*ret_vetted` says what the last one was.
 */
size_t sandbox_vet(const struct sandbox *sandbox, uint16_t port, const struct address *found, size_t count,
                   struct address *ret_addresses, const char **ret_vetted);

/* arrive.c: one that was accepted; the descriptor becomes its own. */
void connection_start(struct sandbox *sandbox, int fd);
/* End those that the rules do not allow, or all. */
void connections_check(struct sandbox *sandbox);
void connections_end(struct sandbox *sandbox);

/* questions.c: a question, and its answer when it is there; never from within question_ask(). */
typedef void question_answered(void *data, const uint8_t *answer, size_t length);
struct question_wait;
/* NULL: nothing will be answered. */
struct question_wait *question_ask(struct sandbox *sandbox, const uint8_t *data, size_t length,
                                   question_answered *answered, void *data_of_caller);
void question_forget(struct question_wait *wait);
/* The sandbox's UDP socket can be read. */
void questions_read(struct sandbox *sandbox);
