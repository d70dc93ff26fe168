/*
 * A datagram that a sandbox sends to the resolver. Whatever can be answered is, in bounds, and the answer is never
 * taken for a question.
 */
#include "airlock/dns.h"
#include "fuzz.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint8_t address[16] = {1};
    struct dns_query query;
    struct dns_query again;
    uint8_t answer[DNS_ANSWER_MAX];
    int code = dns_parse(data, size, &query);

    if (code < 0)
        return 0;
    MUST(strlen(query.name) <= NAME_MAX_BYTES);
    MUST(code != DNS_OK || query.has_question);
    struct dns_answer with = {.code = (enum dns_code)code,
                              .address = query.type == DNS_A || query.type == DNS_AAAA ? address : NULL,
                              .ttl = 60};
    size_t length = dns_build(&query, &with, answer);
    MUST(length >= DNS_HEADER && length <= DNS_ANSWER_MAX);
    MUST(memcmp(answer, data, 2) == 0);
    MUST(dns_parse(answer, length, &again) < 0);
    return 0;
}
