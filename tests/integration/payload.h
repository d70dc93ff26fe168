/*
 * payload: the rows of payload.c's table that live elsewhere: attempts.c, what a sandbox must refuse, and network.c.
 */
#pragma once

/* Every forbidden system call, tried for real: a line "NAME NUMBER" each. */
int payload_attempts(char **argv);

/* Every address family and netlink protocol. */
int payload_families(char **argv);

/* Every way to a set-user-ID or set-group-ID bit on a file in folder argv[0]. */
int payload_set_id(char **argv);

/* A system call of another architecture; does not return where that is forbidden. */
int payload_int80(char **argv);
int payload_x32(char **argv);

/* A server and its client on loopback, IPv4 and IPv6. */
int payload_loopback(char **argv);

/* Connect to address argv[0], port argv[1]. */
int payload_connect(char **argv);

/* Connect to the abstract socket named argv[0]. */
int payload_abstract(char **argv);
