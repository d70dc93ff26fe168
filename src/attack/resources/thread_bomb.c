/*
 * thread-bomb: threads count as processes.
 */
#include "attack/attack.h"

#include <pthread.h>
#include <stdint.h>
#include <unistd.h>

static void *wait_for_ever(void *nothing)
{
    for (;;)
        (void)pause();
    return nothing;
}

static void inside(struct attempt *attempt)
{
    pthread_attr_t attributes;
    unsigned count = 0;
    int error = 0;

    (void)pthread_attr_init(&attributes);
    (void)pthread_attr_setstacksize(&attributes, 16384);
    while (error == 0 && count < 4096) {
        pthread_t thread;
        error = pthread_create(&thread, &attributes, wait_for_ever, NULL);
        count += error == 0 ? 1 : 0;
    }
    TRIED(attempt, "one more", error != 0 ? -1 : 0, error, EAGAIN);
    attempt_say(attempt, "how many", count <= 64, "%u", count);
}

const struct attack attack_thread_bomb = {
    .name = "thread-bomb",
    .tries = "threads without end",
    .group = ATTACK_RESOURCES,
    .variants = AS_NOBODY | AS_ROOT,
    .inside = inside,
    .options = {"--processes", "64"},
};
