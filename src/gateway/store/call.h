/*
 * call: what all calls to the store have in common, and the queues they wait in.
 *
 * A call belongs to the loop's thread until it is pushed, then to whoever took it from the queue, and at the end to the
 * loop's thread again, which delivers and frees it. Only `cancelled` is the loop's throughout.
 */
#pragma once

#include "base/arena.h"
#include "base/error.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct store;

enum call_kind { CALL_QUERY, CALL_BATCH, CALL_PRUNE, CALL_SPOOL, CALL_SPOOL_END };

struct store_call {
    struct store_call *next;
    struct store *store;
    struct arena arena;
    void (*deliver)(struct store_call *call); /* on the loop's thread */
    void *data;
    bool cancelled;
    enum call_kind kind;
    size_t bytes; /* that it counts for while it waits */
    int result;
    struct error error;
};

struct call_list {
    struct store_call *first;
    struct store_call *last;
};

void call_list_add(struct call_list *list, struct store_call *call);
void call_list_join(struct call_list *list, struct call_list *more);
struct store_call *call_list_take(struct call_list *list);

/* A call of `size` bytes whose first member is a struct store_call. NULL: no memory. */
void *call_new(struct store *store, size_t size, size_t cap);
void call_free(struct store_call *call);

/* No cap of its own: the store counts what has not been delivered yet (store.c). */
struct queue {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    struct call_list calls;
    bool closed;
    bool poked;
};

void queue_init(struct queue *queue);
void queue_release(struct queue *queue);
void queue_push(struct queue *queue, struct store_call *call);
void queue_push_all(struct queue *queue, struct call_list *calls);

/* Whoever waits is to look around. */
void queue_poke(struct queue *queue);

/* Nothing more will come; whoever waits is woken. */
void queue_close(struct queue *queue);

/*
 * Take calls in order, at most `count` and, but for the first, `bytes`. With none there, wait `wait_ms` for one, or
 * forever when that is negative. False once the queue is closed and empty.
 */
bool queue_take(struct queue *queue, size_t count, size_t bytes, int wait_ms, struct call_list *ret_calls);
