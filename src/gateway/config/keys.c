#include "gateway/config/keys.h"

#include "gateway/config/config.h"

#include <ctype.h>
#include <string.h>

#define AT(member) offsetof(struct config, member)
#define PROFILE(member) offsetof(struct config_profile, member)
#define SHARE(member) offsetof(struct config_share, member)

enum {
    DAY = 86400,
    YEAR = 366 * DAY,
    PART_SIZE = 64,
};

#define TOOLS "shell_exec|file_read|file_write|file_list|http_request"

const struct config_key config_keys[] = {
    {"server.listen", CONFIG_ADDRESSES, AT(server.listen), "127.0.0.1:8080", 0, CONFIG_LISTENERS_MAX, NULL,
     "Addresses that HTTP is served on."},
    {"server.unix_socket", CONFIG_SOCKET, AT(server.unix_socket), "auto", 0, 0, NULL,
     "Socket of the command line: auto is /run/hutch/api.sock, or api.sock in a state folder of one's own."},
    {"server.auth", CONFIG_CHOICE, AT(server.auth), "required", 0, 0, "required|off",
     "Whether callers need credentials; off only while nothing but loopback is listened on."},
    {"server.tls_certificate", CONFIG_PATH, AT(server.tls_certificate), "", 0, 0, NULL,
     "Certificate chain (PEM) for all addresses of server.listen; empty: plain HTTP."},
    {"server.tls_key", CONFIG_PATH, AT(server.tls_key), "", 0, 0, NULL, "The certificate's private key (PEM)."},
    {"server.hosts", CONFIG_HOSTS, AT(server.hosts), "", 0, 64, NULL,
     "Names that a request's Host may have, besides localhost and the addresses listened on."},
    {"server.cors_origins", CONFIG_ORIGINS, AT(server.cors_origins), "", 0, 64, NULL,
     "Web pages of these origins may call the API."},
    {"server.open_metrics", CONFIG_SWITCH, AT(server.open_metrics), "false", 0, 0, NULL,
     "Whether /metrics and /health are answered without credentials."},
    {"server.max_connections", CONFIG_NUMBER, AT(server.max_connections), "10000", 1, 1000000, NULL,
     "Connections at once; more are not accepted until one ends."},
    {"server.max_header_bytes", CONFIG_NUMBER, AT(server.max_header_bytes), "32768", 1024, 1048576, NULL,
     "Request line and headers of one request, together."},
    {"server.max_body_mb", CONFIG_NUMBER, AT(server.max_body_mb), "32", 1, 1024, NULL,
     "A JSON body, in MiB; files that are uploaded end at the sandbox's disk."},
    {"server.header_timeout_seconds", CONFIG_NUMBER, AT(server.header_timeout_seconds), "10", 1, 3600, NULL,
     "How long a client may take for request line and headers."},
    {"server.body_timeout_seconds", CONFIG_NUMBER, AT(server.body_timeout_seconds), "30", 1, 3600, NULL,
     "How long a client may pause within a body."},
    {"server.send_timeout_seconds", CONFIG_NUMBER, AT(server.send_timeout_seconds), "30", 1, 3600, NULL,
     "How long a client may read nothing of an answer."},
    {"server.idle_timeout_seconds", CONFIG_NUMBER, AT(server.idle_timeout_seconds), "120", 1, DAY, NULL,
     "How long a connection is kept between two requests."},
    {"server.drain_seconds", CONFIG_NUMBER, AT(server.drain_seconds), "10", 0, 3600, NULL,
     "How long running commands may go on after the daemon was asked to end."},

    {"gateway.memory_mb", CONFIG_NUMBER, AT(gateway.memory_mb), "2048", 64, 16777216, NULL,
     "Memory that the gateway, the process which serves requests, may use, in MiB; beyond it is started again."},
    {"gateway.max_processes", CONFIG_NUMBER, AT(gateway.max_processes), "256", 32, 32768, NULL,
     "Threads that the gateway may have."},
    {"gateway.answer_seconds", CONFIG_NUMBER, AT(gateway.answer_seconds), "30", 1, 3600, NULL,
     "A gateway that does not answer hutchd for so long is replaced; what runs goes on."},

    {"sandbox.default_template", CONFIG_NAME, AT(sandbox.default_template), "host", 0, 0, NULL,
     "Template of a sandbox that names none: host (this machine's /usr) or one of templates."},
    {"sandbox.max_concurrent", CONFIG_NUMBER, AT(sandbox.max_concurrent), "10", 1, 16384, NULL,
     "Sandboxes at once, not counting the pool."},
    {"sandbox.max_execs", CONFIG_NUMBER, AT(sandbox.max_execs), "256", 1, 65536, NULL,
     "Commands that run at once, in all sandboxes together."},
    {"sandbox.idle_timeout_seconds", CONFIG_NUMBER, AT(sandbox.idle_timeout_seconds), "0", 0, YEAR, NULL,
     "A sandbox in which nothing happened for so long is destroyed; 0: never."},
    {"sandbox.max_disk_mb", CONFIG_NUMBER, AT(sandbox.max_disk_mb), "65536", 1, 8388608, NULL,
     "Writable space that a request may ask for at most, in MiB."},
    {"sandbox.resource_limits.cpu", CONFIG_CPUS, AT(sandbox.limits.cpu_milli), "0.5", 10, 4096000, NULL,
     "CPUs per sandbox."},
    {"sandbox.resource_limits.memory_mb", CONFIG_NUMBER, AT(sandbox.limits.memory_mb), "512", 2, 16777216, NULL,
     "Memory per sandbox, in MiB."},
    {"sandbox.resource_limits.disk_mb", CONFIG_NUMBER, AT(sandbox.limits.disk_mb), "256", 1, 8388608, NULL,
     "Writable space per sandbox, in MiB; what is more than half of the memory lies on disk."},
    {"sandbox.resource_limits.max_processes", CONFIG_NUMBER, AT(sandbox.limits.max_processes), "256", 1, 1048576, NULL,
     "Processes and threads per sandbox."},
    {"sandbox.resource_limits.timeout_seconds", CONFIG_NUMBER, AT(sandbox.limits.timeout_seconds), "600", 1, YEAR, NULL,
     "A sandbox's lifetime, and the longest that any call in it may take."},
    {"sandbox.command_blocklist", CONFIG_PATTERNS, AT(sandbox.command_blocklist), "@default", 0, 256, NULL,
     "Commands that match one of these are refused; @default stands for the list that comes with Hutch. It is "
     "advice to honest agents; the boundary is the sandbox."},
    {"sandbox.pool.enabled", CONFIG_SWITCH, AT(sandbox.pool_enabled), "true", 0, 0, NULL,
     "Whether sandboxes are made ahead, so that creating one takes no time."},
    {"sandbox.pool.min_idle", CONFIG_NUMBER, AT(sandbox.pool_min_idle), "2", 0, 4096, NULL,
     "Ready sandboxes of each kind in use, always."},
    {"sandbox.pool.max_idle", CONFIG_NUMBER, AT(sandbox.pool_max_idle), "8", 0, 4096, NULL,
     "Ready sandboxes at most, of all kinds together."},
    {"sandbox.id_first", CONFIG_NUMBER, AT(sandbox.id_first), "268435456", 65536, 4294901760, NULL,
     "First user and group id that sandboxes may use; a multiple of 65536."},
    {"sandbox.id_last", CONFIG_NUMBER, AT(sandbox.id_last), "1879048191", 131071, 4294901759, NULL,
     "The last of them; 65536 for each sandbox."},

    {"profiles.*.template", CONFIG_NAME, PROFILE(template_name), NULL, 0, 0, NULL, "host or one of templates."},
    {"profiles.*.tools", CONFIG_CHOICES, PROFILE(tools), NULL, 0, 16, TOOLS, "Tools that may be called."},
    {"profiles.*.files", CONFIG_TEXTS, PROFILE(files), NULL, 0, 256, NULL,
     "Files that are there from the start, by path."},
    {"profiles.*.env", CONFIG_TEXTS, PROFILE(env), NULL, 0, 256, NULL, "Environment of every command."},
    {"profiles.*.labels", CONFIG_TEXTS, PROFILE(labels), NULL, 0, 64, NULL, "Labels, shown with the sandbox."},
    {"profiles.*.resource_limits.cpu", CONFIG_CPUS, PROFILE(limits.cpu_milli), NULL, 10, 4096000, NULL, "CPUs."},
    {"profiles.*.resource_limits.memory_mb", CONFIG_NUMBER, PROFILE(limits.memory_mb), NULL, 2, 16777216, NULL,
     "Memory, in MiB."},
    {"profiles.*.resource_limits.disk_mb", CONFIG_NUMBER, PROFILE(limits.disk_mb), NULL, 1, 8388608, NULL,
     "Writable space, in MiB."},
    {"profiles.*.resource_limits.max_processes", CONFIG_NUMBER, PROFILE(limits.max_processes), NULL, 1, 1048576, NULL,
     "Processes and threads."},
    {"profiles.*.resource_limits.timeout_seconds", CONFIG_NUMBER, PROFILE(limits.timeout_seconds), NULL, 1, YEAR, NULL,
     "Lifetime."},
    {"profiles.*.command_blocklist", CONFIG_PATTERNS, PROFILE(command_blocklist), NULL, 0, 256, NULL,
     "In place of sandbox.command_blocklist."},
    {"profiles.*.user", CONFIG_CHOICE, PROFILE(user), NULL, 0, 0, "nobody|root", "Who commands run as, inside."},
    {"profiles.*.root", CONFIG_CHOICE, PROFILE(root), NULL, 0, 0, "ro|rw",
     "Whether the root file system can be written; rw needs a template that is a folder."},
    {"profiles.*.idle_timeout_seconds", CONFIG_NUMBER, PROFILE(idle_timeout_seconds), NULL, 0, YEAR, NULL,
     "In place of sandbox.idle_timeout_seconds."},

    {"templates.*", CONFIG_TEMPLATE, offsetof(struct config_template, folder), NULL, 0, 0, NULL,
     "A folder with a root file system in it, or host."},

    {"shares.*.folder", CONFIG_FOLDER, SHARE(folder), NULL, 0, 0, NULL, "A folder of this machine."},
    {"shares.*.access", CONFIG_CHOICE, SHARE(access), NULL, 0, 0, "ro|rw", "What sandboxes may do in it at most."},

    {"audit.database_path", CONFIG_FILE_BELOW, AT(audit_database_path), "hutch.db", 0, 0, NULL,
     "The database, below the folder gateway in the state folder."},
    {"audit.retention_days", CONFIG_NUMBER, AT(audit_retention_days), "90", 0, 36500, NULL,
     "How long records are kept; 0: for ever."},
    {"audit.sync", CONFIG_CHOICE, AT(audit_sync), "interval", 0, 0, "interval|always",
     "Power loss takes the last 100 ms of records (interval) or none (always, slower)."},

    {"limits.per_ip_rate", CONFIG_NUMBER, AT(limits_per_ip_rate), "100", 0, 1000000, NULL,
     "Requests per second from one address; 0: any number."},
    {"limits.per_ip_burst", CONFIG_NUMBER, AT(limits_per_ip_burst), "200", 1, 1000000, NULL,
     "Requests that may come at once."},
    {"limits.per_agent_per_minute", CONFIG_NUMBER, AT(limits_per_agent_per_minute), "0", 0, 1000000, NULL,
     "Calls of one agent per minute; 0: any number."},

    {"logging.level", CONFIG_CHOICE, AT(logging_level), "info", 0, 0, "debug|info|warn|error", "What is logged."},
    {"logging.format", CONFIG_CHOICE, AT(logging_format), "text", 0, 0, "text|json",
     "Lines of key=value, or of JSON, on standard error."},
};
const size_t config_key_count = sizeof config_keys / sizeof *config_keys;

