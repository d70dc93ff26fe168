/*
 * config: hutch.yaml and the environment, parsed, checked and with every default filled in.
 *
 * Used by the one-shot reader, which tells root what concerns root, and by the running gateway; neither has privileges.
 * Every key is a row of the table in keys.c: from it come this parser, its errors, the commented example, the manual
 * page and the names in the environment. A configuration is read-only once it is loaded; its owner frees it, with all
 * strings and lists in it.
 *
 * What may be missing in a profile is NULL, a list that is not given, or CONFIG_NOT_GIVEN.
 */
#pragma once

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CONFIG_NOT_GIVEN UINT64_MAX

enum {
    CONFIG_BYTES_MAX = 131072, /* of the file */
    CONFIG_LISTENERS_MAX = 16,
};

enum config_auth { CONFIG_AUTH_REQUIRED, CONFIG_AUTH_OFF };
enum config_sync { CONFIG_SYNC_INTERVAL, CONFIG_SYNC_ALWAYS };
enum config_user { CONFIG_USER_NOBODY, CONFIG_USER_ROOT };
enum config_root { CONFIG_ROOT_RO, CONFIG_ROOT_RW };
enum config_access { CONFIG_ACCESS_RO, CONFIG_ACCESS_RW };

struct config_list {
    bool given;
    size_t count;
    char **items;
};

struct config_pair {
    char *name;
    char *value;
};

struct config_map {
    bool given;
    size_t count;
    struct config_pair *items;
};

struct config_limits {
    uint64_t cpu_milli;
    uint64_t memory_mb;
    uint64_t disk_mb;
    uint64_t max_processes;
    uint64_t timeout_seconds;
};

/* The fields of POST /api/v1/sandboxes, each of them optional. */
struct config_profile {
    char *name;
    char *template_name;
    struct config_list tools;
    struct config_map files; /* path and text */
    struct config_map env;
    struct config_map labels;
    struct config_limits limits;
    struct config_list command_blocklist;
    uint64_t user; /* enum config_user */
    uint64_t root; /* enum config_root */
    uint64_t idle_timeout_seconds;
};

struct config_template {
    char *name;
    char *folder; /* or `host` */
};

struct config_share {
    char *name;
    char *folder;
    uint64_t access; /* enum config_access */
};

struct config_server {
    struct config_list listen; /* numbers: 127.0.0.1:8080, [::1]:8080 */
    char *unix_socket;         /* a path, `auto` or `off` */
    uint64_t auth;             /* enum config_auth */
    char *tls_certificate;     /* "" for none */
    char *tls_key;
    struct config_list hosts;
    struct config_list cors_origins;
    uint64_t open_metrics;
    uint64_t max_connections;
    uint64_t max_header_bytes;
    uint64_t max_body_mb;
    uint64_t header_timeout_seconds;
    uint64_t body_timeout_seconds;
    uint64_t send_timeout_seconds;
    uint64_t idle_timeout_seconds;
    uint64_t drain_seconds;
};

struct config_gateway {
    uint64_t memory_mb;
    uint64_t max_processes;
    uint64_t answer_seconds;
};

struct config_sandbox {
    char *default_template;
    uint64_t max_concurrent;
    uint64_t max_execs;
    uint64_t max_disk_mb;
    uint64_t idle_timeout_seconds; /* 0: never */
    struct config_limits limits;
    struct config_list command_blocklist; /* PCRE2 patterns that compile */
    uint64_t pool_enabled;
    uint64_t pool_min_idle;
    uint64_t pool_max_idle;
    uint64_t id_first;
    uint64_t id_last;
};

struct config {
    struct config_server server;
    struct config_gateway gateway;
    struct config_sandbox sandbox;
    struct config_profile *profiles;
    size_t profile_count;
    struct config_template *templates;
    size_t template_count;
    struct config_share *shares;
    size_t share_count;
    char *audit_database_path; /* below the gateway's own folder */
    uint64_t audit_retention_days;
    uint64_t audit_sync; /* enum config_sync */
    uint64_t limits_per_ip_rate;
    uint64_t limits_per_ip_burst;
    uint64_t limits_per_agent_per_minute;
    uint64_t logging_level;  /* enum log_level */
    uint64_t logging_format; /* enum log_format */
    struct config_memory *memory;
};

/*
 * What is wrong, one line each: FILE:LINE:COLUMN: KEY: what was expected, did you mean. Of a variable in the
 * environment the name takes the place of the file's.
 */
struct config_problems {
    size_t count;
    struct buf text;
};

static inline struct config_problems config_problems_init(void)
{
    return (struct config_problems){.text = buf_init(16384)};
}

static inline void config_problems_release(struct config_problems *problems)
{
    buf_release(&problems->text);
}

/*
 * Parse the file's `text` (no bytes: all defaults) and the HUTCH_* variables of `environment` (NULL: none), which go
 * before the file. `name` is what the file is called in errors. 0, or -EINVAL and at least one problem, or -ENOMEM.
 */
_must_use_ int config_load(const char *name, const char *text, size_t length, char *const *environment,
                           struct config **ret_config, struct config_problems *problems);
void config_free(struct config *config);

/* By name; NULL when there is none. */
const struct config_profile *config_profile_find(const struct config *config, const char *name);
const struct config_template *config_template_find(const struct config *config, const char *name);
const struct config_share *config_share_find(const struct config *config, const char *name);

/* Of all disks that a sandbox may have: by default, with a profile, or because a request asked for it. */
uint64_t config_largest_disk_mb(const struct config *config);

/* A listener is reachable from other machines: nothing may be served without credentials then. */
bool config_is_beyond_loopback(const struct config *config);
