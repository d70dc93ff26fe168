/*
 * pulse: asks a daemon how it is, as often as the referee wants to know: a line in, one /healthz, a line out.
 */
#pragma once

int pulse_beat(void);
