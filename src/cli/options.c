#include "cli/options.h"

#include "base/nearest.h"
#include "base/parse.h"
#include "keeper/request.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NOBODY = 65534 };

#define MIB (UINT64_C(1) << 20)

typedef int parse_option(struct run_options *options, const char *value, struct error *err);

/* A number that can't be, said with what could. */
static int bad_value(struct error *err, const char *option, const char *value, const char *expected)
{
    return error_set(err, ERROR_INVALID, 0, "%s: '%.100s' is not %s", option, value, expected);
}

static int take_size(const char *option, const char *value, uint64_t least, uint64_t *ret_bytes, struct error *err)
{
    uint64_t bytes;

    if (parse_size(value, &bytes) < 0 || bytes < least || bytes > INT64_MAX)
        return bad_value(err, option, value, "a size such as 64M or 2G (a whole number and K, M, G or T)");
    *ret_bytes = bytes;
    return 0;
}

static int take_count(const char *option, const char *value, uint64_t most, uint64_t *ret_count, struct error *err)
{
    uint64_t count;

    if (parse_u64(value, &count) < 0 || count == 0 || count > most)
        return bad_value(err, option, value, "a whole number above 0 that this option can take");
    *ret_count = count;
    return 0;
}

static int set_template(struct run_options *options, const char *value, struct error *err)
{
    (void)options;
    if (strcmp(value, "host") != 0)
        return error_set(err, ERROR_NOT_FOUND, 0,
                         "--template: there is no template '%.100s'; there is: host. A folder with a root file system "
                         "is given with --root",
                         value);
    return 0;
}

static int set_root(struct run_options *options, const char *value, struct error *err)
{
    (void)err;
    options->root = value;
    return 0;
}

static int set_root_rw(struct run_options *options, const char *value, struct error *err)
{
    (void)value;
    (void)err;
    options->root_rw = true;
    return 0;
}

static int set_memory(struct run_options *options, const char *value, struct error *err)
{
    return take_size("--memory", value, 1, &options->memory_bytes, err);
}

static int set_cpus(struct run_options *options, const char *value, struct error *err)
{
    if (parse_cpus_milli(value, &options->cpu_milli) < 0 || options->cpu_milli > UINT32_MAX)
        return bad_value(err, "--cpus", value, "a number of CPUs such as 0.5 or 2");
    return 0;
}

static int set_processes(struct run_options *options, const char *value, struct error *err)
{
    return take_count("--processes", value, UINT32_MAX, &options->processes, err);
}

static int set_disk(struct run_options *options, const char *value, struct error *err)
{
    return take_size("--disk", value, 1, &options->disk_bytes, err);
}

static int set_file_size(struct run_options *options, const char *value, struct error *err)
{
    return take_size("--file-size", value, 1, &options->file_bytes, err);
}

static int set_open_files(struct run_options *options, const char *value, struct error *err)
{
    options->open_files_asked = true;
    return take_count("--open-files", value, 1 << 20, &options->open_files, err);
}

static int set_timeout(struct run_options *options, const char *value, struct error *err)
{
    if (parse_duration_ms(value, &options->timeout_ms) < 0 || options->timeout_ms > INT32_MAX)
        return bad_value(err, "--timeout", value, "a duration such as 500ms, 10s, 5m or 1h");
    return 0;
}

static int set_user(struct run_options *options, const char *value, struct error *err)
{
    uint64_t uid;

    if (strcmp(value, "root") == 0)
        uid = 0;
    else if (strcmp(value, "nobody") == 0)
        uid = NOBODY;
    else if (parse_u64(value, &uid) < 0 || uid >= WIRE_INNER_IDS)
        return bad_value(err, "--user", value, "root, nobody or a number below 65536");
    options->uid = (uint32_t)uid;
    return 0;
}

static int set_filter(struct run_options *options, const char *value, struct error *err)
{
    if (strcmp(value, "tight") != 0 && strcmp(value, "standard") != 0)
        return bad_value(err, "--filter", value, "tight or standard");
    options->filter = value[0] == 't' ? WIRE_FILTER_TIGHT : WIRE_FILTER_STANDARD;
    return 0;
}