#define GROUP(items, counted) AT(items), AT(counted), sizeof *((struct config *)0)->items

const struct config_group config_groups[] = {
    {"profiles", "Named settings of sandboxes; a request's own fields go before them.", GROUP(profiles, profile_count),
     256,
     "  python-eval:\n"
     "    tools: [shell_exec, file_read, file_write, file_list]\n"
     "    resource_limits:\n"
     "      cpu: 1\n"
     "      memory_mb: 256\n"
     "      max_processes: 64\n"
     "      timeout_seconds: 120\n"
     "  web-scraper:\n"
     "    tools: [shell_exec, file_read, file_write, file_list, http_request]\n"
     "    resource_limits:\n"
     "      cpu: 1\n"
     "      memory_mb: 1024\n"
     "      disk_mb: 512\n"
     "      timeout_seconds: 1800\n"},
    {"templates", "Names for root file systems, besides host; for example `debian: /srv/debian`.",
     GROUP(templates, template_count), 64, ""},
    {"shares",
     "Folders of this machine that sandboxes may be given; for example `data: {folder: /srv/data, access: ro}`.",
     GROUP(shares, share_count), 64, ""},
};
const size_t config_group_count = sizeof config_groups / sizeof *config_groups;

/* Both up to the next dot; `*` in the pattern is any part. */
static bool part_matches(const char *pattern, size_t pattern_length, const char *path, size_t length)
{
    if (pattern_length == 1 && *pattern == '*')
        return length > 0;
    return pattern_length == length && memcmp(pattern, path, length) == 0;
}

