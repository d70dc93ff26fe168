/* What is said about Hutch itself rather than about a sandbox. Asked often by machines, and so not in the audit log. */
#include "base/clock.h"
#include "gateway/engine/pool.h"
#include "gateway/surface/call.h"
#include "gateway/surface/routes.h"

#include <stdio.h>
#include <string.h>

enum { METRICS_BYTES_MAX = 65536 };

static const char openapi[] = {
#include "openapi.inc"
};

#define NS_PER_S 1000000000U
#define US_PER_S 1e6

void meta_healthz(struct request *request)
{
    static const char body[] = "{\"status\":\"ok\"}\n";

    request_answer(request, 200, "application/json", body, sizeof body - 1);
}

void meta_openapi(struct request *request)
{
    request_answer(request, 200, "application/yaml", openapi, sizeof openapi);
}

static void count_states(struct engine *engine, uint64_t counts[SANDBOX_STATES])
{
    struct sandbox_info info;

    for (struct sandbox *sandbox = NULL; (sandbox = sandbox_next(engine, sandbox)) != NULL;) {
        sandbox_get(sandbox, &info);
        counts[info.state]++;
    }
}

void meta_health(struct request *request)
{
    struct surface *surface = request->context;
    struct writer writer = writer_init(METRICS_BYTES_MAX);
    struct engine_figures engine;
    struct pool_figures pool;
    bool can_record = store_can_record(surface->options.store);

    engine_figures(surface->options.engine, &engine);
    pool_figures(surface->options.engine, &pool);
    writer_open(&writer, NULL, '{');
    writer_text(&writer, "status", can_record ? "ok" : "degraded");
    writer_text(&writer, "version", HUTCH_VERSION);
    writer_number(&writer, "uptime_seconds", (int64_t)((clock_now_ns() - surface->start_ns) / NS_PER_S));
    writer_number(&writer, "sandboxes", (int64_t)engine.sandboxes);
    writer_number(&writer, "execs", (int64_t)engine.execs);
    writer_number(&writer, "pool_idle", pool.idle);
    writer_switch(&writer, "recording", can_record);
    writer_close(&writer, '}');
    if (writer_end(&writer) < 0 || buf_append(&writer.buf, "\n", 1) < 0)
        request_refuse(request, 503, "unavailable", "there is not enough memory for this request");
    else
        request_answer(request, 200, "application/json", writer.buf.data, writer.buf.length);
    writer_release(&writer);
}

struct metric {
    const char *name;
    const char *type;
    const char *help;
    double value;
};

static int write_metrics(struct buf *text, const struct metric *metrics, size_t count)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < count; i++)
        r = buf_printf(text, "# HELP %s %s\n# TYPE %s %s\n%s %.9g\n", metrics[i].name, metrics[i].help, metrics[i].name,
                       metrics[i].type, metrics[i].name, metrics[i].value);
    return r;
}

/* They are counters, all of them, and nothing else. */
static void add_counts(struct server_counts *sum, const struct server_counts *counts)
{
    uint64_t *to = (uint64_t *)sum;
    const uint64_t *from = (const uint64_t *)counts;

    for (size_t i = 0; i < sizeof *sum / sizeof *to; i++)
        to[i] += from[i];
}

static int write_server(struct buf *text, const struct surface *surface)
{
    struct server_counts counts = {0};

    for (size_t i = 0; i < SURFACE_SERVERS_MAX; i++) {
        struct server_counts one =
            surface->servers[i] != NULL ? server_counts(surface->servers[i]) : (struct server_counts){0};
        add_counts(&counts, &one);
    }
    const struct metric metrics[] = {
        {"hutch_connections", "gauge", "Connections that are open.", (double)counts.connections},
        {"hutch_connections_total", "counter", "Connections that were accepted.", (double)counts.connections_total},
        {"hutch_connections_refused_total", "counter", "Connections that were turned away: too many.",
         (double)counts.connections_refused},
        {"hutch_connections_evicted_total", "counter", "Idle connections that made room for others.",
         (double)counts.connections_evicted},
        {"hutch_requests_in_flight", "gauge", "Requests that are not answered yet.", (double)counts.requests},
        {"hutch_requests_total", "counter", "Requests whose head was understood.", (double)counts.requests_total},
        {"hutch_requests_bad_total", "counter", "Requests that could not be parsed.", (double)counts.requests_bad},
        {"hutch_timeouts_total", "counter", "Connections that were ended for being slow.", (double)counts.timeouts},
        {"hutch_tls_failed_total", "counter", "TLS handshakes that failed.", (double)counts.tls_failed},
        {"hutch_received_bytes_total", "counter", "Bytes that came over sockets.", (double)counts.bytes_in},
        {"hutch_sent_bytes_total", "counter", "Bytes that went over sockets.", (double)counts.bytes_out},
        {"hutch_refusals_counted_total", "counter", "Refusals of strangers that share an audit record.",
         (double)surface->counts.counted},
        {"hutch_request_duration_seconds_total", "counter", "Time that answering took, of all requests together.",
         (double)surface->counts.duration_ns / NS_PER_S},
    };

    return write_metrics(text, metrics, sizeof metrics / sizeof *metrics);
}

static int write_loop(struct buf *text, const struct meter *meter)
{
    const struct metric metrics[] = {
        {"hutch_loop_stall_seconds_max", "gauge", "The longest that the event loop heard nobody, since the start.",
         (double)meter->longest_ns / NS_PER_S},
        {"hutch_loop_busy_seconds_total", "counter", "Time in which the event loop worked.",
         (double)meter->busy_ns / NS_PER_S},
        {"hutch_loop_rounds_total", "counter", "Rounds of the event loop.", (double)meter->rounds},
    };

    return write_metrics(text, metrics, sizeof metrics / sizeof *metrics);
}

