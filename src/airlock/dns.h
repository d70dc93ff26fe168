/*
 * dns: questions that sandboxes ask, and the answers they get. Pure.
 *
 * Only what every resolver asks is understood: one question of class IN, opcode QUERY, perhaps with EDNS. The answer is
 * made from the policy, never from somebody else's, so none is ever parsed here. What can't be understood is answered
 * with FORMERR or NOTIMP when there is at least an id to answer to.
 */
#pragma once

#include "airlock/name.h"

enum {
    DNS_HEADER = 12,
    DNS_ANSWER_MAX = 512, /* every answer of ours fits */
    DNS_QUERY_MAX = 4096, /* over UDP and TCP alike */
    DNS_A = 1,
    DNS_AAAA = 28,
    DNS_ANY = 255,
};

enum dns_code {
    DNS_OK = 0,
    DNS_FORMERR = 1,
    DNS_SERVFAIL = 2,
    DNS_NXDOMAIN = 3,
    DNS_NOTIMP = 4,
    DNS_REFUSED = 5,
};

struct dns_query {
    uint16_t id;
    uint16_t flags;
    bool has_question; /* the rest is only there then */
    uint16_t type;
    uint16_t class;
    bool has_edns;
    size_t question_length;              /* as it came, name, type and class */
    uint8_t question[NAME_SIZE + 1 + 4]; /* to be repeated: some clients send 0x20-mixed names and compare them */
    char name[NAME_SIZE];                /* in lower case; what is no name of a host, with a star for each odd byte */
    bool is_host;                        /* the name is one of a host */
};

/* DNS_OK; any other code is to be answered. -EBADMSG: nothing can be answered. */
_must_use_ int dns_parse(const uint8_t *data, size_t length, struct dns_query *ret_query);

/* An address of the right family or, with none, nothing: NODATA. The answer's length; DNS_ANSWER_MAX fits. */
struct dns_answer {
    enum dns_code code;
    const uint8_t *address; /* 4 bytes for A, 16 for AAAA; NULL: none */
    uint32_t ttl;
};
size_t dns_build(const struct dns_query *query, const struct dns_answer *answer, uint8_t data[DNS_ANSWER_MAX]);
