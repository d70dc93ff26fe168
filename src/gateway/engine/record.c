#include "gateway/engine/internal.h"

#include "base/cleanup.h"

#include <stdlib.h>

struct record *record_new(struct engine *engine, struct sandbox *sandbox, struct exec *exec,
                          void (*then)(struct record *record, int status))
{
    struct record *record = malloc(sizeof *record);

    if (record == NULL)
        record = TAKE_PTR(engine->spare); /* so that who waits for an answer gets one even now */
    if (record == NULL)
        return NULL;
    *record = (struct record){.engine = engine, .sandbox = sandbox, .exec = exec, .then = then};
    if (sandbox != NULL)
        sandbox->refs++;
    if (exec != NULL)
        exec->refs++;
    engine->records++;
    return record;
}

void record_finished(void *request, int status)
{
    struct record *record = request;
    struct engine *engine = record->engine;

    engine->has_record_failed = status < 0 && status != -ENOBUFS; /* which is too much at once, and soon over */
    engine->record_failed_at = uv_now(engine->loop);
    if (!engine->is_closing)
        record->then(record, status);
    if (record->sandbox != NULL)
        sandbox_unref(record->sandbox);
    if (record->exec != NULL)
        exec_unref(record->exec);
    if (engine->spare == NULL)
        engine->spare = TAKE_PTR(record);
    free(record);
    engine->records--;
    engine_check_drained(engine);
    engine_handle_closed(engine);
}

void record_sandbox(struct sandbox *sandbox, void (*then)(struct record *record, int status), sandbox_done done,
                    void *data)
{
    struct engine *engine = sandbox->engine;
    struct record *record = record_new(engine, sandbox, NULL, then);
    struct recorder_sandbox what = {.id = sandbox->id,
                                    .number = sandbox->number,
                                    .state = sandbox->state,
                                    .reason = sandbox->reason,
                                    .settings = &sandbox->settings,
                                    .created_ms = sandbox->created_ms,
                                    .ended_ms = sandbox->ended_ms};

    /* Without memory for a second time it is recorded all the same, and nobody answered. */
    if (record != NULL) {
        record->done = done;
        record->data = data;
    }
    engine->recorder->sandbox(engine->recorder->context, &what, record != NULL ? record_finished : NULL, record);
}
