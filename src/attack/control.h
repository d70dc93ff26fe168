/*
 * control: the same attempt outside of a sandbox, to show that it is one.
 *
 * AS ROOT, unfiltered, in the host's namespaces or in some that end with it. What an attack does must be harmless
 * there.
 */
#pragma once

/* For process.before: 0, or the process must end. */
int control_apart(void);
int control_beside(void);

/* Not a control, but a caller of the service: anybody. */
int control_nobody(void);
