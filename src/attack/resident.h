/*
 * resident: who lives in the neighbour sandbox. Holds one of everything that another sandbox could be after, under the
 * names that the canaries have, and says on each question whether it still is as it was.
 */
#pragma once

/* Answers "well", or what happened, to each line on standard input; until its end. */
int resident_live(void);
