#include "gateway/store/call.h"

#include <stdlib.h>
#include <time.h>

void call_list_add(struct call_list *list, struct store_call *call)
{
    call->next = NULL;
    if (list->last != NULL)
        list->last->next = call;
    else
        list->first = call;
    list->last = call;
}

void call_list_join(struct call_list *list, struct call_list *more)
{
    if (more->first == NULL)
        return;
    if (list->last != NULL)
        list->last->next = more->first;
    else
        list->first = more->first;
    list->last = more->last;
    *more = (struct call_list){0};
}

struct store_call *call_list_take(struct call_list *list)
{
    struct store_call *call = list->first;

    if (call == NULL)
        return NULL;
    list->first = call->next;
    if (list->first == NULL)
        list->last = NULL;
    call->next = NULL;
    return call;
}

void *call_new(struct store *store, size_t size, size_t cap)
{
    struct store_call *call = calloc(1, size);

    if (call == NULL)
        return NULL;
    call->store = store;
    call->scratch = scratch_init(cap);
    call->bytes = size;
    return call;
}

void call_free(struct store_call *call)
{
    if (call == NULL)
        return;
    scratch_release(&call->scratch);
    free(call);
}

void queue_init(struct queue *queue)
{
    pthread_condattr_t monotonic;

    *queue = (struct queue){0};
    (void)pthread_mutex_init(&queue->mutex, NULL);
    (void)pthread_condattr_init(&monotonic);
    (void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&queue->changed, &monotonic);
    (void)pthread_condattr_destroy(&monotonic);
}

void queue_release(struct queue *queue)
{
    (void)pthread_cond_destroy(&queue->changed);
    (void)pthread_mutex_destroy(&queue->mutex);
}

void queue_push_all(struct queue *queue, struct call_list *calls)
{
    (void)pthread_mutex_lock(&queue->mutex);
    bool wake = queue->calls.first == NULL && calls->first != NULL;
    call_list_join(&queue->calls, calls);
    (void)pthread_mutex_unlock(&queue->mutex);
    if (wake)
        (void)pthread_cond_signal(&queue->changed);
}

void queue_push(struct queue *queue, struct store_call *call)
{
    struct call_list one = {0};

    call_list_add(&one, call);
    queue_push_all(queue, &one);
}

void queue_poke(struct queue *queue)
{
    (void)pthread_mutex_lock(&queue->mutex);
    queue->poked = true;
    (void)pthread_mutex_unlock(&queue->mutex);
    (void)pthread_cond_signal(&queue->changed);
}

void queue_close(struct queue *queue)
{
    (void)pthread_mutex_lock(&queue->mutex);
    queue->closed = true;
    (void)pthread_mutex_unlock(&queue->mutex);
    (void)pthread_cond_signal(&queue->changed);
}

static struct timespec in_ms(int wait_ms)
{
    struct timespec when;

    (void)clock_gettime(CLOCK_MONOTONIC, &when);
    when.tv_sec += wait_ms / 1000;
    when.tv_nsec += (wait_ms % 1000) * 1000000L;
    if (when.tv_nsec >= 1000000000L) {
        when.tv_sec++;
        when.tv_nsec -= 1000000000L;
    }
    return when;
}

static void await(struct queue *queue, int wait_ms)
{
    struct timespec until = in_ms(wait_ms < 0 ? 0 : wait_ms);
    int r = 0;

    while (queue->calls.first == NULL && !queue->closed && !queue->poked && r == 0 && wait_ms != 0) {
        if (wait_ms < 0)
            r = pthread_cond_wait(&queue->changed, &queue->mutex);
        else
            r = pthread_cond_timedwait(&queue->changed, &queue->mutex, &until);
    }
}

bool queue_take(struct queue *queue, size_t count, size_t bytes, int wait_ms, struct call_list *ret_calls)
{
    size_t taken = 0;

    *ret_calls = (struct call_list){0};
    (void)pthread_mutex_lock(&queue->mutex);
    await(queue, wait_ms);
    queue->poked = false;
    for (size_t i = 0; i < count && queue->calls.first != NULL; i++) {
        struct store_call *call = queue->calls.first;
        if (i > 0 && taken + call->bytes > bytes)
            break;
        taken += call->bytes;
        (void)call_list_take(&queue->calls);
        call_list_add(ret_calls, call);
    }
    bool over = queue->closed && ret_calls->first == NULL;
    (void)pthread_mutex_unlock(&queue->mutex);
    return !over;
}
