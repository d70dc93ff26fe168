/*
 * airlock_world: an airlock, a machine with a server and a resolver, and a sandbox, in namespaces of their own; the
 * test is in the places of keeper, gateway and sandbox.
 */
#pragma once

#include "../unit/test.h"
#include "wire/wire.h"

enum { SANDBOX = 5, FLOOD = 2, HOLD = 3, WAIT_MS = 5000, NONE = 0, ALLOWLIST = 1 };

struct world {
    int keeper_fd;
    int client_fd;
    pid_t airlock;
    pid_t server;
    pid_t resolver;
};

void set_airlock(const char *path);

/* A namespace with a loopback interface, in which this process goes on. */
void bring_up(void);

/* The machine's namespace with server, resolver and airlock, then the sandbox's, in which the test goes on. */
struct world begin(void);
void end(struct world *world);

/* The next message of the airlock's: any, or one of that type. Its texts hold until the next. */
struct wire_message hear_any(const struct world *world);
struct wire_message hear(const struct world *world, enum wire_type type);

/* The detail of the answer: "" when they are in force. */
const char *rule(const struct world *world, struct wire_rules rules, const char *allow);

/* The server: it echoes, sends without an end (FLOOD), or does neither (HOLD), as the first byte says. */
const char *own_service(void);
uint16_t own_port(void);

int dial_proxy(void);
/* CONNECT: the connection, and the status that was answered. */
int ask_for(const char *target, unsigned *ret_status);
int ask(unsigned *ret_status);
bool echoes(int fd);

/* A socket that asks the sandbox's resolver, and a question for the A record of NAME.test. */
int dial_resolver(void);
void send_question(int fd, uint8_t id, const char *name);
