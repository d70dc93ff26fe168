/* Keys: made, listed and revoked by an admin. A secret is told once, in the answer that makes it. */
#include "gateway/store/credentials.h"
#include "gateway/store/query.h"
#include "gateway/surface/call.h"
#include "gateway/surface/routes.h"

#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { YEAR = 366 * 86400 };

struct key_body {
    const char *name;
    const char *scope;
    const char *agent;
    struct body_number expires_in_seconds;
};

#define AT(member) offsetof(struct key_body, member)
static const struct body_field items[] = {
    {"name", BODY_TEXT, AT(name), true, 1, CREDENTIALS_NAME_MAX, NULL, NULL},
    {"scope", BODY_TEXT, AT(scope), true, 0, 0, "run|read|admin", NULL},
    {"agent", BODY_TEXT, AT(agent), false, 1, CREDENTIALS_NAME_MAX, NULL, NULL},
    {"expires_in_seconds", BODY_NUMBER, AT(expires_in_seconds), false, 1, 10 * (int64_t)YEAR, NULL, NULL},
};
static const struct body_fields fields = BODY_FIELDS(items);

struct making {
    struct key_body body;
    struct id id;
    int64_t created_ms;
    int64_t expires_ms;
    enum store_scope scope;
    char secret[CREDENTIALS_SECRET_MAX + 1];
};

static int64_t wall_ms(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void write_key(struct writer *writer, const struct store_key *key)
{
    writer_text(writer, "id", key->id);
    writer_text(writer, "name", key->name);
    writer_text(writer, "scope", credentials_scope_name(key->scope));
    writer_text(writer, "agent", key->agent);
    writer_time(writer, "created_at", (uint64_t)key->created_ms);
    writer_time(writer, "expires_at", (uint64_t)key->expires_ms);
    writer_time(writer, "revoked_at", (uint64_t)key->revoked_ms);
    writer_time(writer, "last_used_at", (uint64_t)key->used_ms);
}

static void made(void *data, const struct store_outcome *outcome)
{
    struct call *call = data;
    struct making *making = call->state;
    struct writer writer = writer_init(CALL_ANSWER_MAX);
    struct store_key key = {.id = making->id.text,
                            .name = making->body.name,
                            .scope = making->scope,
                            .agent = making->body.agent,
                            .created_ms = making->created_ms,
                            .expires_ms = making->expires_ms};

    if (outcome->result < 0) {
        sodium_memzero(making->secret, sizeof making->secret);
        call_refuse(call, 503, "unavailable", "the key can't be recorded now: %s", outcome->message);
        return;
    }
    writer_text(call_detail(call), "key", making->id.text);
    writer_text(call_detail(call), "scope", making->body.scope);
    writer_open(&writer, NULL, '{');
    write_key(&writer, &key);
    writer_text(&writer, "secret", making->secret);
    writer_close(&writer, '}');
    sodium_memzero(making->secret, sizeof making->secret);
    call_answer(call, 201, &writer);
}

void keys_create(struct request *request)
{
    struct call *call = call_of(request);
    struct making *making = call_alloc(call, sizeof *making);
    struct error err = {0};

    if (making == NULL || call_take(call, &fields, &making->body) < 0)
        return;
    call->state = making;
    making->created_ms = wall_ms();
    if (making->body.expires_in_seconds.given)
        making->expires_ms = making->created_ms + making->body.expires_in_seconds.value * 1000;
    int r = credentials_scope(making->body.scope, &making->scope);
    struct key_request wish = {.name = making->body.name,
                               .agent = making->body.agent,
                               .scope = making->scope,
                               .expires_ms = making->expires_ms};
    if (r == 0)
        r = credentials_add_key(call->surface->options.credentials, &wish, making->created_ms, made, call, &making->id,
                                making->secret, &err);
    if (r < 0)
        call_fail(call, &err);
}

static void listed(void *data, const struct store_page *page)
{
    struct call *call = data;
    struct writer writer = writer_init(CALL_ANSWER_MAX);

    if (page->result < 0) {
        call_refuse_unread(call, page->message);
        return;
    }
    writer_open(&writer, NULL, '{');
    writer_open(&writer, "keys", '[');
    for (size_t i = 0; i < page->count; i++) {
        writer_open(&writer, NULL, '{');
        write_key(&writer, &page->keys[i]);
        writer_close(&writer, '}');
    }
    call_answer_page(call, &writer, page->count, page->next);
}

void keys_list(struct request *request)
{
    struct call *call = call_of(request);
    struct call_page page;

    if (call_query_page(call, NULL, &page) < 0)
        return;
    if (query_keys(call->surface->options.store, page.limit, page.cursor, listed, call) == NULL)
        call_refuse_memory(call);
}

static void revoked(void *data, const struct store_outcome *outcome)
{
    if (outcome->result < 0)
        call_refuse(data, 503, "unavailable", "that can't be recorded now: %s", outcome->message);
    else
        call_answer_empty(data, 204);
}

void keys_revoke(struct request *request)
{
    struct call *call = call_of(request);
    const char *id = request_parameter(request, "kid");
    int r =
        id == NULL ? -ENOMEM : credentials_revoke_key(call->surface->options.credentials, id, wall_ms(), revoked, call);

    if (r == 0)
        writer_text(call_detail(call), "key", id);
    else if (r == -ENOENT)
        call_refuse(call, 404, "not_found", "there is no key %s", id);
    else
        call_refuse_memory(call);
}
