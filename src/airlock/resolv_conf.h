/*
 * resolv_conf: which resolvers this machine uses (resolv.conf(5)). Pure.
 */
#pragma once

#include <stddef.h>

/* The addresses of the `nameserver` lines as c-ares wants them: a list with commas. What does not fit is left out. */
void resolv_conf_servers(const char *text, char *list, size_t size);
