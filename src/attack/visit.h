/*
 * visit: one attack on the service, from outside: a process that is nobody in particular calls a daemon of ours
 * (door.h), and says what came of it in the words of attempt.h.
 *
 * AS ROOT. The daemon is opened for the first of them.
 */
#pragma once

#include "attack/referee.h"

void visit_judge(struct referee *referee, const struct attack *attack, struct ruling *ruling);
