/*
 * fault: the system call that stands for one allocation in the fault build. The kernel has no such call and says so;
 * inject answers it with ENOMEM where the allocation is to fail.
 */
#pragma once

enum { FAULT_CALL = 1000 };
