/*
 * attack: `hutch attack`, which is a program of its own (src/attack): it needs nothing of this one but `hutch run`.
 */
#pragma once

/* argv behind the word "attack". The exit status, when it can't be started. */
int attack_main(char **argv);
