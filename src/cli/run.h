/*
 * run: `hutch run`, a command in a sandbox of its own, with no daemon.
 */
#pragma once

/* argv behind the word "run". The exit status. */
int run_main(char **argv);
