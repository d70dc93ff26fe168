#include "airlock/rules.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct rule {
    enum rules_action action;
    enum rules_scope scope;
    bool is_wildcard;
    bool is_address;
    uint16_t port; /* 0: any */
    struct address address;
    const char *name;
    char *text;
};

struct rules {
    enum rules_mode mode;
    struct rule *list;
    size_t count;
    size_t room;
};

int rules_new(enum rules_mode mode, struct rules **ret_rules, struct error *err)
{
    struct rules *rules = calloc(1, sizeof *rules);

    if (rules == NULL)
        return error_set(err, ERROR_SYSTEM, ENOMEM, "making a list of rules");
    rules->mode = mode;
    *ret_rules = rules;
    return 0;
}

void rules_free(struct rules *rules)
{
    if (rules == NULL)
        return;
    for (size_t i = 0; i < rules->count; i++)
        free(rules->list[i].text);
    free(rules->list);
    free(rules);
}

enum rules_mode rules_mode(const struct rules *rules)
{
    return rules->mode;
}

static int bad(struct error *err, const char *text, size_t at, const char *why)
{
    return error_set(err, ERROR_INVALID, 0, "rule '%.80s', at character %zu: %s", text, at + 1, why);
}

/* The text between the star and the port is a name, or an address. */
static int parse_host(const char *text, size_t start, size_t length, struct rule *rule, char name[NAME_SIZE],
                      struct error *err)
{
    const char *why = "";

    if (address_parse(text + start, length, &rule->address) == 0) {
        if (rule->is_wildcard)
            return bad(err, text, start, "an address has nothing below it");
        rule->is_address = true;
        name[0] = '\0';
        return 0;
    }
    if (name_normalize(text + start, length, name, &why) < 0)
        return bad(err, text, start, why);
    if (strcmp(name, RULES_HOST) == 0 && (rule->port == 0 || rule->is_wildcard))
        return bad(err, text, start, "a service of this machine is allowed by its port: " RULES_HOST ":PORT");
    return 0;
}

static int parse(const char *text, struct rule *rule, char name[NAME_SIZE], struct error *err)
{
    size_t total = strlen(text);
    struct address whole;
    size_t start = 0;
    size_t length = total;

    if (total == 0)
        return error_set(err, ERROR_INVALID, 0, "a rule is empty");
    if (total > RULES_TEXT_MAX)
        return bad(err, text, RULES_TEXT_MAX, "it is too long");
    if (strcmp(text, "*") == 0)
        return bad(err, text, 0, "a star needs something behind it, as in *.example.com; mode full allows all");
    if (strstr(text, "://") != NULL)
        return bad(err, text, (size_t)(strstr(text, "://") - text), "it is a URL; write only the name of the host");
    if (strchr(text, '/') != NULL)
        return bad(err, text, (size_t)(strchr(text, '/') - text), "neither paths nor ranges of addresses can be given");
    rule->is_wildcard = total > 2 && text[0] == '*' && text[1] == '.';
    size_t skipped = rule->is_wildcard ? 2 : 0;
    /* An IPv6 address without brackets is nothing but that. */
    if (!rule->is_wildcard && address_parse(text, total, &whole) == 0)
        return parse_host(text, 0, total, rule, name, err);
    if (name_split(text + skipped, total - skipped, &start, &length, &rule->port) < 0) {
        const char *colon = strrchr(text, ':');
        return bad(err, text, colon != NULL ? (size_t)(colon - text) : 0, "the port is not a number from 1 to 65535");
    }
    return parse_host(text, skipped + start, length, rule, name, err);
}

static int make_room(struct rules *rules)
{
    size_t room = rules->room == 0 ? 16 : rules->room * 2;

    if (rules->count < rules->room)
        return 0;
    struct rule *list = reallocarray(rules->list, room, sizeof *list);
    if (list == NULL)
        return -ENOMEM;
    rules->list = list;
    rules->room = room;
    return 0;
}

int rules_add(struct rules *rules, enum rules_action action, enum rules_scope scope, const char *text,
              struct error *err)
{
    struct rule rule = {.action = action, .scope = scope};
    char name[NAME_SIZE];
    int r = parse(text, &rule, name, err);

    if (r < 0)
        return r;
    if (rules->count == RULES_MAX)
        return error_set(err, ERROR_LIMIT, 0, "there can be at most %d rules", RULES_MAX);
    size_t length = strlen(text);
    if (make_room(rules) == 0)
        rule.text = malloc(length + strlen(name) + 2);
    if (rule.text == NULL)
        return error_set(err, ERROR_SYSTEM, ENOMEM, "adding a rule");
    memcpy(rule.text, text, length + 1);
    memcpy(rule.text + length + 1, name, strlen(name) + 1);
    rule.name = rule.text + length + 1;
    rules->list[rules->count++] = rule;
    return 0;
}

/* Asked for any port, a rule for one allows something, but denies only a part. */
static bool fits_port(const struct rule *rule, uint16_t port)
{
    return rule->port == 0 || rule->port == port || (port == 0 && rule->action == RULES_ALLOW);
}

