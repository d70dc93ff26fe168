/*
 * files: what is done with the sandbox's files, each function one operation of a FILE message.
 *
 * INSIDE THE SANDBOX, in a worker's process: as the user that is asked for, with that user's rights. So a path means
 * what it means to a command, and whoever swaps names and symlinks meanwhile reaches what that user reaches anyway.
 * Functions return 0 or -errno; records go to reply.h.
 *
 * A path is absolute or starts in the message's folder; `..` and symlinks lead where they lead a program. The last name
 * of a path is not followed when it is removed, renamed or, with ATOMIC, written.
 *
 *  READ    the entry as it was when the file was opened, then its bytes from `offset` on, at most `length`, up to the
 *          size it had then (files of /proc, which have none: to their end), or with GROWING to its end
 *  WRITE   takes its standard input as the whole content; a new file gets `mode`, an old one keeps its own. With ATOMIC
 *          the content gets its name, as a new file, when all of it is there; nothing is left of one that failed
 *  APPEND  adds to the end; every 1 MiB that comes is one write, which no other append gets into
 *  STAT    the entry
 *  LIST    an entry for everything in a folder, in no order, with RECURSIVE for all below it too, paths relative to the
 *          folder; a folder of a listing that can't be read is a problem
 *  MKDIR   makes a folder with `mode`; with PARENTS one that is there is no error
 *  REMOVE  a file, an empty folder, or with RECURSIVE a folder with all that is in it; what can't be is a problem
 *  RENAME  to `new_path`, in one step, in the place of what was there unless EXCLUSIVE
 *  CHMOD   sets the mode
 *  WATCH   tells what happens to a file or in a folder (not below it), until it is gone or the channel ends
 *
 * A FIFO, a socket or a device where a file should be is ENXIO, a folder EISDIR; nothing waits for somebody to open the
 * other end. Input that ends before `length` bytes is ENODATA, more is EFBIG. WRITE and APPEND always say how much they
 * wrote. After problems the result is the first one's errno.
 */
#pragma once

#include "wire/wire.h"

_must_use_ int files_read(const struct wire_file *file);
_must_use_ int files_write(const struct wire_file *file);
_must_use_ int files_append(const struct wire_file *file);
_must_use_ int files_stat(const struct wire_file *file);
_must_use_ int files_mkdir(const struct wire_file *file);
_must_use_ int files_rename(const struct wire_file *file);
_must_use_ int files_chmod(const struct wire_file *file);

/* walk.c */
_must_use_ int files_list(const struct wire_file *file);
_must_use_ int files_remove(const struct wire_file *file);

/* watch.c */
_must_use_ int files_watch(const struct wire_file *file);

/* The folder that holds the last name of `path`, and that name, which is neither empty nor `.` nor `..`. */
_must_use_ int files_open_parent(struct wire_str path, int *ret_folder, const char **ret_name);

enum { FILES_FREE_NAME = 64 };

/* A name that nobody else uses, unless to vex us. */
void files_free_name(char name[FILES_FREE_NAME]);