static int add_env(struct run_options *options, const char *value, struct error *err)
{
    if (value[0] == '=' || value[0] == '\0')
        return bad_value(err, "--env", value, "NAME=value, or NAME to pass on your own");
    if (options->env_count == OPTIONS_ENV_MAX)
        return error_set(err, ERROR_LIMIT, 0, "--env: at most %d", OPTIONS_ENV_MAX);
    options->env[options->env_count++] = value;
    return 0;
}

static int set_folder(struct run_options *options, const char *value, struct error *err)
{
    if (value[0] != '/' || strlen(value) > 4000)
        return bad_value(err, "--workdir", value, "an absolute path inside the sandbox");
    options->folder = value;
    return 0;
}

/* HOST[:GUEST][:ro|rw] */
static int add_dir(struct run_options *options, const char *value, struct error *err)
{
    const char *colon = strchr(value, ':');
    size_t host = colon != NULL ? (size_t)(colon - value) : strlen(value);
    const char *rest = colon != NULL ? colon + 1 : "";
    const char *mode = strrchr(rest, ':') != NULL ? strrchr(rest, ':') + 1 : rest;
    bool has_mode = strcmp(mode, "ro") == 0 || strcmp(mode, "rw") == 0;

    if (options->dirs == NULL)
        options->dirs = calloc(WIRE_DIRS_MAX, sizeof *options->dirs);
    if (options->dirs == NULL)
        return error_set(err, ERROR_SYSTEM, ENOMEM, "--dir");
    if (options->dir_count == WIRE_DIRS_MAX)
        return error_set(err, ERROR_LIMIT, 0, "--dir: at most %d folders", WIRE_DIRS_MAX);
    struct option_dir *dir = &options->dirs[options->dir_count];
    size_t guest = has_mode ? (mode == rest ? 0 : (size_t)(mode - rest) - 1) : strlen(rest);
    if (host == 0 || host >= sizeof dir->host || guest >= sizeof dir->guest)
        return bad_value(err, "--dir", value, "HOST[:GUEST][:ro|rw]");
    memcpy(dir->host, value, host);
    memcpy(dir->guest, guest > 0 ? rest : "/workspace", guest > 0 ? guest : sizeof "/workspace");
    if (!request_is_guest_path(dir->guest) || strchr(dir->guest, ':') != NULL)
        return error_set(err, ERROR_INVALID, 0,
                         "--dir: '%.100s' must be an absolute path inside the sandbox without a colon, not /, /proc or "
                         "/dev; behind it may come :ro or :rw",
                         dir->guest);
    dir->writable = !has_mode || strcmp(mode, "rw") == 0;
    options->dir_count++;
    return 0;
}

/* FROM:TO, of which one is the caller's and one the sandbox's. */
static int add_copy(struct option_copies *copies, const char *option, bool is_put, const char *value, struct error *err)
{
    const char *colon = strchr(value, ':');
    size_t from = colon != NULL ? (size_t)(colon - value) : 0;
    size_t to = colon != NULL ? strlen(colon + 1) : 0;

    if (copies->list == NULL)
        copies->list = calloc(OPTIONS_COPIES_MAX, sizeof *copies->list);
    if (copies->list == NULL)
        return error_set(err, ERROR_SYSTEM, ENOMEM, "%s", option);
    if (copies->count == OPTIONS_COPIES_MAX)
        return error_set(err, ERROR_LIMIT, 0, "%s: at most %d files", option, OPTIONS_COPIES_MAX);
    struct option_copy *copy = &copies->list[copies->count];
    if (from == 0 || to == 0 || from >= sizeof copy->host || to >= sizeof copy->host)
        return bad_value(err, option, value, is_put ? "HOST:GUEST, two paths" : "GUEST:HOST, two paths");
    memcpy(is_put ? copy->host : copy->guest, value, from);
    memcpy(is_put ? copy->guest : copy->host, colon + 1, to);
    copies->count++;
    return 0;
}

