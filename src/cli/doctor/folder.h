/*
 * folder: the state folder before it is there, and the name of the file system that something lies on.
 */
#pragma once

#include "base/error.h"

enum { FOLDER_PATH_SIZE = 4096 };

/* The folder itself, or the nearest one above it that exists: O_PATH. The descriptor or -errno. */
_must_use_ int folder_nearest(const char *path, char ret_path[FOLDER_PATH_SIZE]);

/* Such as "ext4"; "a file system" when it has no name here. */
const char *folder_file_system(int fd);
