#include "gateway/config/config.h"

#include "gateway/config/keys.h"
#include "gateway/config/print.h"
#include "gateway/config/root_part.h"
#include "test.h"

#include <stdio.h>

#include <stdlib.h>

static struct config *load(const char *text, char *const *environment)
{
    struct config_problems problems = config_problems_init();
    struct config *config = NULL;

    if (config_load("hutch.yaml", text, strlen(text), environment, &config, &problems) < 0)
        fail_msg("%s: %.*s", text, (int)problems.text.length, (const char *)problems.text.data);
    assert_int_equal(problems.count, 0);
    config_problems_release(&problems);
    return config;
}

/* All of `expected` is in what was said, in order. */
static void refuse(const char *text, size_t length, char *const *environment, const char *expected, size_t count)
{
    struct config_problems problems = config_problems_init();
    struct config *config = NULL;

    assert_row(expected, config_load("hutch.yaml", text, length, environment, &config, &problems) == -EINVAL);
    assert_null(config);
    assert_int_equal(buf_append(&problems.text, "", 1), 0);
    if (strstr((const char *)problems.text.data, expected) == NULL)
        fail_msg("'%s' is not in '%s'", expected, (const char *)problems.text.data);
    if (count != 0 && problems.count != count)
        fail_msg("%zu problems: %s", problems.count, (const char *)problems.text.data);
    config_problems_release(&problems);
}

TEST(test_defaults)
{
    struct config *config = load("", NULL);

    assert_int_equal(config->server.listen.count, 1);
    assert_string_equal(config->server.listen.items[0], "127.0.0.1:8080");
    assert_int_equal(config->server.auth, CONFIG_AUTH_REQUIRED);
    assert_int_equal(config->sandbox.max_concurrent, 10);
    assert_int_equal(config->sandbox.limits.cpu_milli, 500);
    assert_int_equal(config->sandbox.limits.memory_mb, 512);
    assert_int_equal(config->sandbox.limits.timeout_seconds, 600);
    assert_int_equal(config->sandbox.command_blocklist.count, 1);
    assert_int_equal(config->limits_per_ip_rate, 100);
    assert_int_equal(config->limits_per_ip_burst, 200);
    assert_int_equal(config->sandbox.id_first, 0x10000000);
    assert_int_equal(config->sandbox.id_last, 0x6fffffff);
    assert_int_equal(config->profile_count, 2);
    assert_false(config_is_beyond_loopback(config));
    const struct config_profile *profile = config_profile_find(config, "web-scraper");
    assert_non_null(profile);
    assert_int_equal(profile->limits.memory_mb, 1024);
    assert_true(profile->limits.max_processes == CONFIG_NOT_GIVEN);
    assert_true(profile->user == CONFIG_NOT_GIVEN);
    assert_int_equal(profile->tools.count, 5);
    assert_null(profile->template_name);
    assert_false(profile->env.given);
    config_free(config);
}

static void assert_same_list(const char *path, const struct config_list *a, const struct config_list *b)
{
    assert_row(path, a->given == b->given && a->count == b->count);
    for (size_t i = 0; i < a->count; i++)
        assert_string_equal(a->items[i], b->items[i]);
}

static void assert_same_text(const char *path, const char *a, const char *b)
{
    assert_row(path, (a == NULL) == (b == NULL));
    if (a != NULL)
        assert_string_equal(a, b);
}

static void assert_same_value(const struct config_key *key, const void *a, const void *b)
{
    const char *x = (const char *)a + key->offset;
    const char *y = (const char *)b + key->offset;

    if (key->type <= CONFIG_CHOICE)
        assert_row(key->path, *(const uint64_t *)(const void *)x == *(const uint64_t *)(const void *)y);
    else if (config_key_is_list(key))
        assert_same_list(key->path, (const struct config_list *)(const void *)x,
                         (const struct config_list *)(const void *)y);
    else if (key->type != CONFIG_TEXTS)
        assert_same_text(key->path, *(char *const *)(const void *)x, *(char *const *)(const void *)y);
}

static void assert_same(const struct config *a, const struct config *b)
{
    for (size_t i = 0; i < config_key_count; i++) {
        if (!config_key_is_in_group(&config_keys[i]))
            assert_same_value(&config_keys[i], a, b);
    }
    assert_int_equal(a->profile_count, b->profile_count);
    assert_int_equal(a->template_count, b->template_count);
    assert_int_equal(a->share_count, b->share_count);
    for (size_t entry = 0; entry < a->profile_count; entry++) {
        assert_string_equal(a->profiles[entry].name, b->profiles[entry].name);
        for (size_t i = 0; i < config_key_count; i++) {
            if (strncmp(config_keys[i].path, "profiles.", 9) == 0)
                assert_same_value(&config_keys[i], &a->profiles[entry], &b->profiles[entry]);
        }
    }
}

