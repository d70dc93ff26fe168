#include "gateway/surface/strangers.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

enum { NETWORK_BYTES = 8 };

static const char others_name[] = "others";

static const char *const reasons[STRANGERS_REASONS] = {
    "unauthenticated", "not_found",          "method_not_allowed",
    "too_many",        "host_not_allowed",   "origin_not_allowed",
    "invalid_request", "too_large",          "unsupported_media_type",
    "timeout",         "not_implemented",    "version_not_supported",
    "unavailable",     "expectation_failed", "internal",
    "other",
};

const char *strangers_reason(size_t index)
{
    return reasons[index];
}

static size_t find_reason(const char *reason)
{
    size_t i = 0;

    while (i < STRANGERS_REASONS - 1 && strcmp(reasons[i], reason) != 0)
        i++;
    return i;
}

static void name_of(const struct peer *peer, char name[STRANGERS_NAME_SIZE])
{
    struct in6_addr address;
    char text[INET6_ADDRSTRLEN];

    if (peer->kind != PEER_TCP) {
        (void)snprintf(name, STRANGERS_NAME_SIZE, "unix");
    } else if (inet_pton(AF_INET6, peer->address, &address) != 1) {
        (void)snprintf(name, STRANGERS_NAME_SIZE, "%s", peer->address);
    } else {
        memset(address.s6_addr + NETWORK_BYTES, 0, sizeof address.s6_addr - NETWORK_BYTES);
        (void)snprintf(name, STRANGERS_NAME_SIZE, "%s/64", inet_ntop(AF_INET6, &address, text, sizeof text));
    }
}

static struct stranger *find(struct strangers *strangers, const char *name)
{
    struct stranger *stranger = strangers->each;

    while (stranger < strangers->each + strangers->count && strcmp(stranger->address, name) != 0)
        stranger++;
    if (stranger < strangers->each + strangers->count)
        return stranger;
    if (strangers->count == STRANGERS_MAX || strcmp(name, others_name) == 0) {
        (void)snprintf(strangers->others.address, STRANGERS_NAME_SIZE, "%s", others_name);
        return &strangers->others;
    }
    strangers->count++;
    *stranger = (struct stranger){0};
    (void)snprintf(stranger->address, STRANGERS_NAME_SIZE, "%s", name);
    return stranger;
}

enum strangers_verdict strangers_note(struct strangers *strangers, const struct peer *peer, const char *reason)
{
    char name[STRANGERS_NAME_SIZE];

    name_of(peer, name);
    struct stranger *stranger = find(strangers, name);
    stranger->seen++;
    if (stranger != &strangers->others && stranger->seen <= STRANGERS_EACH)
        return stranger->seen == STRANGERS_EACH ? STRANGERS_RECORD_LAST : STRANGERS_RECORD;
    stranger->counted++;
    stranger->reasons[find_reason(reason)]++;
    return STRANGERS_COUNTED;
}

const struct stranger *strangers_next(const struct strangers *strangers, const struct stranger *current)
{
    const struct stranger *end = strangers->each + strangers->count;
    const struct stranger *next = current == NULL ? strangers->each : current + 1;

    if (current == &strangers->others)
        return NULL;
    while (next < end && next->counted == 0)
        next++;
    if (next < end)
        return next;
    return strangers->others.counted > 0 ? &strangers->others : NULL;
}

struct stranger strangers_one(const struct peer *peer, const char *reason)
{
    struct stranger stranger = {.counted = 1};

    name_of(peer, stranger.address);
    stranger.reasons[find_reason(reason)] = 1;
    return stranger;
}

void strangers_count_again(struct strangers *strangers, const struct stranger *stranger)
{
    struct stranger *now = find(strangers, stranger->address);

    now->counted += stranger->counted;
    for (size_t i = 0; i < STRANGERS_REASONS; i++)
        now->reasons[i] += stranger->reasons[i];
}

void strangers_clear(struct strangers *strangers)
{
    strangers->count = 0;
    strangers->others = (struct stranger){0};
}
