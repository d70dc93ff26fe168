/*
 * compile-filter: turns a seccomp filter of policy/seccomp/ into the BPF program the kernel wants, as a C array.
 *
 * Runs at build time only (libseccomp at run time would cost every sandbox 2 ms). Its input is our own policy; the
 * language is described at the top of policy/seccomp/refused.
 *
 *     compile-filter FOLDER NAME > NAME.inc
 */
#include <err.h>
#include <errno.h>
#include <seccomp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <linux/filter.h>

enum { LINE_MAX_BYTES = 512, DEPTH_MAX = 4, CONDITIONS_MAX = 3 };

static const char *policy_folder;

static uint32_t parse_action(const char *word, const char *where)
{
    if (strcmp(word, "allow") == 0)
        return SCMP_ACT_ALLOW;
    if (strcmp(word, "EPERM") == 0)
        return SCMP_ACT_ERRNO(EPERM);
    if (strcmp(word, "ENOSYS") == 0)
        return SCMP_ACT_ERRNO(ENOSYS);
    errx(1, "%s: unknown action %s", where, word);
}

static uint64_t parse_number(const char *word, const char *where)
{
    char *end;

    if (word == NULL)
        errx(1, "%s: a number is missing", where);
    uint64_t number = strtoull(word, &end, 0);
    if (*end != '\0' || end == word)
        errx(1, "%s: %s is not a number", where, word);
    return number;
}

static struct scmp_arg_cmp parse_condition(char **rest, const char *where)
{
    unsigned argument = (unsigned)parse_number(strtok_r(NULL, " ", rest), where);
    const char *operator= strtok_r(NULL, " ", rest);
    uint64_t value = parse_number(strtok_r(NULL, " ", rest), where);

    if (operator!= NULL && strcmp(operator, "is") == 0)
        return SCMP_CMP64(argument, SCMP_CMP_MASKED_EQ, UINT32_MAX, value);
    if (operator!= NULL && strcmp(operator, "has") == 0)
        return SCMP_CMP64(argument, SCMP_CMP_MASKED_EQ, value, value);
    if (operator!= NULL && strcmp(operator, "not") == 0)
        return SCMP_CMP64(argument, SCMP_CMP_NE, value);
    if (operator!= NULL && strcmp(operator, "above") == 0)
        return SCMP_CMP64(argument, SCMP_CMP_GT, value);
    errx(1, "%s: unknown condition", where);
}

/* A call's number; __NR_SCMP_ERROR when this architecture never had it. "#N" is for calls newer than the library. */
static int parse_call(const char *word, const char *where)
{
    if (word[0] == '#')
        return (int)parse_number(word + 1, where);
    return seccomp_syscall_resolve_name(word);
}

static void add_rule(scmp_filter_ctx filter, uint32_t action, const char *call, unsigned count,
                     const struct scmp_arg_cmp *conditions, const char *where)
{
    int number = parse_call(call, where);

    if (number < 0)
        return;
    int r = seccomp_rule_add_array(filter, action, number, count, conditions);
    if (r < 0)
        errx(1, "%s: %s: %s", where, call, strerror(-r));
}

static void parse_rule(scmp_filter_ctx filter, const char *verb, char **rest, const char *where)
{
    uint32_t action = parse_action(verb, where);
    char *calls[64];
    size_t count = 0;

    for (char *word = strtok_r(NULL, " ", rest); word != NULL; word = strtok_r(NULL, " ", rest)) {
        if (strcmp(word, "if") == 0) {
            struct scmp_arg_cmp conditions[CONDITIONS_MAX];
            unsigned n = 0;
            do {
                if (n == CONDITIONS_MAX)
                    errx(1, "%s: too many conditions", where);
                conditions[n++] = parse_condition(rest, where);
            } while ((word = strtok_r(NULL, " ", rest)) != NULL && strcmp(word, "and") == 0);
            if (word != NULL || count != 1)
                errx(1, "%s: expected CALL if CONDITION [and CONDITION]", where);
            add_rule(filter, action, calls[0], n, conditions, where);
            return;
        }
        if (count == sizeof calls / sizeof *calls)
            errx(1, "%s: too many calls on one line", where);
        calls[count++] = word;
    }
    for (size_t i = 0; i < count; i++)
        add_rule(filter, action, calls[i], 0, NULL, where);
}

static void set_up(scmp_filter_ctx *filter, uint32_t default_action, const char *where)
{
    if (*filter != NULL)
        errx(1, "%s: a second default", where);
    *filter = seccomp_init(default_action);
    /* 2: a binary tree over the call numbers; the kernel walks the program for every number when it is loaded. */
    if (*filter == NULL || seccomp_attr_set(*filter, SCMP_FLTATR_CTL_OPTIMIZE, 2) < 0 ||
        seccomp_attr_set(*filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS) < 0)
        errx(1, "%s: libseccomp refuses", where);
}

static void parse_file(scmp_filter_ctx *filter, const char *name, int depth)
{
    char path[4096];
    char line[LINE_MAX_BYTES];
    int number = 0;

    (void)snprintf(path, sizeof path, "%s/%s", policy_folder, name);
    FILE *file = fopen(path, "re");
    if (file == NULL || depth > DEPTH_MAX)
        err(1, "%s", path);
    while (fgets(line, sizeof line, file) != NULL) {
        char where[4200];
        char *rest = NULL;
        (void)snprintf(where, sizeof where, "%s:%d", path, ++number);
        if (strchr(line, '\n') == NULL)
            errx(1, "%s: line too long", where);
        if (line[0] == '#')
            continue;
        line[strcspn(line, "\n")] = '\0';
        char *verb = strtok_r(line, " ", &rest);
        if (verb == NULL)
            continue;
        if (strcmp(verb, "include") == 0)
            parse_file(filter, strtok_r(NULL, " ", &rest), depth + 1);
        else if (strcmp(verb, "default") == 0)
            set_up(filter, parse_action(strtok_r(NULL, " ", &rest), where), where);
        else if (*filter == NULL)
            errx(1, "%s: a rule before the default", where);
        else
            parse_rule(*filter, verb, &rest, where);
    }
    (void)fclose(file);
}

static void print_program(scmp_filter_ctx filter, const char *name)
{
    FILE *program = tmpfile();
    struct sock_filter instruction;
    size_t count = 0;

    if (program == NULL || seccomp_export_bpf(filter, fileno(program)) < 0)
        errx(1, "cannot export %s", name);
    rewind(program);
    printf("/* made by compile-filter from policy/seccomp/%s */\n", name);
    while (fread(&instruction, sizeof instruction, 1, program) == 1) {
        printf("{0x%04x, %u, %u, 0x%08x},\n", instruction.code, instruction.jt, instruction.jf, instruction.k);
        count++;
    }
    if (count == 0 || count > BPF_MAXINSNS)
        errx(1, "%s: %zu instructions", name, count);
    (void)fclose(program);
}

int main(int argc, char **argv)
{
    scmp_filter_ctx filter = NULL;

    if (argc != 3)
        errx(2, "usage: compile-filter FOLDER NAME");
    policy_folder = argv[1];
    parse_file(&filter, argv[2], 0);
    if (filter == NULL)
        errx(1, "%s: no default", argv[2]);
    print_program(filter, argv[2]);
    seccomp_release(filter);
    return 0;
}