TEST(test_example_is_default)
{
    struct buf text = buf_init(CONFIG_PRINT_MAX);
    struct config *defaults = load("", NULL);

    assert_int_equal(config_print_example(&text), 0);
    assert_int_equal(buf_append(&text, "", 1), 0);
    struct config *example = load((const char *)text.data, NULL);
    assert_same(defaults, example);
    for (size_t i = 0; i < config_key_count; i++) {
        struct buf name = buf_init(128);
        assert_int_equal(config_key_variable(&config_keys[i], &name), 0);
        assert_int_equal(buf_append(&name, "", 1), 0);
        if (!config_key_is_in_group(&config_keys[i]))
            assert_row(config_keys[i].path, strstr((const char *)text.data, (const char *)name.data) != NULL);
        assert_row(config_keys[i].path, strstr((const char *)text.data, config_keys[i].help) != NULL);
        buf_release(&name);
    }
    config_free(example);
    config_free(defaults);
    buf_release(&text);
}

/* Every key is in the example; a value that is not its default must be seen when it is read back. */
TEST(test_every_key_counts)
{
    struct config *defaults = load("", NULL);

    for (size_t i = 0; i < config_key_count; i++) {
        const struct config_key *key = &config_keys[i];
        char text[128];
        if (key->type != CONFIG_NUMBER || config_key_is_in_group(key) || strstr(key->path, "id_") != NULL)
            continue;
        unsigned long long wanted = strtoull(key->otherwise, NULL, 10) == key->most ? key->most - 1 : key->most;
        if (strcmp(key->path, "sandbox.pool.min_idle") == 0)
            wanted = 3;
        struct buf variable = buf_init(128);
        assert_int_equal(config_key_variable(key, &variable), 0);
        (void)snprintf(text, sizeof text, "%.*s=%llu", (int)variable.length, (const char *)variable.data, wanted);
        char *environment[] = {text, NULL};
        struct config *config = load("", environment);
        assert_row(key->path, *(uint64_t *)(void *)((char *)config + key->offset) == wanted);
        (void)snprintf(text, sizeof text, "%.*s=%llu", (int)variable.length, (const char *)variable.data,
                       (unsigned long long)key->most + 1);
        refuse("", 0, environment, key->path, 1);
        config_free(config);
        buf_release(&variable);
    }
    config_free(defaults);
}

TEST(test_manual)
{
    struct buf text = buf_init(CONFIG_PRINT_MAX);

    assert_int_equal(config_print_manual(&text), 0);
    assert_int_equal(buf_append(&text, "", 1), 0);
    assert_non_null(strstr((const char *)text.data, "HUTCH_SANDBOX_RESOURCE_LIMITS_MEMORY_MB"));
    assert_non_null(strstr((const char *)text.data, ".B profiles.*.idle_timeout_seconds"));
    buf_release(&text);
}