static bool fits_name(const struct rule *rule, const char *name)
{
    if (rule->is_address)
        return false;
    return rule->is_wildcard ? name_is_below(name, rule->name) : strcmp(name, rule->name) == 0;
}

static const struct rule *find_name(const struct rules *rules, enum rules_action action, const char *name,
                                    uint16_t port)
{
    for (size_t i = 0; i < rules->count; i++) {
        const struct rule *rule = &rules->list[i];
        if (rule->action == action && fits_port(rule, port) && fits_name(rule, name))
            return rule;
    }
    return NULL;
}

static const struct rule *find_address(const struct rules *rules, enum rules_action action,
                                       const struct address *address, uint16_t port)
{
    for (size_t i = 0; i < rules->count; i++) {
        const struct rule *rule = &rules->list[i];
        if (rule->action == action && fits_port(rule, port) && rule->is_address &&
            address_equal(&rule->address, address))
            return rule;
    }
    return NULL;
}

static struct rules_verdict by_rule(const struct rule *rule)
{
    return (struct rules_verdict){
        .allowed = rule->action == RULES_ALLOW, .reason = RULES_MATCHED, .scope = rule->scope, .rule = rule->text};
}

static struct rules_verdict by_reason(bool allowed, enum rules_reason reason)
{
    return (struct rules_verdict){.allowed = allowed, .reason = reason, .rule = ""};
}

static bool is_local(const char *name)
{
    return strcmp(name, "localhost") == 0 || name_is_below(name, "localhost");
}

struct rules_verdict rules_check_name(const struct rules *rules, const char *name, uint16_t port)
{
    const struct rule *rule = find_name(rules, RULES_DENY, name, port);

    if (rule != NULL)
        return by_rule(rule);
    if (rules->mode == RULES_NONE)
        return by_reason(false, RULES_CLOSED);
    if (is_local(name))
        return by_reason(false, RULES_LOCAL);
    rule = find_name(rules, RULES_ALLOW, name, port);
    if (rule != NULL && !(rule->is_wildcard && strcmp(name, RULES_HOST) == 0))
        return by_rule(rule);
    if (rules->mode == RULES_FULL && strcmp(name, RULES_HOST) != 0)
        return by_reason(true, RULES_OPEN);
    return by_reason(false, RULES_UNLISTED);
}

struct rules_verdict rules_check_address(const struct rules *rules, const struct address *address, uint16_t port)
{
    const struct rule *rule = find_address(rules, RULES_DENY, address, port);

    if (rule != NULL)
        return by_rule(rule);
    if (rules->mode == RULES_NONE)
        return by_reason(false, RULES_CLOSED);
    if (address_is_loopback(address))
        return by_reason(false, RULES_LOCAL);
    rule = find_address(rules, RULES_ALLOW, address, port);
    return rule != NULL ? by_rule(rule) : by_reason(false, RULES_NOT_NAMED);
}

void rules_explain(const struct rules_verdict *verdict, const char *name, uint16_t port, char *text, size_t size)
{
    static const char *const scopes[RULES_SCOPES] = {"for every sandbox", "of this sandbox's profile",
                                                     "of this sandbox"};
    char target[NAME_SIZE + 10];

    bool is_ipv6 = strchr(name, ':') != NULL;

    if (port != 0)
        (void)snprintf(target, sizeof target, is_ipv6 ? "[%.*s]:%u" : "%.*s:%u", NAME_MAX_BYTES, name, port);
    else
        (void)snprintf(target, sizeof target, "%.*s", NAME_MAX_BYTES, name);
    switch (verdict->reason) {
    case RULES_MATCHED:
        (void)snprintf(text, size, "%s is %s by the rule '%s' %s", target, verdict->allowed ? "allowed" : "denied",
                       verdict->rule, scopes[verdict->scope]);
        break;
    case RULES_UNLISTED:
        (void)snprintf(text, size, "%s is not allowed: no rule names it; the rule '%s' would allow it", target, target);
        break;
    case RULES_CLOSED:
        (void)snprintf(text, size, "%s is not allowed: this sandbox has no network", target);
        break;
    case RULES_OPEN:
        (void)snprintf(text, size, "%s is allowed: this sandbox may reach every name", target);
        break;
    case RULES_LOCAL:
        (void)snprintf(text, size,
                       "%s is the sandbox itself; a service of the machine around it is reached as " RULES_HOST
                       ":PORT, when a rule says so",
                       target);
        break;
    case RULES_MACHINE:
        (void)snprintf(text, size,
                       "%s is the machine around the sandbox; a service of it is reached as " RULES_HOST
                       ":PORT, when a rule says so",
                       target);
        break;
    case RULES_NOT_NAMED:
        (void)snprintf(text, size,
                       "the address %s is not allowed: hosts are reached by name; the rule '%s' would allow it", target,
                       target);
        break;
    }
}
