/*
 * What a client sends to the HTTP proxy, whole and in pieces. A head that is written anew is read again, as the server
 * will: one request to the host that was asked for, and no trace of what was meant for the proxy.
 */
#include "airlock/proxy.h"
#include "fuzz.h"

#include <string.h>

static enum proxy_outcome feed(struct proxy *proxy, const uint8_t *data, size_t size, size_t piece, size_t *ret_used)
{
    enum proxy_outcome outcome = PROXY_MORE;
    size_t at = 0;

    proxy_init(proxy);
    while (at < size && outcome == PROXY_MORE) {
        size_t used = 0;
        size_t here = size - at < piece ? size - at : piece;
        outcome = proxy_read(proxy, data + at, here, &used);
        MUST(used <= here && (used > 0 || outcome != PROXY_MORE));
        at += used;
    }
    *ret_used = at;
    return outcome;
}

static void check_head(const struct proxy *proxy)
{
    static struct http1 http1;
    static const struct http1_limits limits = {16384, 40960};
    static struct headers headers;
    const uint8_t *at = proxy->head.data;
    size_t left = proxy->head.length;
    struct http1_event event;

    http1_init(&http1, &limits);
    http1.any_method = true;
    http1_next(&http1, &at, &left, &event);
    MUST(event.type == HTTP1_HEAD);
    http1_headers(&http1, &headers);
    MUST(http1.target[0] == '/' && left == 0);
    MUST(headers_find(&headers, "Proxy-Authorization") == NULL);
    MUST(!http1.wants_keep_alive);
    http1_release(&http1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct proxy whole;
    static struct proxy pieces;
    size_t used[2] = {0};
    size_t body = 0;

    if (size > 1 << 15)
        return 0;
    enum proxy_outcome outcome = feed(&whole, data, size, size > 0 ? size : 1, &used[0]);
    MUST(outcome == feed(&pieces, data, size, 1 + size % 5, &used[1]));
    MUST((outcome == PROXY_BAD) == (whole.why[0] != '\0'));
    if (outcome == PROXY_ASKED) {
        MUST(used[0] == used[1]);
        MUST(strcmp(whole.name, pieces.name) == 0 && whole.port == pieces.port && whole.port != 0);
        MUST(whole.is_connect == (whole.head.length == 0));
        if (!whole.is_connect) {
            check_head(&whole);
            if (proxy_read_body(&whole, data + used[0], size - used[0], &body) == 0)
                MUST(body <= size - used[0]);
        }
    }
    proxy_release(&whole);
    proxy_release(&pieces);
    return 0;
}
