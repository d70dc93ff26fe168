#include "gateway/surface/pulse.h"

#include <stdlib.h>

struct pulse {
    uv_timer_t timer;
    void (*beat)(void *data);
    void *data;
};

static void on_timer(uv_timer_t *timer)
{
    struct pulse *pulse = timer->data;

    pulse->beat(pulse->data);
}

static void on_closed(uv_handle_t *handle)
{
    free(handle->data);
}

struct pulse *pulse_start(uv_loop_t *loop, uint64_t ms, void (*beat)(void *data), void *data)
{
    struct pulse *pulse = calloc(1, sizeof *pulse);

    if (pulse == NULL)
        return NULL;
    pulse->beat = beat;
    pulse->data = data;
    (void)uv_timer_init(loop, &pulse->timer); /* neither can fail for a loop and a callback that are there */
    pulse->timer.data = pulse;
    (void)uv_timer_start(&pulse->timer, on_timer, ms, ms);
    return pulse;
}

void pulse_stop(struct pulse *pulse)
{
    if (pulse != NULL)
        uv_close((uv_handle_t *)&pulse->timer, on_closed);
}
