/*
 * proxy: what a client asks of the HTTP proxy: CONNECT, or a request with an absolute target. Pure.
 *
 * One request per connection. Of one with an absolute target the head is written anew, as the server wants it, without
 * what was meant for the proxy; its body goes on as it comes, up to its end and not a byte further.
 */
#pragma once

#include "airlock/address.h"
#include "airlock/name.h"
#include "gateway/net/http1.h"

enum proxy_outcome {
    PROXY_MORE,
    PROXY_ASKED, /* the fields below say for what */
    PROXY_BAD,
};

struct proxy {
    /* After PROXY_ASKED. */
    bool is_connect;
    bool is_address;
    char name[NAME_SIZE]; /* normalized, or the address as text */
    struct address address;
    uint16_t port;
    struct buf head; /* what the server is sent first; empty for CONNECT */
    /* After PROXY_BAD. */
    unsigned status;
    const char *why;

    /* Its own. */
    struct http1 http1;
    bool has_ended;
};

void proxy_init(struct proxy *proxy);
void proxy_release(struct proxy *proxy);

/* `*ret_used` bytes belong to the head. */
enum proxy_outcome proxy_read(struct proxy *proxy, const uint8_t *data, size_t length, size_t *ret_used);

/*
 * After PROXY_ASKED for an absolute target: how many of the bytes that follow the head are its body. -EBADMSG: they
 * can't be. With the body's end has_ended is set.
 */
_must_use_ int proxy_read_body(struct proxy *proxy, const uint8_t *data, size_t length, size_t *ret_used);
