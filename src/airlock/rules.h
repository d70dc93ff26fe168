/*
 * rules: what a sandbox may reach, by name and port. Pure.
 *
 * A rule is NAME, *.SUFFIX (what is below it, not itself), either with :PORT, or an address. It allows or denies, for
 * one sandbox, for its profile, or for all. What is denied anywhere is denied. `localhost` and loopback addresses mean
 * the sandbox itself and match nothing outside; a service of this machine's is host.hutch:PORT, and only a rule with
 * just that name and port leads to it. A list is made once and then only read: whoever changes it makes another.
 */
#pragma once

#include "airlock/address.h"
#include "airlock/name.h"

enum { RULES_MAX = 4096, RULES_TEXT_MAX = 320 };

#define RULES_HOST "host.hutch"

enum rules_mode { RULES_NONE, RULES_ALLOWLIST, RULES_FULL, RULES_MODES };
enum rules_action { RULES_ALLOW, RULES_DENY };
enum rules_scope { RULES_OF_ALL, RULES_OF_PROFILE, RULES_OF_SANDBOX, RULES_SCOPES };

enum rules_reason {
    RULES_MATCHED,   /* the rule decided */
    RULES_UNLISTED,  /* no rule allows it */
    RULES_CLOSED,    /* mode none */
    RULES_OPEN,      /* mode full */
    RULES_LOCAL,     /* localhost and the like */
    RULES_NOT_NAMED, /* an address, which only a rule could allow */
    RULES_MACHINE,   /* an address of this machine: who asks decides that, no list can */
};

struct rules_verdict {
    bool allowed;
    enum rules_reason reason;
    enum rules_scope scope; /* of the rule */
    const char *rule;       /* as it was written, "" when none decided; lives as long as the list */
};

struct rules;

_must_use_ int rules_new(enum rules_mode mode, struct rules **ret_rules, struct error *err);
void rules_free(struct rules *rules);
enum rules_mode rules_mode(const struct rules *rules);

/* One more. -EINVAL, and the error says which rule, where in it and why. */
_must_use_ int rules_add(struct rules *rules, enum rules_action action, enum rules_scope scope, const char *text,
                         struct error *err);

/* `name` is normalized. Port 0 asks whether there is any port at all. */
struct rules_verdict rules_check_name(const struct rules *rules, const char *name, uint16_t port);
struct rules_verdict rules_check_address(const struct rules *rules, const struct address *address, uint16_t port);

/* The verdict in plain words, and which rule would change it. */
void rules_explain(const struct rules_verdict *verdict, const char *name, uint16_t port, char *text, size_t size);
