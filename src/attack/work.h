/*
 * work: what attacks on resources share: taking memory, filling files, and doing so for a while and not longer, so that
 * a slow machine takes as long as a fast one.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Every page of it is there and used. Does not fail; who has too much is killed. */
void work_touch_memory(size_t size);

/* Write until `most` bytes or an error; the errno, 0 for none. */
int work_fill_file(const char *path, uint64_t most, uint64_t *ret_size);

/* Write to a pipe or socket until it takes no more, or has taken 64 MiB. */
void work_fill_descriptor(int fd);

/* That many bytes on standard output, without a line's end. */
void work_print(size_t size);

uint64_t work_deadline_ns(unsigned ms);
bool work_goes_on(uint64_t deadline_ns);

/* How many processes /proc shows. */
unsigned work_count_processes(void);
