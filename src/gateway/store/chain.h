/*
 * chain: the hashes that tie each audit record to the one before, and each piece of output to the piece before.
 *
 * Pure. BLAKE2b-256 over every field in a fixed order: numbers as 8 bytes, little endian; texts and bytes with their
 * length in front, and what is not there as a length that nothing has. So no two different records are encoded alike.
 */
#pragma once

#include "gateway/store/records.h"

/* A place in the log: the record with this number has this hash. The log starts at number 0 with zeroes. */
struct chain_link {
    uint64_t number;
    uint8_t hash[STORE_HASH_BYTES];
};

/* Of a record with number and `previous` filled in. */
void chain_hash_audit(const struct store_audit *audit, uint8_t ret_hash[STORE_HASH_BYTES]);

/* Of a piece of output; the exec's first has zeroes before it. */
void chain_hash_output(const struct store_output *output, const uint8_t previous[STORE_HASH_BYTES],
                       uint8_t ret_hash[STORE_HASH_BYTES]);
