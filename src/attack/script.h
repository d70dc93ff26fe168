/*
 * script: attempts in Python, for sandboxes in which hutch-attack itself can't be executed: those with a list of
 * programs
 * (--only), of which python3 is the only one.
 *
 * An attack's script runs after this one, which gives it attempt(what, act, *refusals): `act` is called in a child, and
 * what came of it is said in the words of attempt.h. Files it makes belong in `folder`, which is removed in the end.
 */
#pragma once

extern const char script_begin[];

/* What this machine has not got without which no script can be tried, or NULL. */
const char *script_lacks(void);