static int add_put(struct run_options *options, const char *value, struct error *err)
{
    return add_copy(&options->puts, "--put", true, value, err);
}

static int add_get(struct run_options *options, const char *value, struct error *err)
{
    return add_copy(&options->gets, "--get", false, value, err);
}

/* NAME[,NAME...] */
static int add_only(struct run_options *options, const char *value, struct error *err)
{
    char *rest = NULL;

    if (options->only_words != NULL)
        return error_set(err, ERROR_INVALID, 0, "--only: give one list, separated by commas");
    if (value[0] == '\0' || value[0] == ',' || value[strlen(value) - 1] == ',' || strstr(value, ",,") != NULL)
        return bad_value(err, "--only", value, "a list of programs such as ls,cat,python3");
    options->only_words = strdup(value);
    if (options->only_words == NULL)
        return error_set(err, ERROR_SYSTEM, ENOMEM, "--only");
    for (char *word = strtok_r(options->only_words, ",", &rest); word != NULL; word = strtok_r(NULL, ",", &rest)) {
        if (options->only_count == WIRE_ONLY_MAX)
            return error_set(err, ERROR_LIMIT, 0, "--only: at most %d programs", WIRE_ONLY_MAX);
        options->only[options->only_count++] = word;
    }
    return 0;
}

/* none, full, or allow=HOST[,HOST...]; what a HOST may look like is the airlock's to say. */
static int set_net(struct run_options *options, const char *value, struct error *err)
{
    static const char front[] = "allow=";
    const char *list = value + sizeof front - 1;
    char *rest = NULL;

    if (options->net_words != NULL || options->net_full)
        return error_set(err, ERROR_INVALID, 0, "--net: give it once, with hosts separated by commas");
    options->net_full = strcmp(value, "full") == 0;
    if (options->net_full || strcmp(value, "none") == 0)
        return 0;
    if (strncmp(value, front, sizeof front - 1) != 0)
        return bad_value(err, "--net", value, "none, full or allow=HOST[:PORT][,HOST...]");
    if (list[0] == '\0' || list[0] == ',' || list[strlen(list) - 1] == ',' || strstr(list, ",,") != NULL)
        return bad_value(err, "--net", value, "allow= and a list of hosts such as example.com,*.example.org:443");
    options->net_words = strdup(list);
    if (options->net_words == NULL)
        return error_set(err, ERROR_SYSTEM, ENOMEM, "--net");
    for (char *word = strtok_r(options->net_words, ",", &rest); word != NULL; word = strtok_r(NULL, ",", &rest)) {
        if (options->net_count == OPTIONS_NET_MAX)
            return error_set(err, ERROR_LIMIT, 0, "--net: at most %d hosts", OPTIONS_NET_MAX);
        options->net[options->net_count++] = word;
    }
    return 0;
}

static int set_state(struct run_options *options, const char *value, struct error *err)
{
    (void)err;
    options->state = value;
    return 0;
}

static int set_tty(struct run_options *options, const char *value, struct error *err)
{
    (void)value;
    (void)err;
    options->tty = true;
    return 0;
}

static int set_stats(struct run_options *options, const char *value, struct error *err)
{
    (void)value;
    (void)err;
    options->stats = true;
    return 0;
}

static int set_json(struct run_options *options, const char *value, struct error *err)
{
    (void)value;
    (void)err;
    options->json = true;
    return 0;
}

static int set_help(struct run_options *options, const char *value, struct error *err)
{
    (void)value;
    (void)err;
    options->help = true;
    return 0;
}

