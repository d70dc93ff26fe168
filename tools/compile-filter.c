/*
 * compile-filter: turns a seccomp filter of policy/seccomp/ into the BPF program the kernel wants, as a C array.
 *
 * Runs at build time only (libseccomp at run time would cost every sandbox 2 ms). Its input is our own policy; the
 * language is described at the top of policy/seccomp/refused. libseccomp knows the calls' numbers; the program is
 * made here, because every command waits until the kernel has checked and translated it: neighbouring calls with the
 * same answer become one range, the ranges a binary tree, and each answer one return: a sixth of the instructions that
 * libseccomp needs.
 *
 *     compile-filter FOLDER NAME > NAME.inc
 */
#include <err.h>
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__)
#define NATIVE_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define NATIVE_ARCH AUDIT_ARCH_AARCH64
#else
#error "no seccomp architecture is known for this machine"
#endif

enum {
    LINE_MAX_BYTES = 512,
    DEPTH_MAX = 4,
    CALLS_MAX = 1024, /* numbers beyond get the default */
    RULES_MAX = 32,   /* with conditions, per call */
    CONDITIONS_MAX = 3,
    X32_FIRST = 0x40000000,
    NOTHING = 6, /* no argument has this number */
};

enum operator{ IS, HAS, ANY, NOT, ABOVE };

struct condition {
    unsigned argument;
    enum operator operator;
    uint32_t value;
};

struct rule {
    uint32_t action;
    size_t condition_count;
    struct condition conditions[CONDITIONS_MAX];
};

struct call {
    uint32_t action; /* when no rule matches */
    size_t rule_count;
    struct rule rules[RULES_MAX];
};

static const char *policy_folder;
static struct call calls[CALLS_MAX + 1]; /* the last stands for all beyond */
static bool has_default;
static struct sock_filter program[BPF_MAXINSNS];
static size_t program_length;
static struct answer {
    size_t jump;
    bool when_true;
    uint32_t action;
} answers[BPF_MAXINSNS]; /* branches that still need their return */
static size_t answer_count;

static uint32_t parse_action(const char *word, const char *where)
{
    if (word != NULL && strcmp(word, "allow") == 0)
        return SECCOMP_RET_ALLOW;
    if (word != NULL && strcmp(word, "EPERM") == 0)
        return SECCOMP_RET_ERRNO | EPERM;
    if (word != NULL && strcmp(word, "ENOSYS") == 0)
        return SECCOMP_RET_ERRNO | ENOSYS;
    errx(1, "%s: unknown action", where);
}

static uint32_t parse_number(const char *word, const char *where)
{
    char *end;

    if (word == NULL)
        errx(1, "%s: a number is missing", where);
    unsigned long number = strtoul(word, &end, 0);
    if (*end != '\0' || end == word || number > UINT32_MAX)
        errx(1, "%s: %s is not a number", where, word);
    return (uint32_t)number;
}

static struct condition parse_condition(char **rest, const char *where)
{
    static const char *const words[] = {[IS] = "is", [HAS] = "has", [ANY] = "any", [NOT] = "not", [ABOVE] = "above"};
    struct condition condition = {.argument = parse_number(strtok_r(NULL, " ", rest), where)};
    const char *word = strtok_r(NULL, " ", rest);

    condition.value = parse_number(strtok_r(NULL, " ", rest), where);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (word != NULL && strcmp(word, words[i]) == 0 && condition.argument < 6) {
            condition.operator=(enum operator) i;
            return condition;
        }
    }
    errx(1, "%s: unknown condition", where);
}

/* A call's entry; NULL when this architecture never had it. "#N" is for calls newer than the library. */
static struct call *find_call(const char *word, const char *where)
{
    int number = word[0] == '#' ? (int)parse_number(word + 1, where) : seccomp_syscall_resolve_name(word);

    if (number == __NR_SCMP_ERROR)
        errx(1, "%s: there is no call %s", where, word);
    if (number >= CALLS_MAX)
        errx(1, "%s: %s has a number beyond all others", where, word);
    return number < 0 ? NULL : &calls[number];
}

