/*
 * plan: from the body of a creation, its profile and the configuration to a sandbox's settings, and back from a sandbox
 * to what callers are shown of it.
 *
 * A sandbox's `extra` is a JSON object with what the engine has no use for, member by member as it is shown: template,
 * profile, tools, network, resource_limits, command_blocklist, labels, user, root. So nothing about a sandbox is held
 * here, and another gateway finds it all again.
 */
#pragma once

#include "gateway/config/config.h"
#include "gateway/engine/sandbox.h"
#include "gateway/surface/body.h"
#include "gateway/surface/call.h"
#include "gateway/surface/writer.h"

enum { PLAN_FILES_MAX = 256, PLAN_ENV_MAX = 512 };

struct plan_limits {
    struct body_number cpu_milli;
    struct body_number memory_mb;
    struct body_number disk_mb;
    struct body_number max_processes;
    struct body_number timeout_seconds;
};

/* POST /api/v1/sandboxes as it came. */
struct plan_body {
    const char *profile;
    const char *template_name;
    const char *base_image;
    const json_t *tools;
    const json_t *files;
    const char *network_mode;
    const json_t *domain_allowlist;
    const json_t *domain_denylist;
    struct plan_limits limits;
    const json_t *command_blocklist;
    const json_t *env;
    const char *user;
    const char *root;
    struct body_number idle_timeout_seconds;
    const json_t *labels;
};

extern const struct body_fields plan_fields;

struct plan_file {
    const char *path;
    const char *text;   /* NULL: it is in base64 */
    const char *base64; /* NULL: it is text */
};

struct plan {
    const struct config_profile *profile; /* NULL: none */
    struct sandbox_settings settings;
    struct config_limits limits; /* in force */
    const char *env[PLAN_ENV_MAX + 1];
    size_t env_count;
    struct plan_file files[PLAN_FILES_MAX];
    size_t file_count;
    struct writer extra;
};

/*
 * Zeroed `plan`; strings live as long as `call`, `extra` until plan_release(). Errors: ERROR_INVALID, or
 * ERROR_UNSUPPORTED for what is well-formed and can't be had.
 */
_must_use_ int plan_make(struct call *call, const struct plan_body *body, struct plan *plan, struct error *err);
void plan_release(struct plan *plan);

/* The class and limits of a profile (NULL: the defaults), as a plan without wishes of its own would have them. */
void plan_class(const struct config *config, const struct config_profile *profile, struct sandbox_class *ret_class,
                struct sandbox_limits *ret_limits);

/* A sandbox as callers see it. */
void plan_show(struct writer *writer, const char *key, const struct sandbox *sandbox);

/* The parsed `extra`: its members by these names are always there. The caller's to json_decref(). NULL: no memory. */
json_t *plan_extra(const struct sandbox *sandbox);

/* The user that commands and files of this sandbox are. */
uint32_t plan_user(const struct sandbox *sandbox);

/* NAME as in NAME=value. */
bool plan_is_env_name(const char *name);
