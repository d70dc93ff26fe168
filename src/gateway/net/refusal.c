#include "gateway/net/refusal.h"

#include <string.h>

static const struct {
    unsigned status;
    const char *code;
} codes[] = {
    {404, "not_found"},
    {405, "method_not_allowed"},
    {408, "timeout"},
    {413, "too_large"},
    {414, "too_large"},
    {415, "unsupported_media_type"},
    {417, "expectation_failed"},
    {429, "too_many"},
    {431, "too_large"},
    {500, "internal"},
    {501, "not_implemented"},
    {503, "unavailable"},
    {505, "version_not_supported"},
};

const char *refusal_code(unsigned status)
{
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        if (codes[i].status == status)
            return codes[i].code;
    }
    return "invalid_request";
}

static int put_pair(struct buf *buf, const char *front, const char *value)
{
    int r = buf_append(buf, front, strlen(front));

    return r == 0 ? buf_append_json(buf, value, strlen(value)) : r;
}

int refusal_write(struct buf *buf, const char *code, const char *message, const char *request_id)
{
    int r = put_pair(buf, "{\"error\":{\"code\":", code);

    if (r == 0)
        r = put_pair(buf, ",\"message\":", message);
    if (r == 0)
        r = put_pair(buf, ",\"request_id\":", request_id);
    return r == 0 ? buf_append(buf, "}}\n", 3) : r;
}
