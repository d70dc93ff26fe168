/*
 * attempt: one probe, in a process of its own with a time limit, so that one that hangs or crashes is a "no".
 *
 * Used by `hutch doctor`. Two processes per attempt: the probe itself, and a guard above it that outlives both the
 * probe and, for a moment, the doctor: when either of them is killed it ends what is left of the other and removes
 * cgroups that a killed probe left. Mounts, namespaces and loop devices end with the processes that hold them.
 */
#pragma once

#include "cli/doctor/check.h"

/* Fills probe->finding, which must be in shared memory. */
void attempt(struct probe *probe);
