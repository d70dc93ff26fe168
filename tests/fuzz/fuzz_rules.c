/*
 * Rules as people write them, one per line: `+` allows, `-` denies, any other line is a name or an address to be
 * checked. What is refused says why; what is denied is never allowed, and nothing leads to this machine.
 */
#include "airlock/rules.h"
#include "fuzz.h"

#include <string.h>

static void check(const struct rules *rules, const char *text)
{
    char name[NAME_SIZE];
    char words[600];
    struct address address;
    const char *why = NULL;

    if (address_parse(text, strlen(text), &address) == 0) {
        struct rules_verdict verdict = rules_check_address(rules, &address, 443);
        MUST(!(verdict.allowed && address_is_loopback(&address)));
        MUST(verdict.allowed == (verdict.reason == RULES_MATCHED && verdict.allowed));
        return;
    }
    if (name_normalize(text, strlen(text), name, &why) < 0) {
        MUST(why != NULL);
        return;
    }
    MUST(strlen(name) <= NAME_MAX_BYTES);
    struct rules_verdict any = rules_check_name(rules, name, 0);
    struct rules_verdict one = rules_check_name(rules, name, 443);
    MUST(any.allowed || !one.allowed);
    MUST(!(one.allowed && strcmp(name, "localhost") == 0));
    rules_explain(&one, name, 443, words, sizeof words);
    MUST(words[0] != '\0');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rules *rules = NULL;
    struct error err = {0};

    if (size == 0 || size > 8192)
        return 0;
    MUST(rules_new((enum rules_mode)(data[0] % RULES_MODES), &rules, &err) == 0);
    for (size_t at = 0; at < size;) {
        char line[512] = "";
        const uint8_t *end = memchr(data + at, '\n', size - at);
        size_t length = end != NULL ? (size_t)(end - data) - at : size - at;
        memcpy(line, data + at, length < sizeof line ? length : sizeof line - 1);
        at += length + 1;
        if (line[0] != '+' && line[0] != '-')
            check(rules, line);
        else if (rules_add(rules, line[0] == '+' ? RULES_ALLOW : RULES_DENY, RULES_OF_SANDBOX, line + 1, &err) < 0)
            MUST(err.message[0] != '\0');
    }
    rules_free(rules);
    return 0;
}