TEST(test_file)
{
    struct config *config = load("server:\n"
                                 "  listen: [localhost:80, '[0:0::1]:8443', 0.0.0.0:0]\n"
                                 "  hosts: [hutch.example.org]\n"
                                 "  cors_origins: ['https://example.org:8443']\n"
                                 "sandbox:\n"
                                 "  default_template: debian\n"
                                 "  resource_limits: {cpu: 1.25, memory_mb: 64}\n"
                                 "  command_blocklist: []\n"
                                 "templates: {debian: /srv/debian, usual: host}\n"
                                 "shares:\n"
                                 "  data: {folder: /srv/data, access: rw}\n"
                                 "profiles:\n"
                                 "  small.one:\n"
                                 "    env: {LANG: C.UTF-8, EMPTY: ''}\n"
                                 "    files: {/workspace/a.txt: \"a\\nb\"}\n"
                                 "    user: root\n"
                                 "    root: rw\n"
                                 "    idle_timeout_seconds: 0\n"
                                 "logging: {level: error, format: json}\n",
                                 NULL);

    assert_int_equal(config->server.listen.count, 3);
    assert_string_equal(config->server.listen.items[0], "127.0.0.1:80");
    assert_string_equal(config->server.listen.items[1], "[::1]:8443");
    assert_true(config_is_beyond_loopback(config));
    assert_int_equal(config->sandbox.limits.cpu_milli, 1250);
    assert_int_equal(config->sandbox.limits.memory_mb, 64);
    assert_int_equal(config->sandbox.limits.max_processes, 256);
    assert_true(config->sandbox.command_blocklist.given && config->sandbox.command_blocklist.count == 0);
    assert_string_equal(config_template_find(config, "debian")->folder, "/srv/debian");
    assert_int_equal(config_share_find(config, "data")->access, CONFIG_ACCESS_RW);
    assert_int_equal(config->profile_count, 1);
    const struct config_profile *profile = config_profile_find(config, "small.one");
    assert_int_equal(profile->env.count, 2);
    assert_string_equal(profile->env.items[1].value, "");
    assert_string_equal(profile->files.items[0].value, "a\nb");
    assert_int_equal(profile->user, CONFIG_USER_ROOT);
    assert_int_equal(profile->root, CONFIG_ROOT_RW);
    assert_int_equal(profile->idle_timeout_seconds, 0);
    assert_int_equal(config->logging_level, 3);
    assert_int_equal(config->logging_format, 1);

    struct config_root_part part;
    assert_int_equal(config_root_part_init(&part, config), 0);
    const struct wire_config *wire = &part.message.config;
    assert_int_equal(wire->listeners.count, 3);
    assert_int_equal(wire->templates.count, 2);
    assert_int_equal(wire->shares.count, 3);
    assert_string_equal(wire->shares.data + strlen("data") + 1, "/srv/data");
    assert_string_equal(wire->unix_socket.text, "auto");
    assert_int_equal(wire->drain_ms, 10000);
    assert_int_equal(wire->disk_max_bytes, 64ULL << 30);
    assert_int_equal(wire->gateway_memory_bytes, 2ULL << 30);
    assert_int_equal(wire->gateway_processes, 256);
    assert_int_equal(wire->gateway_answer_ms, 30000);
    config_root_part_release(&part);
    config_free(config);
}

/* What the administrator gives is permitted; beyond it a request may ask for so much. */
TEST(test_largest_disk)
{
    static const struct {
        const char *text;
        uint64_t largest;
    } rows[] = {
        {"", 65536},
        {"sandbox: {max_disk_mb: 64}\n", 512},
        {"sandbox: {max_disk_mb: 64}\nprofiles: {}\n", 256},
        {"sandbox: {max_disk_mb: 300}\nprofiles: {}\n", 300},
        {"sandbox: {max_disk_mb: 64}\nprofiles: {p: {resource_limits: {disk_mb: 70000}}}\n", 70000},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct config *config = load(rows[i].text, NULL);
        assert_row(rows[i].text, config_largest_disk_mb(config) == rows[i].largest);
        config_free(config);
    }
}

