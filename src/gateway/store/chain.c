#include "gateway/store/chain.h"

#include <sodium.h>
#include <string.h>

/* Each kind of record starts with a name of its own, so that none can stand for another. */
static const char audit_domain[] = "hutch audit 1";
static const char output_domain[] = "hutch output 1";

static void add_number(crypto_generichash_state *state, uint64_t number)
{
    uint8_t bytes[8];

    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(number >> (8 * i));
    (void)crypto_generichash_update(state, bytes, sizeof bytes);
}

static void add_bytes(crypto_generichash_state *state, const void *data, size_t length)
{
    add_number(state, data != NULL ? length : UINT64_MAX);
    if (data != NULL)
        (void)crypto_generichash_update(state, data, length);
}

static void add_text(crypto_generichash_state *state, const char *text)
{
    add_bytes(state, text, text != NULL ? strlen(text) : 0);
}

void chain_hash_audit(const struct store_audit *audit, uint8_t ret_hash[STORE_HASH_BYTES])
{
    crypto_generichash_state state;

    (void)crypto_generichash_init(&state, NULL, 0, STORE_HASH_BYTES);
    add_text(&state, audit_domain);
    add_bytes(&state, audit->previous, STORE_HASH_BYTES);
    add_number(&state, audit->number);
    add_number(&state, (uint64_t)audit->time_ms);
    add_text(&state, audit->principal);
    add_text(&state, audit->agent);
    add_text(&state, audit->sandbox);
    add_text(&state, audit->exec);
    add_text(&state, audit->action);
    add_number(&state, (uint64_t)audit->verdict);
    add_text(&state, audit->detail);
    add_bytes(&state, audit->with_output ? audit->output_hash : NULL, STORE_HASH_BYTES);
    (void)crypto_generichash_final(&state, ret_hash, STORE_HASH_BYTES);
}

void chain_hash_output(const struct store_output *output, const uint8_t previous[STORE_HASH_BYTES],
                       uint8_t ret_hash[STORE_HASH_BYTES])
{
    crypto_generichash_state state;

    (void)crypto_generichash_init(&state, NULL, 0, STORE_HASH_BYTES);
    add_text(&state, output_domain);
    add_bytes(&state, previous, STORE_HASH_BYTES);
    add_number(&state, output->stream);
    add_number(&state, output->offset);
    add_number(&state, output->position);
    add_bytes(&state, output->data, output->length);
    (void)crypto_generichash_final(&state, ret_hash, STORE_HASH_BYTES);
}