/* How far `path` goes along the pattern: NULL when it leaves it, else the rest of the pattern behind it. */
static const char *follow(const char *pattern, const char *path)
{
    for (;;) {
        size_t pattern_length = strcspn(pattern, ".");
        size_t length = strcspn(path, ".");
        if (!part_matches(pattern, pattern_length, path, length))
            return NULL;
        pattern += pattern_length;
        path += length;
        if (*path == '\0')
            return pattern;
        if (*pattern == '\0')
            return NULL;
        pattern++;
        path++;
    }
}

const struct config_key *config_key_find(const char *path)
{
    for (size_t i = 0; i < config_key_count; i++) {
        const char *rest = follow(config_keys[i].path, path);
        if (rest != NULL && *rest == '\0')
            return &config_keys[i];
    }
    return NULL;
}

bool config_key_is_section(const char *path)
{
    for (size_t i = 0; i < config_key_count; i++) {
        const char *rest = follow(config_keys[i].path, path);
        if (rest != NULL && *rest == '.')
            return true;
    }
    return false;
}

const struct config_group *config_group_find(const char *path)
{
    for (size_t i = 0; i < config_group_count; i++) {
        if (strcmp(config_groups[i].path, path) == 0)
            return &config_groups[i];
    }
    return NULL;
}