static const struct {
    const char *name;
    const char *value; /* NULL: takes none */
    parse_option *parse;
    const char *help;
} rows[] = {
    {"--template", "NAME", set_template, "what the root is made of: host, this machine's own /usr (default)"},
    {"--root", "FOLDER", set_root, "a folder with a root file system, instead of a template"},
    {"--rw-root", NULL, set_root_rw, "let the command change the root; changes end with the sandbox (needs --root)"},
    {"--memory", "SIZE", set_memory, "memory, files in the sandbox included (default 512M)"},
    {"--cpus", "N", set_cpus, "CPUs, such as 0.5 (default: all)"},
    {"--processes", "N", set_processes, "processes and threads (default 256)"},
    {"--disk", "SIZE", set_disk,
     "all files the sandbox may write: kept in memory up to half of --memory, else in a file (default 256M or "
     "half of --memory)"},
    {"--file-size", "SIZE", set_file_size, "the largest file (default: the disk)"},
    {"--open-files", "N", set_open_files, "open files per process (default 1024)"},
    {"--timeout", "TIME", set_timeout, "end the command after 500ms, 10s, 5m, 1h ... (default: never)"},
    {"--user", "USER", set_user, "root, nobody (default) or a number; inside the sandbox only"},
    {"--filter", "NAME", set_filter, "seccomp filter: standard (default) or tight (no sockets)"},
    {"--env", "NAME[=VALUE]", add_env, "set a variable, or pass on your own; repeatable"},
    {"--workdir", "PATH", set_folder, "working folder (default /workspace)"},
    {"--dir", "HOST[:GUEST][:ro|rw]", add_dir,
     "show a folder of this machine at GUEST (default /workspace), read-write unless :ro; files made in it are "
     "yours; repeatable"},
    {"--put", "HOST:GUEST", add_put, "copy a file into the sandbox before the command starts; repeatable"},
    {"--get", "GUEST:HOST", add_get, "copy a file out of the sandbox when the command has ended; repeatable"},
    {"--tty", NULL, set_tty, "give the command a terminal, as bash and vim want it; also -t"},
    {"--only", "NAME[,NAME...]", add_only,
     "let nothing be executed but these programs of /usr: held by the kernel, and no program makes code at run time "
     "(node needs --jitless); a listed interpreter still runs any script"},
    {"--net", "none|allow=HOST,...|full", set_net,
     "what can be reached: nothing (default), these hosts (example.com, *.example.com, example.com:443), or every host "
     "by its name; only TCP, and only through the airlock"},
    {"--stats", NULL, set_stats, "print time per step, CPU, memory and processes to standard error"},
    {"--json", NULL, set_json, "print one JSON object with output and result instead of the output"},
    {"--state", "FOLDER", set_state, "where Hutch keeps its files (default /var/lib/hutch, or HUTCH_STATE)"},
    {"--help", NULL, set_help, "this text"},
};

void options_print_help(void)
{
    printf("usage: hutch run [options] -- COMMAND [ARGUMENT...]\n\n"
           "Runs a command in a sandbox of its own: own user ids, processes, files and network (none\n"
           "but what --net allows).\n\n");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char left[64];
        (void)snprintf(left, sizeof left, "%s%s%s", rows[i].name, rows[i].value != NULL ? " " : "",
                       rows[i].value != NULL ? rows[i].value : "");
        if (strlen(left) > 24)
            printf("  %s\n  %-24s %s\n", left, "", rows[i].help);
        else
            printf("  %-24s %s\n", left, rows[i].help);
    }
    printf("\nExit status: the command's own; 128+N when signal N ended it; 124 timeout; 125 Hutch itself failed;\n"
           "126 the command can't be executed; 127 there is no such command.\n\n"
           "  sudo hutch run -- python3 -c 'print(1+1)'\n"
           "  sudo hutch run --dir .:/workspace --timeout 1m --memory 1G -- make test\n"
           "  sudo hutch run --put data.csv:in.csv --get out.png:plot.png -- python3 plot.py\n");
}

static int unknown_option(const char *name, struct error *err)
{
    struct nearest nearest = nearest_init(name);

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        nearest_offer(&nearest, rows[i].name);
    if (nearest.best != NULL)
        return error_set(err, ERROR_INVALID, 0, "unknown option %.60s; did you mean %s?", name, nearest.best);
    return error_set(err, ERROR_INVALID, 0, "unknown option %.60s; 'hutch run --help' lists them", name);
}

