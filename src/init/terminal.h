/*
 * terminal: a pseudo-terminal of the sandbox's own /dev/pts for one command.
 *
 * INSIDE THE SANDBOX. Init keeps both ends: the master, which stands for the screen and the keyboard, and the slave, so
 * that a command which closes its terminal and opens /dev/tty again does not look like one that has ended.
 */
#pragma once

#include "wire/wire.h"

#include <sys/types.h>

/* Can there be any? */
bool terminal_is_there(void);

/* A new one of this size that belongs to `uid`; the master does not block. 0 or -errno. */
_must_use_ int terminal_open(uint32_t uid, uint16_t rows, uint16_t columns, int *ret_master, int *ret_slave);

/* Tells the processes in its foreground, if it is a change. */
void terminal_resize(int master, uint16_t rows, uint16_t columns);

/* The process group in its foreground, or 0 when there is none that a signal may be sent to. */
pid_t terminal_foreground(int master);

/* Type the end of input; in the middle of a line it takes two. False when it is full: again, once it takes more. */
_must_use_ bool terminal_type_end(int master, bool in_line);