bool config_key_is_in_group(const struct config_key *key)
{
    return strchr(key->path, '*') != NULL;
}

void config_key_offer(const char *path, void (*offer)(void *context, const char *part), void *context)
{
    for (size_t i = 0; i < config_key_count; i++) {
        char part[PART_SIZE];
        const char *rest = *path == '\0' ? config_keys[i].path : follow(config_keys[i].path, path);
        if (rest == NULL || *rest == '\0')
            continue;
        rest += *rest == '.' ? 1 : 0;
        size_t length = strcspn(rest, ".");
        if (length >= sizeof part || *rest == '*')
            continue;
        memcpy(part, rest, length);
        part[length] = '\0';
        offer(context, part);
    }
}

/* one|other as "one or other". */
static int describe_choices(const char *choices, struct buf *text)
{
    int r = 0;

    while (r == 0 && *choices != '\0') {
        size_t length = strcspn(choices, "|");
        bool is_last = choices[length] == '\0';
        r = buf_append(text, choices, length);
        choices += length + (is_last ? 0 : 1);
        if (r == 0 && !is_last)
            r = buf_printf(text, "%s", strchr(choices, '|') != NULL ? ", " : " or ");
    }
    return r;
}

int config_key_describe(const struct config_key *key, struct buf *text)
{
    static const char *const words[] = {
        [CONFIG_SWITCH] = "true or false",
        [CONFIG_NAME] = "a name of letters, digits, '.', '_' and '-'",
        [CONFIG_PATH] = "an absolute path, or nothing",
        [CONFIG_FOLDER] = "an absolute path",
        [CONFIG_TEMPLATE] = "an absolute path, or host",
        [CONFIG_SOCKET] = "an absolute path of at most 107 bytes, auto or off",
        [CONFIG_FILE_BELOW] = "a relative path without '.' and '..'",
        [CONFIG_ADDRESSES] = "a list of addresses with ports, such as 127.0.0.1:8080, [::1]:8080 or localhost:8080",
        [CONFIG_HOSTS] = "a list of host names",
        [CONFIG_ORIGINS] = "a list of origins, such as https://example.org",
        [CONFIG_PATTERNS] = "a list of regular expressions",
        [CONFIG_TEXTS] = "names with texts",
    };
    int r;

    switch ((int)key->type) { /* the others are in the table above */
    case CONFIG_NUMBER:
        return buf_printf(text, "a whole number from %llu to %llu", (unsigned long long)key->least,
                          (unsigned long long)key->most);
    case CONFIG_CPUS:
        return buf_printf(text, "a number from 0.01 to %llu, with at most three decimals",
                          (unsigned long long)key->most / 1000);
    case CONFIG_CHOICE:
        return describe_choices(key->choices, text);
    case CONFIG_CHOICES:
        r = buf_printf(text, "a list of ");
        return r < 0 ? r : describe_choices(key->choices, text);
    default:
        return buf_printf(text, "%s", words[key->type]);
    }
}

int config_key_variable(const struct config_key *key, struct buf *text)
{
    int r = buf_printf(text, "HUTCH_");

    for (const char *at = key->path; r == 0 && *at != '\0'; at++) {
        uint8_t letter = (uint8_t)toupper((unsigned char)*at);
        r = buf_append(text, *at == '.' ? (const uint8_t *)"_" : &letter, 1);
    }
    return r;
}
