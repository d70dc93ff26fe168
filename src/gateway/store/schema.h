/*
 * schema: the folder's lock, the database file, and its tables as they are today.
 *
 * For the start of a store. Nothing that is damaged, unknown or newer than we are is ever written to.
 */
#pragma once

#include "gateway/store/database.h"

enum { SCHEMA_PATH_MAX = 1024 };

/* Lock the folder against other stores. The descriptor holds the lock. -EBUSY: another one has it. */
_must_use_ int schema_lock(const char *folder, int *ret_fd, struct error *err);

/* Make the file if there is none; -EBADMSG when its remains say that there was one. */
_must_use_ int schema_prepare_file(const char *path, struct error *err);

/* Check the open database and bring it up to date, each step in one transaction. */
_must_use_ int schema_upgrade(struct database *database, const char *path, struct error *err);

/* Say in front of what SQLite said which file it is about, and what to do about it. Returns the error's errno. */
int schema_explain(const char *path, struct error *err);

/* The version that this program writes. */
int schema_version(void);
