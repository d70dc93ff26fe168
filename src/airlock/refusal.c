#include "airlock/refusal.h"

#include "gateway/net/http.h"

#include <string.h>

int refusal_http(struct buf *buf, unsigned status, const char *why)
{
    static const char front[] = "Hutch: ";

    return buf_printf(buf,
                      "HTTP/1.1 %u %s\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: %zu\r\n"
                      "Connection: close\r\n\r\n%s%s\n",
                      status, http_status_text(status), sizeof front - 1 + strlen(why) + 1, front, why);
}

void refusal_tls(enum refusal_alert alert, uint8_t record[REFUSAL_TLS_SIZE])
{
    const uint8_t bytes[REFUSAL_TLS_SIZE] = {21, 3, 3, 0, 2, 2, (uint8_t)alert};

    memcpy(record, bytes, sizeof bytes);
}
