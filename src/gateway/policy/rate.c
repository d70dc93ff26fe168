/*
 * Each bucket is one number: the time at which it will be full again. Taking a token moves that time on by the time one
 * token takes; it may be ahead of now by the burst, and a bucket whose time has come is full, and as good as forgotten.
 *
 * Buckets hang in chains by a keyed hash of their name, so nobody can make names that meet, and in one list by their
 * last use.
 */
#include "gateway/policy/rate.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>

enum { NONE = UINT32_MAX, LOOKS = 8, NAMES_MAX = 1 << 20, HASH_BYTES = 16 };

struct bucket {
    uint8_t hash[HASH_BYTES];
    uint64_t full_ns;
    uint32_t next;  /* in its chain */
    uint32_t newer; /* in the list */
    uint32_t older;
};

struct rate {
    uint64_t token_ns; /* what one token takes; 0: no limit */
    uint64_t burst_ns;
    uint8_t key[crypto_generichash_KEYBYTES];
    uint32_t room;
    uint32_t count;
    uint32_t chain_mask;
    uint32_t newest;
    uint32_t oldest;
    struct bucket *buckets;
    uint32_t *chains;
    uint64_t shared_full_ns; /* of those who found no bucket */
};

static int make_tables(struct rate *rate, uint32_t names_max)
{
    uint32_t chains = 16;

    while (chains < names_max)
        chains *= 2;
    rate->room = names_max;
    rate->chain_mask = chains - 1;
    rate->buckets = calloc(names_max, sizeof *rate->buckets);
    rate->chains = malloc(chains * sizeof *rate->chains);
    if (rate->buckets == NULL || rate->chains == NULL)
        return -ENOMEM;
    memset(rate->chains, 0xff, chains * sizeof *rate->chains);
    return 0;
}

int rate_new(const struct rate_options *options, struct rate **ret_rate, struct error *err)
{
    uint32_t burst = options->burst > 0 ? options->burst : options->tokens;

    if (options->names_max == 0 || options->names_max > NAMES_MAX || (options->tokens > 0 && options->period_ms == 0))
        return error_set(err, ERROR_INVALID, 0, "a rate needs a period, and room for 1 to %d names", NAMES_MAX);
    struct rate *rate = calloc(1, sizeof *rate);
    if (rate == NULL || sodium_init() < 0 || make_tables(rate, options->names_max) < 0) {
        rate_free(rate);
        return error_set(err, ERROR_SYSTEM, ENOMEM, "making a table of rates");
    }
    randombytes_buf(rate->key, sizeof rate->key);
    rate->newest = NONE;
    rate->oldest = NONE;
    if (options->tokens > 0)
        rate->token_ns = (uint64_t)options->period_ms * 1000000U / options->tokens;
    rate->burst_ns = rate->token_ns * burst;
    *ret_rate = rate;
    return 0;
}

void rate_free(struct rate *rate)
{
    if (rate == NULL)
        return;
    free(rate->buckets);
    free(rate->chains);
    free(rate);
}

size_t rate_count(const struct rate *rate)
{
    return rate->count;
}

static uint32_t *chain_of(const struct rate *rate, const uint8_t hash[HASH_BYTES])
{
    uint32_t slot;

    memcpy(&slot, hash, sizeof slot);
    return &rate->chains[slot & rate->chain_mask];
}

static uint32_t find(const struct rate *rate, const uint8_t hash[HASH_BYTES])
{
    uint32_t at = *chain_of(rate, hash);

    while (at != NONE && memcmp(rate->buckets[at].hash, hash, HASH_BYTES) != 0)
        at = rate->buckets[at].next;
    return at;
}

static void leave_list(struct rate *rate, uint32_t at)
{
    struct bucket *bucket = &rate->buckets[at];

    *(bucket->newer != NONE ? &rate->buckets[bucket->newer].older : &rate->newest) = bucket->older;
    *(bucket->older != NONE ? &rate->buckets[bucket->older].newer : &rate->oldest) = bucket->newer;
}

static void join_list(struct rate *rate, uint32_t at)
{
    struct bucket *bucket = &rate->buckets[at];

    bucket->newer = NONE;
    bucket->older = rate->newest;
    *(rate->newest != NONE ? &rate->buckets[rate->newest].newer : &rate->oldest) = at;
    rate->newest = at;
}

static void leave_chain(struct rate *rate, uint32_t at)
{
    uint32_t *link = chain_of(rate, rate->buckets[at].hash);

    while (*link != at)
        link = &rate->buckets[*link].next;
    *link = rate->buckets[at].next;
}

/* One that is free, or one that is full, which nobody will miss. */
static uint32_t claim(struct rate *rate, uint64_t now_ns)
{
    uint32_t at = rate->oldest;

    if (rate->count < rate->room)
        return rate->count++;
    for (int i = 0; i < LOOKS && at != NONE; i++, at = rate->buckets[at].newer) {
        if (rate->buckets[at].full_ns <= now_ns) {
            leave_list(rate, at);
            leave_chain(rate, at);
            return at;
        }
    }
    return NONE;
}

static uint32_t add(struct rate *rate, const uint8_t hash[HASH_BYTES], uint64_t now_ns)
{
    uint32_t at = claim(rate, now_ns);

    if (at == NONE)
        return NONE;
    uint32_t *chain = chain_of(rate, hash);
    rate->buckets[at] = (struct bucket){.full_ns = now_ns, .next = *chain};
    memcpy(rate->buckets[at].hash, hash, HASH_BYTES);
    *chain = at;
    join_list(rate, at);
    return at;
}

static struct rate_verdict take(const struct rate *rate, uint64_t *full_ns, uint64_t now_ns)
{
    uint64_t ahead_ns = *full_ns > now_ns ? *full_ns - now_ns : 0;

    if (ahead_ns + rate->token_ns > rate->burst_ns) {
        uint64_t wait_ns = ahead_ns + rate->token_ns - rate->burst_ns;
        return (struct rate_verdict){.retry_ms = (uint32_t)((wait_ns + 999999U) / 1000000U)};
    }
    *full_ns = now_ns + ahead_ns + rate->token_ns;
    return (struct rate_verdict){.allowed = true,
                                 .left = (uint32_t)((rate->burst_ns - ahead_ns - rate->token_ns) / rate->token_ns)};
}

struct rate_verdict rate_take(struct rate *rate, const void *name, size_t length, uint64_t now_ns)
{
    uint8_t hash[HASH_BYTES];

    if (rate->token_ns == 0)
        return (struct rate_verdict){.allowed = true, .left = UINT32_MAX};
    (void)crypto_generichash(hash, sizeof hash, name, length, rate->key, sizeof rate->key);
    uint32_t at = find(rate, hash);
    if (at == NONE)
        at = add(rate, hash, now_ns);
    if (at == NONE)
        return take(rate, &rate->shared_full_ns, now_ns);
    leave_list(rate, at);
    join_list(rate, at);
    return take(rate, &rate->buckets[at].full_ns, now_ns);
}
