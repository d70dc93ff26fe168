/*
 * ids: ranges of 65,536 uids and gids, each of which at most one live sandbox on the machine has.
 *
 * AS ROOT. A claim is a lock on one byte of /run/hutch/ids, so it ends with the keeper however that ends. Ranges
 * handed to other tools in /etc/subuid and /etc/subgid are never claimed.
 */
#pragma once

#include "wire/wire.h"

#include <stdint.h>

enum { IDS_PER_SANDBOX = WIRE_INNER_IDS };

struct ids;

/* The range [first, last] in whole multiples of 65,536. */
_must_use_ int ids_new(int run_fd, uint32_t first, uint32_t last, struct ids **ret_ids, struct error *err);
void ids_free(struct ids *ids);

_must_use_ int ids_claim(struct ids *ids, uint32_t *ret_first, struct error *err);

/* How many ranges are neither ours nor another tool's. Another keeper may have claimed some of them. */
uint32_t ids_available(const struct ids *ids);

/* As long as a copy of this descriptor is open somewhere, the claims hold. */
int ids_claim_fd(const struct ids *ids);
void ids_release(struct ids *ids, uint32_t first);
