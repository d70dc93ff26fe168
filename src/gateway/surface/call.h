/*
 * call: one request to /api/v1 on its way through a handler: who calls, what it is about, what will be said of it.
 *
 * Made by surface_before() in the request's arena; ends with the answer. Nothing is answered before it is in the audit
 * log: call_answer() and its friends record first. A handler that answers in pieces records with call_record().
 */
#pragma once

#include "base/id.h"
#include "gateway/engine/exec.h"
#include "gateway/engine/files.h"
#include "gateway/engine/sandbox.h"
#include "gateway/net/request.h"
#include "gateway/store/records.h"
#include "gateway/surface/body.h"
#include "gateway/surface/state.h"
#include "gateway/surface/writer.h"

enum { CALL_DETAIL_MAX = 65536, CALL_ANSWER_MAX = 64 << 20 };

/* What a row of the route table wants of its caller. */
enum call_access {
    CALL_OPEN,  /* nobody in particular */
    CALL_SEE,   /* any principal: its own, or all with `read` */
    CALL_TOUCH, /* `run`: its own; `admin`: all */
    CALL_READ,  /* `read` or `admin` */
    CALL_ADMIN,
};

/* A row's `extra`. */
struct call_kind {
    const char *action; /* in the audit log */
};

struct call;
typedef void (*call_then)(struct call *call);

struct call {
    struct request *request;
    struct surface *surface;
    struct principal principal;
    char agent[CREDENTIALS_NAME_MAX + 1];
    char sandbox[ENGINE_ID_SIZE];
    char exec[ENGINE_ID_SIZE];
    struct writer detail; /* of the audit record: fields that the handler adds */
    json_t *body;
    enum store_verdict verdict;
    bool is_recorded;
    bool is_recording;    /* begun with call_record_early() */
    bool waits_to_answer; /* for that */
    int record_result;    /* of that, when it failed */
    bool has_detail;
    unsigned status; /* of the answer that waits for the record */
    const char *type;
    struct buf answer;
    call_then then;
    char retry_seconds[16]; /* with 429; "" when nothing better than soon is known */
    void *state;            /* the handler's own, in the request's arena */
};

/* NULL: no memory. */
struct call *call_make(struct request *request, struct surface *surface);
static inline struct call *call_of(struct request *request)
{
    return request->principal;
}

/* Zeroed, until the end of the request; when there is none, 503 was answered and NULL is returned. */
void *call_alloc(struct call *call, size_t size);

/* Whose things the caller may see: NULL for everybody's. */
const char *call_owner(const struct call *call);

/* The body as an object with these fields. When it is not, that was answered. */
_must_use_ int call_take(struct call *call, const struct body_fields *fields, void *target);

/* The sandbox or exec that the path names, if the caller may see it; else NULL, and 404 was answered. */
struct sandbox *call_sandbox(struct call *call);
struct exec *call_exec(struct call *call);

/* Does the engine know the exec that the path names? */
bool call_has_exec(struct call *call);

/* Query parameters; -EINVAL after 400 was answered. What is not given stays as it is. */
_must_use_ int call_query_number(struct call *call, const char *name, uint64_t least, uint64_t most, uint64_t *number);
_must_use_ int call_query_switch(struct call *call, const char *name, bool *value);

/* The event a client saw last, by Last-Event-ID, in the same way; `after` in the query goes before it. */
_must_use_ int call_last_event(struct call *call, uint64_t *number);

/* `limit`, 100 when it is not given and at most 1000, and `cursor`; no other parameters but these, up to NULL. */
struct call_page {
    uint64_t limit;
    uint64_t cursor;
};
_must_use_ int call_query_page(struct call *call, const char *const *others, struct call_page *ret_page);

/* Refuse any query parameter that is not among these, up to NULL. */
_must_use_ int call_query_only(struct call *call, const char *const *names);

/* Fields of the audit record's detail. */
struct writer *call_detail(struct call *call);

/* Record it, then go on with `then`, which is not called when it can't be: 503 was answered then. */
void call_record(struct call *call, call_then then);

/* Record it while it is carried out: the answer that comes later waits only for what is left of that. What happens
 * between is not in the record. */
void call_record_early(struct call *call);

/* Record it and answer with what the writer holds, which is taken over. */
void call_answer(struct call *call, unsigned status, struct writer *writer);
void call_answer_empty(struct call *call, unsigned status);

/* The end of a page: closes its list, says where the next begins (0: there is none) and answers with it. */
void call_answer_page(struct call *call, struct writer *writer, uint64_t count, uint64_t next);

void call_refuse(struct call *call, unsigned status, const char *code, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
void call_refuse_memory(struct call *call);
void call_refuse_unread(struct call *call, const char *message); /* the store's words, or NULL */
void call_fail(struct call *call, const struct error *err);
void call_fail_file(struct call *call, const struct error *err);

/* The end of an answer in pieces, or of one whose client has gone. */
void call_finish(struct call *call);
void call_abort(struct call *call);

/* An error without a record, where there is no call: the end of the request. */
void call_answer_error(struct request *request, unsigned status, const char *code, const char *message);