static const struct {
    const char *text;
    const char *expected;
} refused[] = {
    {"sandbox:\n  max_concurent: 5\n",
     "hutch.yaml:2:3: sandbox.max_concurent: there is no such key; did you mean max_concurrent?"},
    {"sandboxes: {}\n", "hutch.yaml:1:1: sandboxes: there is no such key; did you mean sandbox?"},
    {"\n\nxyzzy-key: 1\n", "hutch.yaml:3:1: xyzzy-key: there is no such key"},
    {"sandbox:\n  max_concurrent: many\n",
     "hutch.yaml:2:3: sandbox.max_concurrent: expected a whole number from 1 to 16384, not 'many'"},
    {"sandbox:\n  max_concurrent: 0\n", "not '0'"},
    {"sandbox:\n  max_concurrent: -1\n", "not '-1'"},
    {"sandbox:\n  max_concurrent: 1e3\n", "not '1e3'"},
    {"sandbox:\n  max_concurrent: 99999999999999999999999\n", "from 1 to 16384"},
    {"sandbox:\n  max_concurrent: [1]\n", "expected a whole number"},
    {"sandbox:\n  max_concurrent:\n", "hutch.yaml:2:3: sandbox.max_concurrent: expected a whole number"},
    {"sandbox:\n  resource_limits: {cpu: 0.0001}\n", "expected a number from 0.01 to 4096"},
    {"sandbox: 5\n", "sandbox: expected a section"},
    {"sandbox.pool.enabled: true\n", "there is no such key"},
    {"sandbox:\n  pool: {enabled: yes}\n", "sandbox.pool.enabled: expected true or false, not 'yes'"},
    {"sandbox: {pool: {min_idle: 9}}\n", "sandbox.pool.min_idle: is more than sandbox.pool.max_idle"},
    {"sandbox: {default_template: hosts}\n", "there is no template 'hosts'; did you mean host?"},
    {"sandbox: {command_blocklist: ['a(']}\n", "is no regular expression"},
    {"sandbox: {command_blocklist: [a, a]}\n", "'a' is there twice"},
    {"sandbox: {id_first: 65537}\n", "multiple of 65536"},
    {"sandbox: {id_first: 1879048192}\n", "sandbox.id_last: is less than"},
    {"server: {listen: 127.0.0.1:80}\n", "server.listen: expected a list of addresses"},
    {"server: {listen: ['example.org:80']}\n", "not 'example.org:80'"},
    {"server: {listen: ['127.0.0.1']}\n", "not '127.0.0.1'"},
    {"server: {listen: ['127.0.0.1:65536']}\n", "not '127.0.0.1:65536'"},
    {"server: {listen: ['127.0.0.1:+5']}\n", "not '127.0.0.1:+5'"},
    {"server: {listen: ['::1:80']}\n", "not '::1:80'"},
    {"server: {listen: ['localhost:80', '127.0.0.1:80']}\n", "is there twice"},
    {"server: {listen: [], unix_socket: off}\n", "nobody could call"},
    {"server: {listen: ['0.0.0.0:80'], auth: off}\n", "server.auth: off is for loopback addresses only"},
    {"server: {listen: ['[::]:80'], auth: off}\n", "server.auth: off is for loopback addresses only"},
    {"server: {auth: of}\n", "server.auth: expected required or off, not 'of'"},
    {"server: {tls_key: /a}\n", "server.tls_certificate: a certificate and its key go together"},
    {"server: {tls_key: a/b}\n", "expected an absolute path, or nothing"},
    {"server: {tls_key: /a/../b}\n", "expected an absolute path"},
    {"server: {unix_socket: run/sock}\n", "expected an absolute path of at most 107 bytes, auto or off"},
    {"server: {hosts: ['a b']}\n", "expected a list of host names"},
    {"server: {cors_origins: ['https://a/b']}\n", "expected a list of origins"},
    {"server: {cors_origins: ['*']}\n", "expected a list of origins"},
    {"audit: {database_path: /var/x}\n", "a relative path"},
    {"audit: {database_path: ../x}\n", "a relative path"},
    {"templates: {host: /srv}\n", "this name is taken"},
    {"templates: {a b: /srv}\n", "templates.a b: expected a name"},
    {"templates: {x: srv}\n", "templates.x: expected an absolute path, or host"},
    {"templates: [x]\n", "templates: expected a section with names"},
    {"shares: {x: {folder: /srv}}\n", "shares.x: expected both folder and access"},
    {"shares: {x: {folder: /srv, access: r}}\n", "shares.x.access: expected ro or rw, not 'r'"},
    {"shares: {x: /srv}\n", "shares.x: expected a section"},
    {"profiles: {p.q: {usr: root}}\n", "profiles.p.q.usr: there is no such key; did you mean user?"},
    {"profiles: {p: {root: rw}}\n", "profiles.p.root: template host can't be written"},
    {"profiles: {p: {template: x}}\n", "profiles.p.template: there is no template 'x'"},
    {"profiles: {p: {tools: [shell]}}\n", "a list of shell_exec, file_read, file_write, file_list or http_request"},
    {"profiles: {p: {env: {1A: x}}}\n", "'1A' can't be a name here"},
    {"profiles: {p: {files: {../x: y}}}\n", "'../x' can't be a name here"},
    {"profiles: {p: {env: {A: [x]}}}\n", "profiles.p.env: expected names with texts"},
    {"logging: {level: loud}\n", "expected debug, info, warn or error, not 'loud'"},
    {"server: &a {auth: off}\nsandbox: *a\n", "can't be used here"},
    {"server: &a {}\n", "anchors"},
    {"server: !!map {}\n", "tags"},
    {"server: {auth: !!str off}\n", "tags"},
    {"server: {auth: off, auth: off}\n", "hutch.yaml:1:"},
    {"server: {}\nserver: {}\n", "hutch.yaml:2:1"},
    {"--- {}\n--- {}\n", "more than one document"},
    {"[1, 2]\n", "expected sections"},
    {"just text\n", "expected sections"},
    {"server:\n\tauth: off\n", "hutch.yaml:2:"},
    {"server: {auth: off\n", "hutch.yaml:"},
    {"? [a]\n: b\n", "a key must be a text"},
    {"server: {auth: \"o\\0ff\"}\n", "a NUL can't be in it"},
    {"server: {auth: \xff}\n", "hutch.yaml:1:16: this byte is not UTF-8"},
    {"server: {auth: \xed\xa0\x80}\n", "not UTF-8"},
    {"server: {auth: \x1b[31m}\n", "control characters"},
    {"a: {a: {a: {a: {a: {a: {a: {a: {a: {a: 1}}}}}}}}}\n", "nested too deep"},
};

