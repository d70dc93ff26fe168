/*
 * environment: HUTCH_SECTION_KEY variables, which go before the file.
 */
#pragma once

#include "gateway/config/config.h"

/* What is of a section of ours but no key of it is a problem, too. 0 or -ENOMEM. */
_must_use_ int config_environment_apply(struct config *config, char *const *environment,
                                        struct config_problems *problems);
