/*
 * refusal: how the server itself says no, where no surface does. Pure.
 */
#pragma once

#include "base/buf.h"

/* The word for a status, as /api/v1 has it: "not_found". */
const char *refusal_code(unsigned status);

/* {"error":{"code":...,"message":...,"request_id":...}}, appended. 0, -ENOBUFS, -ENOMEM. */
_must_use_ int refusal_write(struct buf *buf, const char *code, const char *message, const char *request_id);
