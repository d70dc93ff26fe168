/*
 * refusal: what a client is told in the protocol that it speaks. Pure.
 */
#pragma once

#include "base/buf.h"

#include <stddef.h>
#include <stdint.h>

enum { REFUSAL_HTTP_MAX = 2048, REFUSAL_TLS_SIZE = 7 };

enum refusal_alert { REFUSAL_ACCESS_DENIED = 49, REFUSAL_INTERNAL_ERROR = 80 };

/* A whole answer, after which the connection closes. 0 or -errno. */
_must_use_ int refusal_http(struct buf *buf, unsigned status, const char *why);

/* A fatal alert (RFC 8446, 6), which is all that can be said before there are keys. */
void refusal_tls(enum refusal_alert alert, uint8_t record[REFUSAL_TLS_SIZE]);
