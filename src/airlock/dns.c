#include "airlock/dns.h"

#include <string.h>

enum {
    FLAG_RESPONSE = 0x8000,
    FLAG_OPCODE = 0x7800,
    FLAG_AUTHORITATIVE = 0x0400,
    FLAG_TRUNCATED = 0x0200,
    FLAG_WANTED = 0x0100,    /* recursion desired */
    FLAG_AVAILABLE = 0x0080, /* recursion available */
    FLAG_CHECKING_OFF = 0x0010,
    CLASS_IN = 1,
    TYPE_OPT = 41,
    EDNS_SIZE = 1232,
    POINTER_TO_QUESTION = 0xc000 | DNS_HEADER,
};

static uint16_t get16(const uint8_t *at)
{
    return (uint16_t)(at[0] << 8 | at[1]);
}

static uint8_t *put16(uint8_t *at, unsigned value)
{
    at[0] = (uint8_t)(value >> 8);
    at[1] = (uint8_t)value;
    return at + 2;
}

static uint8_t *put32(uint8_t *at, uint32_t value)
{
    return put16(put16(at, value >> 16), value & 0xffff);
}

/* A question's name is never compressed: there is nothing before it to point to (RFC 1035, 4.1.4). */
static int take_name(const uint8_t *data, size_t length, size_t *at, struct dns_query *query)
{
    const char *why = "";
    char text[NAME_SIZE];
    size_t used = 0;

    for (;;) {
        if (*at >= length || data[*at] > NAME_LABEL_MAX || *at + data[*at] + 1 > length)
            return -EINVAL;
        size_t label = data[(*at)++];
        if (label == 0)
            break;
        if (used + label + 1 > NAME_MAX_BYTES)
            return -EINVAL;
        if (used > 0)
            text[used++] = '.';
        for (size_t i = 0; i < label; i++) {
            uint8_t c = data[(*at)++];
            if (c <= ' ' || c >= 0x7f || c == '.')
                c = '*';
            text[used++] = (char)c;
        }
    }
    query->is_host = name_normalize(text, used, query->name, &why) == 0;
    if (!query->is_host) {
        memcpy(query->name, text, used);
        query->name[used] = '\0';
    }
    return 0;
}

/* OPT stands in the additional section; its name is the root. Anything else there is not looked at. */
static bool has_edns(const uint8_t *data, size_t length, size_t at, unsigned records)
{
    return records > 0 && at + 11 <= length && data[at] == 0 && get16(data + at + 1) == TYPE_OPT;
}

int dns_parse(const uint8_t *data, size_t length, struct dns_query *ret_query)
{
    struct dns_query *query = ret_query;
    size_t at = DNS_HEADER;

    memset(query, 0, sizeof *query);
    if (length < DNS_HEADER || length > DNS_QUERY_MAX)
        return -EBADMSG;
    query->id = get16(data);
    query->flags = get16(data + 2);
    if ((query->flags & FLAG_RESPONSE) != 0)
        return -EBADMSG; /* answering answers would go round in circles */
    if ((query->flags & FLAG_OPCODE) != 0)
        return DNS_NOTIMP;
    /* One question, and nothing where answers would be. */
    if ((query->flags & FLAG_TRUNCATED) != 0 || get16(data + 4) != 1 || get16(data + 6) != 0 || get16(data + 8) != 0)
        return DNS_FORMERR;
    if (take_name(data, length, &at, query) < 0 || at + 4 > length || at + 4 - DNS_HEADER > sizeof query->question)
        return DNS_FORMERR;
    query->type = get16(data + at);
    query->class = get16(data + at + 2);
    at += 4;
    query->question_length = at - DNS_HEADER;
    memcpy(query->question, data + DNS_HEADER, query->question_length);
    query->has_question = true;
    query->has_edns = has_edns(data, length, at, get16(data + 10));
    return query->class == CLASS_IN ? DNS_OK : DNS_REFUSED;
}

size_t dns_build(const struct dns_query *query, const struct dns_answer *answer, uint8_t data[DNS_ANSWER_MAX])
{
    bool has_record = answer->code == DNS_OK && answer->address != NULL && query->has_question;
    size_t size = query->type == DNS_A ? 4 : 16;
    uint8_t *at = put16(data, query->id);

    at = put16(at, FLAG_RESPONSE | FLAG_AVAILABLE | FLAG_AUTHORITATIVE | (unsigned)answer->code |
                       (query->flags & (FLAG_OPCODE | FLAG_WANTED | FLAG_CHECKING_OFF)));
    at = put16(at, query->has_question ? 1 : 0);
    at = put16(at, has_record ? 1 : 0);
    at = put16(at, 0);
    at = put16(at, query->has_edns ? 1 : 0);
    if (query->has_question) {
        memcpy(at, query->question, query->question_length);
        at += query->question_length;
    }
    if (has_record) {
        at = put16(at, POINTER_TO_QUESTION);
        at = put16(at, query->type);
        at = put16(at, CLASS_IN);
        at = put32(at, answer->ttl);
        at = put16(at, (unsigned)size);
        memcpy(at, answer->address, size);
        at += size;
    }
    if (query->has_edns) {
        *at++ = 0;
        at = put16(at, TYPE_OPT);
        at = put16(at, EDNS_SIZE);
        at = put32(at, 0);
        at = put16(at, 0);
    }
    return (size_t)(at - data);
}
