/*
 * cpu: 100 threads that do nothing but run: the neighbour's share is its own.
 */
#include "attack/attack.h"
#include "attack/work.h"

#include <pthread.h>
#include <unistd.h>

static void *spin(void *deadline_ns)
{
    while (work_goes_on(*(uint64_t *)deadline_ns))
        continue;
    return NULL;
}

static void inside(struct attempt *attempt)
{
    static uint64_t deadline_ns;

    deadline_ns = work_deadline_ns(1500);
    for (int i = 0; i < 100; i++) {
        pthread_t thread;
        (void)pthread_create(&thread, NULL, spin, &deadline_ns);
    }
    while (work_goes_on(deadline_ns))
        (void)usleep(10000);
    attempt_say(attempt, "100 threads", true, "ran");
}

const struct attack attack_cpu = {
    .name = "cpu",
    .tries = "100 threads that spin",
    .group = ATTACK_RESOURCES,
    .variants = AS_NOBODY,
    .inside = inside,
};
