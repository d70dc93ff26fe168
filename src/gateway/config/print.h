/*
 * print: the commented example and the manual page, from the table.
 */
#pragma once

#include "base/buf.h"

enum { CONFIG_PRINT_MAX = 131072 };

/* A file that means what no file means. */
_must_use_ int config_print_example(struct buf *text);

/* hutch.yaml(5), for man. */
_must_use_ int config_print_manual(struct buf *text);
