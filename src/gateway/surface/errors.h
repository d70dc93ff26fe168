/*
 * errors: from a failure to the status, the code and the body that a caller of /api/v1 sees. Pure.
 */
#pragma once

#include "base/buf.h"
#include "base/error.h"

enum { ERRORS_BODY_MAX = 4096 };

struct refusal {
    unsigned status;
    const char *code;
};

struct refusal errors_of(const struct error *err);

/* The same for an operation on a sandbox's file: what may not be touched is `path_not_allowed`. */
struct refusal errors_of_file(const struct error *err);

/* {"error":{"code","message","request_id"}} */
_must_use_ int errors_write(struct buf *body, const char *code, const char *message, const char *request_id);

/* A failed write of the store's: the code may not be ERROR_NONE after it. */
void errors_from_store(struct error *err, int result, const char *message);
