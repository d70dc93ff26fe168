#include "attack/report.h"

#include <string.h>

#define RED "\033[31m"
#define GREEN "\033[32m"
#define YELLOW "\033[33m"
#define PLAIN "\033[0m"

static const char *const headings[] = {
    [ATTACK_KERNEL] = "Kernel surface",
    [ATTACK_FILES] = "Files, /proc and templates",
    [ATTACK_PROGRAMS] = "Programs that are not listed (--only)",
    [ATTACK_NEIGHBOURS] = "Between two sandboxes",
    [ATTACK_RESOURCES] = "Resources",
    [ATTACK_CALLERS] = "Callers of the service",
    [ATTACK_TRANSFERS] = "Files through the service",
};

static const char *const group_names[] = {
    [ATTACK_KERNEL] = "kernel",         [ATTACK_FILES] = "files",         [ATTACK_PROGRAMS] = "programs",
    [ATTACK_NEIGHBOURS] = "neighbours", [ATTACK_RESOURCES] = "resources", [ATTACK_CALLERS] = "callers",
    [ATTACK_TRANSFERS] = "transfers",
};

static const struct {
    const char *words;
    const char *name;
    const char *paint;
} verdicts[] = {
    [VERDICT_NONE] = {"", "", ""},
    [VERDICT_ABSENT] = {"not here", "absent", YELLOW},
    [VERDICT_REFUSED] = {"refused", "refused", GREEN},
    [VERDICT_UNTRIED] = {"not tried", "untried", RED},
    [VERDICT_THROUGH] = {"GOT THROUGH", "through", RED},
};

bool report_is_good(const struct report *report)
{
    for (size_t i = 0; i < report->count; i++) {
        if (report->rulings[i].verdict > VERDICT_REFUSED)
            return false;
    }
    return true;
}

static size_t width_of(const struct report *report, bool names)
{
    size_t width = 0;

    for (size_t i = 0; i < report->count; i++) {
        size_t length = strlen(names ? report->attacks[i]->name : report->attacks[i]->tries);
        width = length > width ? length : width;
    }
    return width;
}

static int append_heading(const struct attack *attack, const struct attack *last, struct buf *text)
{
    if (last != NULL && last->group == attack->group)
        return 0;
    return buf_printf(text, "%s%s\n", last == NULL ? "" : "\n", headings[attack->group]);
}

int report_row(const struct report *report, size_t i, const struct attack *last, bool colour, struct buf *text)
{
    const struct attack *attack = report->attacks[i];
    const struct ruling *ruling = &report->rulings[i];
    int r = append_heading(attack, last, text);

    if (r == 0)
        r = buf_printf(text, "  %-*s  %-*s  %s%-11s%s %6.0f ms\n", (int)width_of(report, true), attack->name,
                       (int)width_of(report, false), attack->tries, colour ? verdicts[ruling->verdict].paint : "",
                       verdicts[ruling->verdict].words, colour ? PLAIN : "", (double)ruling->took_ns / 1e6);
    if (r == 0 && ruling->detail[0] != '\0')
        r = buf_printf(text, "  %-*s  %s\n", (int)width_of(report, true), "", ruling->detail);
    return r;
}

static size_t count_of(const struct report *report, enum verdict verdict)
{
    size_t count = 0;

    for (size_t i = 0; i < report->count; i++)
        count += report->rulings[i].verdict == verdict ? 1 : 0;
    return count;
}

static unsigned tries_of(const struct report *report)
{
    unsigned count = 0;

    for (size_t i = 0; i < report->count; i++)
        count += report->rulings[i].tries;
    return count;
}

int report_summary(const struct report *report, bool colour, struct buf *text)
{
    bool is_good = report_is_good(report);
    int r = buf_printf(text, "\n%s%zu refused, %zu got through", colour ? (is_good ? GREEN : RED) : "",
                       count_of(report, VERDICT_REFUSED), count_of(report, VERDICT_THROUGH));

    if (r == 0 && count_of(report, VERDICT_ABSENT) > 0)
        r = buf_printf(text, ", %zu not on this machine", count_of(report, VERDICT_ABSENT));
    if (r == 0 && count_of(report, VERDICT_UNTRIED) > 0)
        r = buf_printf(text, ", %zu could not be tried", count_of(report, VERDICT_UNTRIED));
    if (r == 0)
        r = buf_printf(text, " (%u attempts)%s\n", tries_of(report), colour ? PLAIN : "");
    return r;
}

static int append_pair(struct buf *json, const char *key, const char *value)
{
    int r = buf_printf(json, ",\"%s\":", key);

    return r < 0 ? r : buf_append_json(json, value, strlen(value));
}

static int append_ruling(const struct attack *attack, const struct ruling *ruling, bool is_first, struct buf *json)
{
    int r = buf_printf(json, "%s{\"name\":\"%s\",\"group\":\"%s\"", is_first ? "" : ",", attack->name,
                       group_names[attack->group]);

    if (r == 0)
        r = append_pair(json, "tries", attack->tries);
    if (r == 0)
        r = append_pair(json, "verdict", verdicts[ruling->verdict].name);
    if (r == 0)
        r = append_pair(json, "detail", ruling->detail);
    if (r == 0)
        r = buf_printf(json, ",\"attempts\":%u,\"took_us\":%llu}", ruling->tries,
                       (unsigned long long)(ruling->took_ns / 1000));
    return r;
}

int report_json(const struct report *report, struct buf *json)
{
    bool is_first = true;
    int r = buf_printf(json, "{\"version\":\"%s\"", report->version);

    if (r == 0)
        r = append_pair(json, "kernel", report->kernel);
    if (r == 0)
        r = buf_printf(json, ",\"attacks\":[");
    for (size_t i = 0; r == 0 && i < report->count; i++) {
        if (report->rulings[i].verdict == VERDICT_NONE)
            continue;
        r = append_ruling(report->attacks[i], &report->rulings[i], is_first, json);
        is_first = false;
    }
    if (r == 0)
        r = buf_printf(json,
                       "],\"refused\":%zu,\"through\":%zu,\"absent\":%zu,\"untried\":%zu,\"attempts\":%u,"
                       "\"all_refused\":%s}\n",
                       count_of(report, VERDICT_REFUSED), count_of(report, VERDICT_THROUGH),
                       count_of(report, VERDICT_ABSENT), count_of(report, VERDICT_UNTRIED), tries_of(report),
                       report_is_good(report) ? "true" : "false");
    return r;
}

int report_list(const struct report *report, struct buf *text)
{
    size_t width = width_of(report, true);
    int r = 0;

    for (size_t i = 0; r == 0 && i < report->count; i++) {
        r = append_heading(report->attacks[i], i > 0 ? report->attacks[i - 1] : NULL, text);
        if (r == 0)
            r = buf_printf(text, "  %-*s  %s\n", (int)width, report->attacks[i]->name, report->attacks[i]->tries);
    }
    return r;
}
