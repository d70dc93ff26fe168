/*
 * first: what a store that was never used gets before anybody is served: the number of this start, and credentials.
 *
 * Used once by gateway.c; runs the loop until the store has answered.
 */
#pragma once

#include "base/log.h"
#include "gateway/handover.h"
#include "gateway/store/credentials.h"

/* How often a gateway was started with this store, this time included. */
_must_use_ int first_count_start(struct store *store, uv_loop_t *loop, uint32_t *ret_start, struct error *err);

/*
 * When there is neither a key nor a password: those that were preset, else both are made and told once, on standard
 * error. Presets are forgotten in any case.
 */
_must_use_ int first_credentials(struct handover *handover, struct store *store, struct credentials *credentials,
                                 uv_loop_t *loop, struct error *err);