static const struct {
    const char *name;
    const char *stands_for;
} short_names[] = {{"-h", "--help"}, {"-t", "--tty"}};

/* One option at *argv, which moves behind it. */
static int take_option(char ***argv, struct run_options *options, struct error *err)
{
    const char *word = *(*argv)++;
    const char *equals = strchr(word, '=');
    size_t length = equals != NULL ? (size_t)(equals - word) : strlen(word);
    char name[64];

    (void)snprintf(name, sizeof name, "%.*s", (int)(length < 63 ? length : 63), word);
    for (size_t i = 0; i < sizeof short_names / sizeof *short_names; i++) {
        if (strcmp(name, short_names[i].name) == 0)
            (void)snprintf(name, sizeof name, "%s", short_names[i].stands_for);
    }
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (strcmp(name, rows[i].name) != 0)
            continue;
        if (rows[i].value == NULL)
            return equals != NULL ? error_set(err, ERROR_INVALID, 0, "%s takes no value", name)
                                  : rows[i].parse(options, NULL, err);
        const char *value = equals != NULL ? equals + 1 : **argv;
        if (equals == NULL && value != NULL)
            (*argv)++;
        if (value == NULL)
            return error_set(err, ERROR_INVALID, 0, "%s needs a value: %s %s", name, name, rows[i].value);
        return rows[i].parse(options, value, err);
    }
    return unknown_option(name, err);
}

static int check_together(struct run_options *options, struct error *err)
{
    if (options->disk_bytes == 0)
        options->disk_bytes = options->memory_bytes / 2 < 256 * MIB ? options->memory_bytes / 2 : 256 * MIB;
    if (options->root_rw && options->root == NULL)
        return error_set(err, ERROR_INVALID, 0, "--rw-root needs --root: template host is read-only");
    if (options->only_count > 0 && options->root != NULL)
        return error_set(err, ERROR_INVALID, 0, "--only works with template host, not with --root");
    options->disk_is_image = options->disk_bytes > options->memory_bytes / 2;
    if (options->disk_is_image && options->disk_bytes < MIB)
        return error_set(err, ERROR_INVALID, 0, "--disk: more than half of --memory is kept in a file, of at least 1M");
    if (options->tty && options->json)
        return error_set(err, ERROR_INVALID, 0, "--tty shows a terminal's output, --json collects it: choose one");
    if (options->command == NULL || options->command[0] == NULL)
        return error_set(err, ERROR_INVALID, 0, "no command; usage: hutch run [options] -- COMMAND [ARGUMENT...]");
    if (options->command[0][0] == '\0')
        return error_set(err, ERROR_INVALID, 0, "the command is an empty word");
    return 0;
}

const char *options_default_state(void)
{
    const char *state = getenv("HUTCH_STATE");

    return state != NULL && state[0] != '\0' ? state : "/var/lib/hutch";
}

int options_parse(char **argv, struct run_options *ret_options, struct error *err)
{
    struct run_options *options = ret_options;

    *options = (struct run_options){
        .memory_bytes = 512 * MIB,
        .processes = 256,
        .open_files = 1024,
        .uid = NOBODY,
        .filter = WIRE_FILTER_STANDARD,
        .folder = "/workspace",
        .state = options_default_state(),
    };
    while (*argv != NULL && (*argv)[0] == '-') {
        if (strcmp(*argv, "--") == 0) {
            argv++;
            break;
        }
        int r = take_option(&argv, options, err);
        if (r < 0)
            return r;
        if (options->help)
            return 0;
    }
    options->command = argv;
    return check_together(options, err);
}

void options_release(struct run_options *options)
{
    free(options->dirs);
    options->dirs = NULL;
    free(options->puts.list);
    free(options->gets.list);
    options->puts.list = NULL;
    options->gets.list = NULL;
    free(options->only_words);
    options->only_words = NULL;
    free(options->net_words);
    options->net_words = NULL;
}