static int write_engine(struct buf *text, const struct surface *surface)
{
    struct engine_figures engine;
    struct pool_figures pool;

    engine_figures(surface->options.engine, &engine);
    pool_figures(surface->options.engine, &pool);
    const struct metric metrics[] = {
        {"hutch_sandboxes_created_total", "counter", "Sandboxes that were made.", (double)engine.created},
        {"hutch_sandboxes_failed_total", "counter", "Sandboxes that could not be made.", (double)engine.failed},
        {"hutch_sandboxes_ended_total", "counter", "Sandboxes that have ended.", (double)engine.ended},
        {"hutch_sandboxes_hostile_total", "counter", "Sandboxes that were ended for what their init sent.",
         (double)engine.hostile},
        {"hutch_execs", "gauge", "Commands that run.", (double)engine.execs},
        {"hutch_execs_kept", "gauge", "Results that are kept.", (double)engine.execs_kept},
        {"hutch_execs_total", "counter", "Commands that were started.", (double)engine.executed},
        {"hutch_result_bytes", "gauge", "Memory that kept results take.", (double)engine.result_bytes},
        {"hutch_pool_idle", "gauge", "Sandboxes that are ready in the pool.", pool.idle},
        {"hutch_pool_making", "gauge", "Sandboxes that are being made for the pool.", pool.making},
        {"hutch_pool_in_use", "gauge", "Live sandboxes that came from the pool.", pool.in_use},
        {"hutch_pool_claimed_total", "counter", "Creations that the pool served.", (double)pool.claimed},
        {"hutch_pool_missed_total", "counter", "Creations that found the pool empty.", (double)pool.missed},
    };

    return write_metrics(text, metrics, sizeof metrics / sizeof *metrics);
}

static int write_store(struct buf *text, struct store *store)
{
    struct store_stats stats;

    store_get_stats(store, &stats);
    const struct metric metrics[] = {
        {"hutch_store_recording", "gauge", "1 while records can be written.", store_can_record(store) ? 1 : 0},
        {"hutch_store_batches_total", "counter", "Writes that were recorded.", (double)stats.batches},
        {"hutch_store_transactions_total", "counter", "Transactions that they took.", (double)stats.groups},
        {"hutch_store_syncs_total", "counter", "Times that records were made durable.", (double)stats.syncs},
        {"hutch_store_queue", "gauge", "Calls that wait for the store.", (double)stats.calls_waiting},
        {"hutch_store_queue_bytes", "gauge", "Bytes that wait to be recorded.", (double)stats.bytes_waiting},
        {"hutch_store_commit_seconds_max", "gauge", "The longest transaction since the start.",
         (double)stats.stall_us / US_PER_S},
        {"hutch_store_pruned_total", "counter", "Rows that retention removed.", (double)stats.pruned},
    };

    return write_metrics(text, metrics, sizeof metrics / sizeof *metrics);
}

static int write_labelled(struct buf *text, const struct surface *surface)
{
    const struct surface_counts *counts = &surface->counts;
    const struct {
        const char *why;
        uint64_t count;
    } refused[] = {{"unauthenticated", counts->unauthenticated},
                   {"forbidden", counts->forbidden},
                   {"too_many", counts->limited},
                   {"foreign", counts->foreign},
                   {"command_blocked", counts->blocked}};
    uint64_t states[SANDBOX_STATES] = {0};

    count_states(surface->options.engine, states);
    int r = buf_printf(text, "# HELP hutch_sandboxes Sandboxes by state.\n# TYPE hutch_sandboxes gauge\n");
    for (size_t i = 0; r == 0 && i < SANDBOX_STATES; i++)
        r = buf_printf(text, "hutch_sandboxes{state=\"%s\"} %llu\n", sandbox_state_name((enum sandbox_state)i),
                       (unsigned long long)states[i]);
    if (r == 0)
        r = buf_printf(text,
                       "# HELP hutch_refused_total Calls that were refused.\n# TYPE hutch_refused_total counter\n");
    for (size_t i = 0; r == 0 && i < sizeof refused / sizeof *refused; i++)
        r = buf_printf(text, "hutch_refused_total{reason=\"%s\"} %llu\n", refused[i].why,
                       (unsigned long long)refused[i].count);
    if (r == 0)
        r = buf_printf(text, "# HELP hutch_answers_total Answers by class.\n# TYPE hutch_answers_total counter\n");
    for (size_t i = 0; r == 0 && i < sizeof counts->answers / sizeof *counts->answers; i++)
        r = buf_printf(text, "hutch_answers_total{class=\"%zuxx\"} %llu\n", i, (unsigned long long)counts->answers[i]);
    return r;
}

void meta_metrics(struct request *request)
{
    struct surface *surface = request->context;
    struct buf text = buf_init(METRICS_BYTES_MAX);

    int r = write_server(&text, surface);
    if (r == 0)
        r = write_loop(&text, surface->options.meter);
    if (r == 0)
        r = write_engine(&text, surface);
    if (r == 0)
        r = write_store(&text, surface->options.store);
    if (r == 0)
        r = write_labelled(&text, surface);
    if (r < 0)
        request_refuse(request, 503, "unavailable", "there is not enough memory for this request");
    else
        request_answer(request, 200, "text/plain; version=0.0.4", text.data, text.length);
    buf_release(&text);
}
