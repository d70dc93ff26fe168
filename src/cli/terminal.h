/*
 * terminal: the caller's own terminal while a command has one inside: raw, so that every key goes to the command, and
 * as it was again on every way out but SIGKILL.
 *
 * There is one per process, and what it was like is kept where a signal handler finds it.
 */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

/* Standard input and output must be a terminal. 0, or -EINVAL with what to do instead. */
_must_use_ int terminal_check(struct error *err);

/* Is standard input our terminal with another job in its foreground? To read or change it would stop us. */
bool terminal_in_background(void);

/* Make it raw; again, if need be, after we were stopped. Not from the background. */
_must_use_ int terminal_enter(struct error *err);

/* For a while: what was typed ahead stays. */
void terminal_pause(void);

/*
 * For good. What was typed and not read is thrown away: it may be the terminal's answer to what the command wrote last,
 * and the caller's shell would take it for a command (CVE-2003-0063 and its many successors).
 */
void terminal_leave(void);

void terminal_size(uint16_t *ret_rows, uint16_t *ret_columns);

/* Standard output's terminal, opened anew so that it need not block for others too; standard output if it can't be. */
int terminal_open_output(void);