static void parse_rule(const char *verb, char **rest, const char *where)
{
    struct rule rule = {.action = parse_action(verb, where)};
    char *names[64];
    size_t count = 0;
    char *word = strtok_r(NULL, " ", rest);

    for (; word != NULL && strcmp(word, "if") != 0; word = strtok_r(NULL, " ", rest)) {
        if (count == sizeof names / sizeof *names)
            errx(1, "%s: too many calls on one line", where);
        names[count++] = word;
    }
    for (; word != NULL; word = strtok_r(NULL, " ", rest)) {
        if (rule.condition_count == CONDITIONS_MAX || (rule.condition_count > 0 && strcmp(word, "and") != 0))
            errx(1, "%s: expected CALL if CONDITION [and CONDITION]", where);
        rule.conditions[rule.condition_count++] = parse_condition(rest, where);
    }
    for (size_t i = 0; i < count; i++) {
        struct call *call = find_call(names[i], where);
        if (call == NULL)
            continue;
        if (rule.condition_count == 0)
            call->action = rule.action;
        else if (call->rule_count == RULES_MAX)
            errx(1, "%s: too many conditions for %s", where, names[i]);
        else
            call->rules[call->rule_count++] = rule;
    }
}

static void set_default(uint32_t action, const char *where)
{
    if (has_default)
        errx(1, "%s: a second default", where);
    has_default = true;
    for (size_t i = 0; i <= CALLS_MAX; i++)
        calls[i].action = action;
}

static void parse_file(const char *name, int depth)
{
    char path[4096];
    char line[LINE_MAX_BYTES];
    int number = 0;

    (void)snprintf(path, sizeof path, "%s/%s", policy_folder, name != NULL ? name : "");
    FILE *file = depth <= DEPTH_MAX ? fopen(path, "re") : NULL;
    if (file == NULL)
        err(1, "%s", path);
    while (fgets(line, sizeof line, file) != NULL) {
        char where[4200];
        char *rest = NULL;
        (void)snprintf(where, sizeof where, "%s:%d", path, ++number);
        if (strchr(line, '\n') == NULL)
            errx(1, "%s: line too long", where);
        line[strcspn(line, "#\n") == 0 ? 0 : strcspn(line, "\n")] = '\0';
        char *verb = strtok_r(line, " ", &rest);
        if (verb == NULL)
            continue;
        if (strcmp(verb, "include") == 0)
            parse_file(strtok_r(NULL, " ", &rest), depth + 1);
        else if (strcmp(verb, "default") == 0)
            set_default(parse_action(strtok_r(NULL, " ", &rest), where), where);
        else if (!has_default)
            errx(1, "%s: a rule before the default", where);
        else
            parse_rule(verb, &rest, where);
    }
    (void)fclose(file);
}

static size_t emit(uint16_t code, uint8_t when_true, uint8_t when_false, uint32_t value)
{
    if (program_length == BPF_MAXINSNS)
        errx(1, "the program is too long");
    program[program_length] = (struct sock_filter){code, when_true, when_false, value};
    return program_length++;
}

static void emit_load(size_t offset)
{
    (void)emit(BPF_LD | BPF_W | BPF_ABS, 0, 0, (uint32_t)offset);
}

/*
 * Falls through when the condition holds. Returns the instruction that has to jump away when it does not. `loaded` is
 * the argument whose low half the accumulator holds, or NOTHING.
 */
static size_t emit_condition(const struct condition *condition, unsigned *loaded)
{
    size_t low = offsetof(struct seccomp_data, args) + condition->argument * sizeof(uint64_t);
    bool is_bits =
        condition->operator== ANY ||(condition->operator== HAS &&(condition->value & (condition->value - 1)) == 0);
    uint16_t test = BPF_JEQ;

    if (condition->operator== NOT || condition->operator== ABOVE) {
        /* Anything in the high half is another and a larger number. */
        emit_load(low + sizeof(uint32_t));
        (void)emit(BPF_JMP | BPF_JEQ | BPF_K, 0, 2, 0);
        *loaded = NOTHING;
    }
    if (*loaded != condition->argument)
        emit_load(low);
    *loaded = condition->operator== IS || is_bits ? condition->argument : NOTHING;
    if (is_bits)
        test = BPF_JSET;
    else if (condition->operator== HAS)
        (void)emit(BPF_ALU | BPF_AND | BPF_K, 0, 0, condition->value);
    else if (condition->operator== ABOVE)
        test = BPF_JGT;
    return emit(BPF_JMP | test | BPF_K, 0, 0, condition->value);
}

static void emit_rule(const struct rule *rule, unsigned *loaded)
{
    size_t misses[CONDITIONS_MAX];

    for (size_t i = 0; i < rule->condition_count; i++)
        misses[i] = emit_condition(&rule->conditions[i], loaded);
    /* With several conditions, who missed which is not known. */
    if (rule->condition_count > 1)
        *loaded = NOTHING;
    size_t end = emit(BPF_RET | BPF_K, 0, 0, rule->action) + 1;
    for (size_t i = 0; i < rule->condition_count; i++) {
        uint8_t distance = (uint8_t)(end - misses[i] - 1);
        if (rule->conditions[i].operator== NOT)
            program[misses[i]].jt = distance; /* equal is what it must not be */
        else
            program[misses[i]].jf = distance;
    }
}

