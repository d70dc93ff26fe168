/*
 * op: one write of a batch, as it travels from the loop's thread to the writer's. All memory is the batch's.
 */
#pragma once

#include "gateway/store/call.h"
#include "gateway/store/records.h"
#include "gateway/store/store.h"

enum op_type {
    OP_ADD_SANDBOX,
    OP_SET_SANDBOX,
    OP_TOUCH_SANDBOX,
    OP_ADD_EXEC,
    OP_SET_EXEC,
    OP_ADD_OUTPUT,
    OP_ADD_AUDIT,
    OP_ADD_KEY,
    OP_REVOKE_KEY,
    OP_TOUCH_KEY,
    OP_SET_PASSWORD,
    OP_SET_SETTING,
    OP_TYPES,
};

struct op {
    struct op *next;
    enum op_type type;
    union {
        struct store_sandbox sandbox;
        struct store_exec exec;
        struct store_output output;
        struct store_audit audit;
        struct store_key key;
        struct store_setting setting; /* passwords too */
    };
};

struct batch {
    struct store_call call;
    store_done_fn done;
    struct op *first;
    struct op *last;
    uint64_t audit_number; /* of the last audit record, once it is recorded */
};
