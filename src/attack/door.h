/*
 * door: a daemon of our own, which attacks on the service are made on: the `hutchd` that lies beside `hutch`, on a
 * state folder and a free port of its own, with limits low enough to be reached. Opened once and used by all of them.
 *
 * AS ROOT. Looks at the daemon from outside: it must go on, answer in its usual time, take no memory and keep no
 * connection, and its log must have no line that it did not mean to write.
 */
#pragma once

#include "attack/ground.h"
#include "attack/neighbour.h"

enum { DOOR_VARIABLES = 7, DOOR_HARM_SIZE = 240, DOOR_SECRET_SIZE = 40 };

struct door {
    pid_t pid; /* of hutchd, 0: it is not open */
    pid_t gateway;
    struct neighbour pulse; /* asks /healthz all the time */
    char program[GROUND_PATH_SIZE + 64];
    char folder[GROUND_PATH_SIZE + 16]; /* the daemon's state, configuration and log are in it */
    char key[DOOR_SECRET_SIZE];
    char password[DOOR_SECRET_SIZE];
    char variables[DOOR_VARIABLES][GROUND_PATH_SIZE + 96]; /* HUTCH_ATTACK_DOOR_...: what attempts know */
    size_t log_start;                                      /* what was written before is no longer looked at */
    uint64_t memory_bytes;
    size_t descriptors;
    char unable[DOOR_HARM_SIZE]; /* why it can't be opened */
};

#define DOOR_EMPTY ((struct door){.pulse = {.to_fd = -1, .from_fd = -1}})

/* ERROR_NOT_FOUND when no hutchd lies beside `hutch`. */
_must_use_ int door_open(struct door *door, const struct ground *ground, const char *hutch, struct error *err);

/* Ask it to end. Its exit status, -ETIMEDOUT when it had to be killed. Nothing happens when it is not open. */
int door_close(struct door *door);

/* From here on all that is seen is an attack's doing. */
void door_begin(struct door *door);
/*
 * False with what is not well. `memory_most` is what the attack may have made it take, 0: the usual. To whoever runs it
 * the daemon also says what is wrong with the configuration, in lines that are not of the usual shape.
 */
bool door_is_well(struct door *door, uint64_t memory_most, bool was_operator, char ret_harm[DOOR_HARM_SIZE]);