static bool same(const struct call *a, const struct call *b)
{
    return a->rule_count == 0 && b->rule_count == 0 && a->action == b->action;
}

/* Have one branch of a jump end at the common return for this answer. */
static void answer(size_t jump, bool when_true, uint32_t action)
{
    if (answer_count == sizeof answers / sizeof *answers)
        errx(1, "the program is too long");
    answers[answer_count++] = (struct answer){jump, when_true, action};
}

/* One call with conditions. */
static void emit_call(const struct call *call)
{
    unsigned loaded = NOTHING;

    for (size_t i = 0; i < call->rule_count; i++) {
        const struct rule *rule = &call->rules[i];
        enum operator operator= rule->conditions[0].operator;
        if (rule->condition_count == 1 && operator!= NOT && operator!= ABOVE)
            answer(emit_condition(&rule->conditions[0], &loaded), true, rule->action);
        else
            emit_rule(rule, &loaded);
    }
    (void)emit(BPF_RET | BPF_K, 0, 0, call->action);
}

static uint8_t distance_from(size_t jump)
{
    size_t distance = program_length - jump - 1;

    if (distance > UINT8_MAX)
        errx(1, "the program is longer than a jump");
    return (uint8_t)distance;
}

/* starts[first..last) are the first numbers of ranges; the accumulator holds the call's number. */
static void emit_tree(const uint32_t *starts, size_t first, size_t last)
{
    if (last - first == 1) {
        emit_call(&calls[starts[first]]);
        return;
    }
    size_t middle = first + (last - first) / 2;
    const struct call *below = middle - first == 1 ? &calls[starts[first]] : NULL;
    const struct call *above = last - middle == 1 ? &calls[starts[middle]] : NULL;
    size_t jump = emit(BPF_JMP | BPF_JGE | BPF_K, 0, 0, starts[middle]);

    if (below != NULL && below->rule_count == 0)
        answer(jump, false, below->action);
    else
        emit_tree(starts, first, middle);
    if (above != NULL && above->rule_count == 0) {
        answer(jump, true, above->action);
        return;
    }
    program[jump].jt = distance_from(jump);
    emit_tree(starts, middle, last);
}

/* The returns that ranges share, each once. */
static void emit_answers(void)
{
    while (answer_count > 0) {
        uint32_t action = answers[0].action;
        size_t left = 0;
        for (size_t i = 0; i < answer_count; i++) {
            if (answers[i].action != action) {
                answers[left++] = answers[i];
                continue;
            }
            struct sock_filter *jump = &program[answers[i].jump];
            *(answers[i].when_true ? &jump->jt : &jump->jf) = distance_from(answers[i].jump);
        }
        answer_count = left;
        (void)emit(BPF_RET | BPF_K, 0, 0, action);
    }
}

static void make_program(void)
{
    static uint32_t starts[CALLS_MAX + 1];
    size_t count = 0;

    for (uint32_t i = 0; i <= CALLS_MAX; i++) {
        if (i == 0 || !same(&calls[i - 1], &calls[i]))
            starts[count++] = i;
    }
    emit_load(offsetof(struct seccomp_data, arch));
    (void)emit(BPF_JMP | BPF_JEQ | BPF_K, 1, 0, NATIVE_ARCH);
    (void)emit(BPF_RET | BPF_K, 0, 0, SECCOMP_RET_KILL_PROCESS);
    emit_load(offsetof(struct seccomp_data, nr));
    /* -1 is no x32 call but no call at all. */
    (void)emit(BPF_JMP | BPF_JGE | BPF_K, 0, 2, X32_FIRST);
    (void)emit(BPF_JMP | BPF_JEQ | BPF_K, 1, 0, UINT32_MAX);
    (void)emit(BPF_RET | BPF_K, 0, 0, SECCOMP_RET_KILL_PROCESS);
    emit_tree(starts, 0, count);
    emit_answers();
}

int main(int argc, char **argv)
{
    if (argc != 3)
        errx(2, "usage: compile-filter FOLDER NAME");
    policy_folder = argv[1];
    parse_file(argv[2], 0);
    if (!has_default)
        errx(1, "%s: no default", argv[2]);
    make_program();
    printf("/* made by compile-filter from policy/seccomp/%s */\n", argv[2]);
    for (size_t i = 0; i < program_length; i++)
        printf("{0x%04x, %u, %u, 0x%08x},\n", program[i].code, program[i].jt, program[i].jf, program[i].k);
    return 0;
}
