/*
 * doctor: `hutch doctor`, what this machine offers, what that means and what mends it.
 */
#pragma once

/* argv behind the word "doctor". The exit status: 0 when a sandbox can be made, 1 when not, 125 for an error of ours.
 */
int doctor_main(char **argv);
