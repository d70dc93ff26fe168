#include "gateway/first.h"

#include "base/parse.h"
#include "gateway/store/batch.h"
#include "gateway/store/query.h"

#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { PASSWORD_LENGTH = 24, NUMBER_SIZE = 24 };

static const char start_setting[] = "gateway.starts";

struct waiting {
    uv_loop_t *loop;
    bool is_answered;
    int result;
    char message[ERROR_MESSAGE_MAX];
    uint64_t starts;
    bool has_keys;
};

static void got_outcome(void *data, const struct store_outcome *outcome)
{
    struct waiting *waiting = data;

    waiting->is_answered = true;
    waiting->result = outcome->result;
    (void)snprintf(waiting->message, sizeof waiting->message, "%s", outcome->message != NULL ? outcome->message : "");
}

static void got_settings(void *data, const struct store_page *page)
{
    struct waiting *waiting = data;

    waiting->is_answered = true;
    waiting->result = page->result;
    for (size_t i = 0; page->result == 0 && i < page->count; i++) {
        if (strcmp(page->settings[i].name, start_setting) == 0 &&
            parse_u64(page->settings[i].value, &waiting->starts) < 0)
            waiting->result = -EBADMSG;
    }
}

static void got_keys(void *data, const struct store_page *page)
{
    struct waiting *waiting = data;

    waiting->is_answered = true;
    waiting->result = page->result;
    waiting->has_keys = page->result == 0 && page->count > 0;
}

static int wait_for(struct waiting *waiting, int started, const char *what, struct error *err)
{
    if (started < 0)
        return error_set(err, ERROR_SYSTEM, ENOMEM, "%s", what);
    while (!waiting->is_answered)
        (void)uv_run(waiting->loop, UV_RUN_ONCE);
    if (waiting->result < 0)
        return error_set(err, ERROR_SYSTEM, -waiting->result, "%s: %s", what, waiting->message);
    return 0;
}

int first_count_start(struct store *store, uv_loop_t *loop, uint32_t *ret_start, struct error *err)
{
    struct waiting waiting = {.loop = loop};
    char number[NUMBER_SIZE];

    int r = query_settings(store, got_settings, &waiting) == NULL ? -ENOMEM : 0;
    r = wait_for(&waiting, r, "reading the settings", err);
    if (r < 0)
        return r;
    struct batch *batch = batch_new(store);
    uint32_t start = (uint32_t)waiting.starts + 1;
    waiting = (struct waiting){.loop = loop};
    (void)snprintf(number, sizeof number, "%u", start);
    if (batch != NULL)
        batch_set_setting(batch, start_setting, number);
    r = batch == NULL || batch_submit(batch, got_outcome, &waiting) == NULL ? -ENOMEM : 0;
    r = wait_for(&waiting, r, "counting the starts", err);
    if (r == 0)
        *ret_start = start;
    return r;
}

static int64_t wall_ms(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int add_key(struct credentials *credentials, uv_loop_t *loop, const char *preset,
                   char secret[CREDENTIALS_SECRET_MAX + 1], struct error *err)
{
    struct key_request request = {.name = "first", .secret = preset, .scope = STORE_SCOPE_ADMIN};
    struct waiting waiting = {.loop = loop};
    struct id id;

    int r = credentials_add_key(credentials, &request, wall_ms(), got_outcome, &waiting, &id, secret, err);
    return r < 0 ? r : wait_for(&waiting, r, "recording the first key", err);
}

static int set_password(struct credentials *credentials, uv_loop_t *loop, const char *password, struct error *err)
{
    struct waiting waiting = {.loop = loop};

    int r = credentials_set_password(credentials, password, strlen(password), got_outcome, &waiting, err);
    return r < 0 ? r : wait_for(&waiting, r, "recording the first password", err);
}

/* Told once, to whoever started the daemon; only their hashes are kept. */
static int make_both(struct credentials *credentials, uv_loop_t *loop, struct error *err)
{
    char secret[CREDENTIALS_SECRET_MAX + 1];
    char password[PASSWORD_LENGTH + 1];

    if (id_random_text(password, PASSWORD_LENGTH) < 0)
        return error_set(err, ERROR_SYSTEM, EIO, "making a password");
    int r = add_key(credentials, loop, NULL, secret, err);
    if (r == 0)
        r = set_password(credentials, loop, password, err);
    if (r == 0)
        (void)fprintf(stderr,
                      "first start. These are shown once and never again:\n"
                      "  API key         %s\n"
                      "  admin password  %s\n",
                      secret, password);
    sodium_memzero(secret, sizeof secret);
    sodium_memzero(password, sizeof password);
    return r;
}

int first_credentials(struct handover *handover, struct store *store, struct credentials *credentials, uv_loop_t *loop,
                      struct error *err)
{
    const struct handover_presets *presets = &handover->presets;
    struct waiting waiting = {.loop = loop};
    char secret[CREDENTIALS_SECRET_MAX + 1];

    int r = query_keys(store, 1, 0, got_keys, &waiting) == NULL ? -ENOMEM : 0;
    r = wait_for(&waiting, r, "reading the keys", err);
    if (r < 0)
        return r;
    bool has_any = waiting.has_keys || credentials_has_password(credentials);
    r = handover_check_credentials(handover, has_any, err);
    if (r < 0 || has_any) {
        handover_forget_presets(handover);
        return r;
    }
    if (presets->admin_password != NULL) {
        r = set_password(credentials, loop, presets->admin_password, err);
        if (r < 0)
            error_wrap(err, "HUTCH_ADMIN_PASSWORD");
    }
    if (r == 0 && presets->api_key != NULL) {
        r = add_key(credentials, loop, presets->api_key, secret, err);
        if (r < 0)
            error_wrap(err, "HUTCH_API_KEY");
    }
    if (r == 0 && presets->admin_password == NULL && presets->api_key == NULL)
        r = make_both(credentials, loop, err);
    sodium_memzero(secret, sizeof secret);
    handover_forget_presets(handover);
    return r;
}
