#include "gateway/net/meter.h"

static void round_ends(uv_prepare_t *handle)
{
    struct meter *meter = handle->data;
    uint64_t now = uv_hrtime();
    uint64_t idle = uv_metrics_idle_time(handle->loop);
    uint64_t round = now - meter->round_start_ns;
    uint64_t slept = idle - meter->idle_before_ns;
    uint64_t busy = round > slept ? round - slept : 0;

    if (meter->has_start) {
        meter->rounds++;
        meter->busy_ns += busy;
        if (busy > meter->longest_ns)
            meter->longest_ns = busy;
        if (busy > meter->recent_ns)
            meter->recent_ns = busy;
    }
    meter->has_start = true;
    meter->round_start_ns = now;
    meter->idle_before_ns = idle;
}

int meter_start(struct meter *meter, uv_loop_t *loop, struct error *err)
{
    *meter = (struct meter){0};
    int r = uv_loop_configure(loop, UV_METRICS_IDLE_TIME);
    if (r == 0)
        r = uv_prepare_init(loop, &meter->prepare);
    if (r < 0)
        return error_set(err, ERROR_SYSTEM, -r, "measuring the loop");
    meter->prepare.data = meter;
    /* Neither fails on a handle that was just made. */
    ignore_result(uv_prepare_start(&meter->prepare, round_ends));
    uv_unref((uv_handle_t *)&meter->prepare);
    return 0;
}

void meter_stop(struct meter *meter)
{
    uv_close((uv_handle_t *)&meter->prepare, NULL);
}

uint64_t meter_take_recent(struct meter *meter)
{
    uint64_t recent = meter->recent_ns;

    meter->recent_ns = 0;
    return recent;
}
