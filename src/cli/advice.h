/*
 * advice: what a person can do about a step that failed. Data: one table of step, errno and words.
 */
#pragma once

#include "base/error.h"

#include <stdint.h>

/* Adds the advice for this step and err->err to the message, where there is one. */
void advice_add(uint32_t step, struct error *err);

/* Points to `hutch doctor`, where the machine and not the caller is the reason. */
void advice_add_doctor(uint32_t step, struct error *err);
