#include "gateway/config/print.h"

#include "gateway/config/keys.h"

#include <stdio.h>
#include <string.h>

static const char head[] =
    "# Hutch's configuration, with every key and its default: a file that says nothing means the same. A key may be "
    "left\n"
    "# out; one that there is not, or a wrong value, keeps the daemon from starting. Each key can also be set in the\n"
    "# environment, by the name behind it, which goes before the file.\n";

static int indent(struct buf *text, unsigned depth)
{
    return buf_printf(text, "%*s", (int)(2 * depth), "");
}

/* A text as YAML takes it, whatever is in it: single quotes, a quote in it twice. */
static int quote(struct buf *text, const char *value, size_t length)
{
    int r = buf_append(text, "'", 1);

    for (size_t i = 0; r == 0 && i < length; i++)
        r = value[i] == '\'' ? buf_append(text, "''", 2) : buf_append(text, &value[i], 1);
    return r < 0 ? r : buf_append(text, "'", 1);
}

static int print_list(struct buf *text, const char *lines, unsigned depth)
{
    int r = lines[0] == '\0' ? buf_printf(text, " []\n") : buf_printf(text, "\n");

    while (r == 0 && lines[0] != '\0') {
        size_t length = strcspn(lines, "\n");
        r = indent(text, depth + 1);
        if (r == 0)
            r = buf_printf(text, "- ");
        if (r == 0)
            r = quote(text, lines, length);
        if (r == 0)
            r = buf_printf(text, "\n");
        lines += length + (lines[length] == '\n' ? 1 : 0);
    }
    return r;
}

static int print_default(struct buf *text, const struct config_key *key, unsigned depth)
{
    if (config_key_is_list(key))
        return print_list(text, key->otherwise, depth);
    bool is_plain = key->type <= CONFIG_CHOICE;
    int r = buf_printf(text, " ");
    if (r == 0)
        r = is_plain ? buf_printf(text, "%s", key->otherwise) : quote(text, key->otherwise, strlen(key->otherwise));
    return r < 0 ? r : buf_printf(text, "\n");
}

static int print_comment(struct buf *text, const struct config_key *key, unsigned depth)
{
    int r = indent(text, depth);

    if (r == 0)
        r = buf_printf(text, "# %s\n", key->help);
    if (r == 0)
        r = indent(text, depth);
    if (r == 0)
        r = buf_printf(text, "# ");
    if (r == 0)
        r = config_key_describe(key, text);
    if (r == 0)
        r = buf_printf(text, "; ");
    if (r == 0)
        r = config_key_variable(key, text);
    return r < 0 ? r : buf_printf(text, "\n");
}

/* The sections of `key` that `before` was not in already. */
static int open_sections(struct buf *text, const char *path, const char *before, unsigned *ret_depth)
{
    unsigned depth = 0;
    bool is_same = true;
    int r = 0;

    for (const char *dot = strchr(path, '.'); r == 0 && dot != NULL; dot = strchr(path, '.')) {
        size_t length = (size_t)(dot - path) + 1;
        is_same = is_same && strncmp(path, before, length) == 0;
        if (!is_same) {
            if (depth == 0)
                r = buf_printf(text, "\n");
            if (r == 0)
                r = indent(text, depth);
            if (r == 0)
                r = buf_printf(text, "%.*s:\n", (int)length - 1, path);
        } else {
            before += length;
        }
        path += length;
        depth++;
    }
    *ret_depth = depth;
    return r;
}

static int print_key(struct buf *text, const struct config_key *key, const char *before)
{
    unsigned depth = 0;
    const char *dot = strrchr(key->path, '.');
    int r = open_sections(text, key->path, before, &depth);

    if (r == 0)
        r = print_comment(text, key, depth);
    if (r == 0)
        r = indent(text, depth);
    if (r == 0)
        r = buf_printf(text, "%s:", dot + 1);
    return r < 0 ? r : print_default(text, key, depth);
}