TEST(test_refused)
{
    for (size_t i = 0; i < COUNT(refused); i++)
        refuse(refused[i].text, strlen(refused[i].text), NULL, refused[i].expected, 1);
    refuse("a: 1\nb: 2\nserver: {auth: x}\n", 28, NULL, "hutch.yaml:3:10: server.auth", 3);
    refuse("a\0b", 3, NULL, "control characters", 1);
}

static char *repeat(const char *part, size_t count, const char *end)
{
    char *text = calloc(1, strlen(part) * count + strlen(end) + 1);

    assert_non_null(text);
    for (size_t i = 0; i < count; i++)
        memcpy(text + i * strlen(part), part, strlen(part));
    (void)strcat(text, end);
    return text;
}

TEST(test_hostile)
{
    static const struct {
        const char *part;
        size_t count;
        const char *expected;
    } rows[] = {
        {"[", 100000, "hutch.yaml:"},       {"{a: ", 30000, "hutch.yaml:"},  {"- ", 8000, "hutch.yaml:"},
        {"a: 1\n", 20000, "too many keys"}, {"# x\n", 40000, "larger than"}, {"? a\n", 17000, "too many keys"},
        {"{a,", 10000, "hutch.yaml:"},      {"- - - ", 5000, "hutch.yaml:"}, {"\"", 100001, "hutch.yaml:"},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        char *text = repeat(rows[i].part, rows[i].count, "\n");
        refuse(text, strlen(text), NULL, rows[i].expected, 1);
        free(text);
    }
}

TEST(test_environment)
{
    static char listen[] = "HUTCH_SERVER_LISTEN=127.0.0.1:1, [::1]:2";
    static char blocklist[] = "HUTCH_SANDBOX_COMMAND_BLOCKLIST=a,b\nc";
    static char memory[] = "HUTCH_SANDBOX_RESOURCE_LIMITS_MEMORY_MB=77";
    static char other[] = "HUTCH_STATE=/x";
    static char key[] = "HUTCH_API_KEY=secret";
    char *environment[] = {listen, blocklist, memory, other, key, NULL};
    struct config *config = load("sandbox: {resource_limits: {memory_mb: 99, disk_mb: 9}}\n", environment);

    assert_int_equal(config->server.listen.count, 2);
    assert_string_equal(config->server.listen.items[1], "[::1]:2");
    assert_int_equal(config->sandbox.command_blocklist.count, 2);
    assert_string_equal(config->sandbox.command_blocklist.items[0], "a,b");
    assert_int_equal(config->sandbox.limits.memory_mb, 77);
    assert_int_equal(config->sandbox.limits.disk_mb, 9);
    config_free(config);
}

TEST(test_environment_refused)
{
    static const struct {
        const char *variable;
        const char *expected;
    } rows[] = {
        {"HUTCH_SERVER_LISTENS=127.0.0.1:1",
         "HUTCH_SERVER_LISTENS: there is no such key; did you mean HUTCH_SERVER_LISTEN?"},
        {"HUTCH_AUDIT_SYNC=never", "HUTCH_AUDIT_SYNC: audit.sync: expected interval or always, not 'never'"},
        {"HUTCH_PROFILES_X_USER=root", "in the file only"},
        {"HUTCH_TEMPLATES_X=/srv", "in the file only"},
        {"HUTCH_SERVER_AUTH=", "expected required or off, not ''"},
        {"HUTCH_SANDBOX_XXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXX=1",
         "no such key"},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        char text[256];
        char *environment[] = {text, NULL};
        (void)snprintf(text, sizeof text, "%s", rows[i].variable);
        refuse("", 0, environment, rows[i].expected, 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults),    cmocka_unit_test(test_example_is_default),
        cmocka_unit_test(test_manual),      cmocka_unit_test(test_every_key_counts),
        cmocka_unit_test(test_file),        cmocka_unit_test(test_largest_disk),
        cmocka_unit_test(test_refused),     cmocka_unit_test(test_hostile),
        cmocka_unit_test(test_environment), cmocka_unit_test(test_environment_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
