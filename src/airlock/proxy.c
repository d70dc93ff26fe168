#include "airlock/proxy.h"

#include <string.h>
#include <strings.h>

enum { LINE_MOST = 16384, HEADERS_MOST = 40960, HEAD_MOST = 65536, PORT_HTTP = 80 };

void proxy_init(struct proxy *proxy)
{
    static const struct http1_limits limits = {LINE_MOST, HEADERS_MOST};

    *proxy = (struct proxy){.head = buf_init(HEAD_MOST), .why = ""};
    http1_init(&proxy->http1, &limits);
    proxy->http1.any_method = true;
}

void proxy_release(struct proxy *proxy)
{
    buf_release(&proxy->head);
    http1_release(&proxy->http1);
}

static int refuse(struct proxy *proxy, unsigned status, const char *why)
{
    proxy->status = status;
    proxy->why = why;
    return -EBADMSG;
}

static int take_authority(struct proxy *proxy, const char *text, size_t length)
{
    size_t start = 0;
    size_t host = 0;
    const char *why = "";

    if (name_split(text, length, &start, &host, &proxy->port) < 0)
        return refuse(proxy, 400, "the host and port that were asked for are malformed");
    proxy->is_address = address_parse(text + start, host, &proxy->address) == 0;
    if (proxy->is_address)
        address_format(&proxy->address, proxy->name);
    else if (name_normalize(text + start, host, proxy->name, &why) < 0)
        return refuse(proxy, 400, why);
    return 0;
}

/* The Host that came beside an absolute target must mean the same. */
static int check_host(struct proxy *proxy)
{
    const char *text = proxy->http1.host;
    char name[NAME_SIZE];
    const char *why = "";
    size_t start = 0;
    size_t length = 0;
    uint16_t port = 0;

    if (text[0] == '\0' || proxy->is_address)
        return 0;
    if (name_split(text, strlen(text), &start, &length, &port) < 0 ||
        name_normalize(text + start, length, name, &why) < 0 || strcmp(name, proxy->name) != 0)
        return refuse(proxy, 400, "the Host header and the URL name two hosts");
    return 0;
}

/* Meant for the next hop, which is us (RFC 9110, 7.6.1), or written anew. */
static bool is_left_out(const struct headers *headers, const char *name)
{
    static const char *const ours[] = {"Host",       "Connection", "Proxy-Connection", "Proxy-Authorization",
                                       "Keep-Alive", "TE",         "Upgrade",          "Proxy-Authenticate"};

    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++) {
        if (strcasecmp(name, ours[i]) == 0)
            return true;
    }
    /* What frames the body stays, whatever Connection says. */
    if (strcasecmp(name, "Content-Length") == 0 || strcasecmp(name, "Transfer-Encoding") == 0)
        return false;
    return headers_have_word(headers, "Connection", name);
}

static int write_head(struct proxy *proxy, const char *authority, size_t length, const char *path)
{
    struct headers headers;
    struct buf *head = &proxy->head;

    http1_headers(&proxy->http1, &headers);
    int r = buf_printf(head, "%s %s%s HTTP/1.1\r\nHost: %.*s\r\n", http1_method_name(&proxy->http1),
                       path[0] == '/' ? "" : "/", path, (int)length, authority);
    for (size_t i = 0; r == 0 && i < headers.count; i++) {
        if (!is_left_out(&headers, headers.items[i].name))
            r = buf_printf(head, "%s: %s\r\n", headers.items[i].name, headers.items[i].value);
    }
    if (r == 0)
        r = buf_printf(head, "Connection: close\r\n\r\n");
    return r < 0 ? refuse(proxy, 431, "the headers are too large") : 0;
}

static int take_absolute(struct proxy *proxy)
{
    const char *target = proxy->http1.target;

    if (strncasecmp(target, "https://", 8) == 0)
        return refuse(proxy, 400, "https goes through a proxy with CONNECT");
    if (strncasecmp(target, "http://", 7) != 0)
        return refuse(proxy, 400, "this is a proxy: it is asked with CONNECT HOST:PORT or with http://HOST/PATH");
    const char *authority = target + 7;
    size_t length = strcspn(authority, "/?#");
    const char *path = authority + length;
    if (memchr(authority, '@', length) != NULL)
        return refuse(proxy, 400, "the URL has a user in it");
    if (strchr(path, '#') != NULL)
        return refuse(proxy, 400, "the URL has a fragment");
    int r = take_authority(proxy, authority, length);
    if (r == 0)
        r = check_host(proxy);
    if (proxy->port == 0)
        proxy->port = PORT_HTTP;
    return r < 0 ? r : write_head(proxy, authority, length, path);
}

static int take_connect(struct proxy *proxy)
{
    if (proxy->http1.is_chunked || proxy->http1.content_length > 0)
        return refuse(proxy, 400, "CONNECT has no body");
    int r = take_authority(proxy, proxy->http1.target, strlen(proxy->http1.target));
    return r == 0 && proxy->port == 0 ? refuse(proxy, 400, "CONNECT needs a port") : r;
}

static enum proxy_outcome take_head(struct proxy *proxy)
{
    proxy->is_connect = strcmp(http1_method_name(&proxy->http1), "CONNECT") == 0;
    return (proxy->is_connect ? take_connect(proxy) : take_absolute(proxy)) < 0 ? PROXY_BAD : PROXY_ASKED;
}

enum proxy_outcome proxy_read(struct proxy *proxy, const uint8_t *data, size_t length, size_t *ret_used)
{
    const uint8_t *at = data;
    struct http1_event event;

    http1_next(&proxy->http1, &at, &length, &event);
    *ret_used = (size_t)(at - data);
    if (event.type == HTTP1_BAD) {
        (void)refuse(proxy, event.status, event.reason);
        return PROXY_BAD;
    }
    return event.type == HTTP1_HEAD ? take_head(proxy) : PROXY_MORE;
}

int proxy_read_body(struct proxy *proxy, const uint8_t *data, size_t length, size_t *ret_used)
{
    const uint8_t *at = data;
    struct http1_event event = {.type = HTTP1_BODY};

    while (event.type != HTTP1_MORE && event.type != HTTP1_END && !proxy->has_ended) {
        http1_next(&proxy->http1, &at, &length, &event);
        if (event.type == HTTP1_BAD)
            return refuse(proxy, event.status, event.reason);
    }
    proxy->has_ended = proxy->has_ended || event.type == HTTP1_END;
    *ret_used = (size_t)(at - data);
    return 0;
}
