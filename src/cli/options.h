/*
 * options: what `hutch run` was asked for. Pure: parses argv, opens nothing.
 */
#pragma once

#include "base/error.h"
#include "wire/wire.h"

#include <stdbool.h>
#include <stdint.h>

enum { OPTIONS_ENV_MAX = 256, OPTIONS_COPIES_MAX = 16, OPTIONS_NET_MAX = 256 };

struct option_dir {
    char host[4096];
    char guest[4096];
    bool writable;
};

/* A file to be copied. */
struct option_copy {
    char host[4096];
    char guest[4096]; /* absolute, or from the working folder on */
};

struct option_copies {
    struct option_copy *list; /* OPTIONS_COPIES_MAX, made with the first one */
    size_t count;
};

struct run_options {
    const char *root; /* NULL: template host */
    bool root_rw;
    uint64_t memory_bytes;
    uint64_t cpu_milli; /* 0: all there are */
    uint64_t processes;
    uint64_t disk_bytes;
    bool disk_is_image;  /* a file on the host, not memory */
    uint64_t file_bytes; /* 0: as large as the disk */
    uint64_t open_files;
    bool open_files_asked; /* not just the default */
    uint64_t timeout_ms;   /* 0: none */
    uint32_t uid;
    enum wire_filter filter;
    const char *env[OPTIONS_ENV_MAX]; /* NAME=value, or NAME for the caller's */
    size_t env_count;
    const char *folder;
    struct option_dir *dirs; /* WIRE_DIRS_MAX, made with the first one */
    size_t dir_count;
    struct option_copies puts;       /* before the command */
    struct option_copies gets;       /* after it */
    const char *only[WIRE_ONLY_MAX]; /* programs that may be executed; none: all */
    size_t only_count;
    char *only_words;                 /* what they point into */
    const char *net[OPTIONS_NET_MAX]; /* what may be reached, as rules */
    size_t net_count;
    char *net_words; /* what they point into */
    bool net_full;   /* all names */
    const char *state;
    bool tty;
    bool stats;
    bool json;
    bool help;
    char **command;
};

/* 0 or -EINVAL with a message that says what to write instead. */
_must_use_ int options_parse(char **argv, struct run_options *ret_options, struct error *err);
void options_release(struct run_options *options);

/* Where Hutch keeps its files when nobody says otherwise. */
const char *options_default_state(void);

/* The text of `hutch run --help`. */
void options_print_help(void);