/* What an entry of the group may have, as comments. */
static int print_group(struct buf *text, const struct config_group *group)
{
    size_t length = strlen(group->path);
    int r = buf_printf(text, "\n# %s Each may have:\n", group->help);

    for (size_t i = 0; r == 0 && i < config_key_count; i++) {
        const struct config_key *key = &config_keys[i];
        if (strncmp(key->path, group->path, length) != 0 || strncmp(key->path + length, ".*", 2) != 0)
            continue;
        const char *rest = key->path + length + 2;
        r = buf_printf(text, "#   %s%s", rest[0] == '.' ? rest + 1 : "", rest[0] == '.' ? ": " : "");
        if (r == 0)
            r = config_key_describe(key, text);
        if (r == 0)
            r = buf_printf(text, ". %s\n", key->help);
    }
    if (r < 0)
        return r;
    return buf_printf(text, "%s:%s%s", group->path, group->otherwise[0] != '\0' ? "\n" : " {}\n", group->otherwise);
}

int config_print_example(struct buf *text)
{
    const char *before = "";
    int r = buf_printf(text, "%s", head);

    for (size_t i = 0; r == 0 && i < config_key_count; i++) {
        if (config_key_is_in_group(&config_keys[i]))
            continue;
        r = print_key(text, &config_keys[i], before);
        before = config_keys[i].path;
    }
    for (size_t i = 0; r == 0 && i < config_group_count; i++)
        r = print_group(text, &config_groups[i]);
    return r;
}

/* Text for troff: a backslash doubled, nothing taken for a request. */
static int print_plain(struct buf *text, const char *words)
{
    int r = words[0] == '.' || words[0] == '\'' ? buf_printf(text, "\\&") : 0;

    for (; r == 0 && *words != '\0'; words++) {
        if (*words == '\\')
            r = buf_printf(text, "\\e");
        else if (*words == '-')
            r = buf_printf(text, "\\-");
        else if (*words == '\n')
            r = buf_printf(text, "\n.br\n");
        else
            r = buf_append(text, words, 1);
    }
    return r;
}

static int print_described(struct buf *text, const struct config_key *key)
{
    struct buf words = buf_init(ERROR_MESSAGE_MAX);
    int r = config_key_describe(key, &words);

    if (r == 0)
        r = buf_append(&words, "", 1);
    if (r == 0)
        r = print_plain(text, (const char *)words.data);
    buf_release(&words);
    return r;
}

static int print_row(struct buf *text, const struct config_key *key)
{
    int r = buf_printf(text, ".TP\n.B ");

    if (r == 0)
        r = print_plain(text, key->path);
    if (r == 0)
        r = buf_printf(text, "\n%s\n.br\n", key->help);
    if (r == 0)
        r = print_described(text, key);
    if (r < 0 || config_key_is_in_group(key))
        return r < 0 ? r : buf_printf(text, ".\n");
    r = buf_printf(text, ".\n.br\nDefault: ");
    if (r == 0)
        r = print_plain(text, key->otherwise[0] != '\0' ? key->otherwise : "nothing");
    if (r == 0)
        r = buf_printf(text, "\n.br\nEnvironment: ");
    if (r == 0)
        r = config_key_variable(key, text);
    return r < 0 ? r : buf_printf(text, "\n");
}

int config_print_manual(struct buf *text)
{
    int r =
        buf_printf(text,
                   ".TH HUTCH.YAML 5 \"\" \"Hutch %s\" \"File formats\"\n"
                   ".SH NAME\nhutch.yaml \\- configuration of hutchd(8)\n"
                   ".SH DESCRIPTION\n"
                   "hutchd reads /etc/hutch/hutch.yaml, or the file given with \\-\\-config, at its start and on\n"
                   "SIGHUP. Without a file the defaults hold. A key that there is not, or a value that it can't have,\n"
                   "keeps the daemon from starting; on SIGHUP the old configuration stays. Keys can also be set in\n"
                   "the environment, which goes before the file; the entries of a list are separated by commas there,\n"
                   "those of sandbox.command_blocklist by line ends. Names stand for * in what follows.\n"
                   ".SH KEYS\n",
                   HUTCH_VERSION);

    for (size_t i = 0; r == 0 && i < config_key_count; i++)
        r = print_row(text, &config_keys[i]);
    if (r == 0)
        r = buf_printf(text, ".SH EXAMPLE\nhutch\\-gateway \\-\\-print\\-example prints a file with all defaults.\n"
                             ".SH SEE ALSO\nhutch(1)\n");
    return r;
}
