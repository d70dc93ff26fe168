#include "cli/doctor/report.h"

#include "base/utf8.h"

#include <string.h>

#define RED "\033[31m"
#define GREEN "\033[32m"
#define YELLOW "\033[33m"
#define PLAIN "\033[0m"

static const char *const headings[] = {
    [CHECK_NEEDED] = "Needed for every sandbox",
    [CHECK_OPTION] = "Needed by some options and by the daemon",
    [CHECK_AROUND] = "Limits and surroundings",
};

bool report_can_make_sandbox(const struct report *report)
{
    for (size_t i = 0; i < report->count; i++) {
        if (check_is_required(&report->checks[i]) && report->findings[i].state != FINDING_YES)
            return false;
    }
    return true;
}

static const char *mend_of(const struct report *report, size_t i)
{
    return report->findings[i].mend[0] != '\0' ? report->findings[i].mend : report->checks[i].mend;
}

static int append_text(struct buf *text, const char *words)
{
    return buf_append(text, words, strlen(words));
}

/* What was found may hold names that somebody else chose: nothing in them moves a terminal. */
static int append_shown(struct buf *text, const char *words)
{
    size_t length = strlen(words);
    int r = 0;

    while (r == 0 && length > 0) {
        size_t n = utf8_sequence((const uint8_t *)words, length);
        bool is_control = n == 0 || (uint8_t)*words < 0x20 || *words == 0x7f ||
                          (n == 2 && (uint8_t)words[0] == 0xc2 && (uint8_t)words[1] < 0xa0);
        n = n == 0 ? 1 : n;
        r = is_control ? buf_append(text, "?", 1) : buf_append(text, words, n);
        words += n;
        length -= n;
    }
    return r;
}

static int append_line(struct buf *text, const char *label, const char *words)
{
    if (words == NULL || words[0] == '\0')
        return 0;
    int r = buf_printf(text, "         %-6s ", label);
    if (r == 0)
        r = append_shown(text, words);
    return r < 0 ? r : append_text(text, "\n");
}

static int append_check(const struct report *report, size_t i, bool colour, size_t width, struct buf *text)
{
    static const char *const words[] = {[FINDING_UNKNOWN] = "?", [FINDING_YES] = "yes", [FINDING_NO] = "no"};
    const struct check *check = &report->checks[i];
    enum finding_state state = report->findings[i].state;
    const char *paint = state == FINDING_YES ? GREEN : check_is_required(check) ? RED : YELLOW;

    colour = colour && state != FINDING_UNKNOWN;
    int r = buf_printf(text, "  %s%-3s%s  %-*s  ", colour ? paint : "", words[state], colour ? PLAIN : "", (int)width,
                       check->name);
    if (r == 0)
        r = append_shown(text, report->findings[i].found);
    if (r == 0)
        r = append_text(text, "\n");
    if (r < 0 || state != FINDING_NO)
        return r;
    r = append_line(text, "means", check->meaning);
    return r < 0 ? r : append_line(text, "mend", mend_of(report, i));
}

/* The sandbox itself is named only when nothing else explains why there is none. */
static int append_summary(const struct report *report, bool colour, struct buf *text)
{
    size_t reasons = 0;
    size_t named = 0;

    if (report_can_make_sandbox(report))
        return buf_printf(text, "\n%sA sandbox can be made here.%s\n", colour ? GREEN : "", colour ? PLAIN : "");
    for (size_t i = 0; i < report->count; i++)
        reasons += check_is_required(&report->checks[i]) && report->findings[i].state == FINDING_NO ? 1 : 0;
    int r = buf_printf(text, "\n%sNo sandbox can be made here:", colour ? RED : "");
    for (size_t i = 0; r == 0 && i < report->count; i++) {
        const struct check *check = &report->checks[i];
        if (!check_is_required(check) || report->findings[i].state != FINDING_NO ||
            (reasons > 1 && strcmp(check->name, "sandbox") == 0))
            continue;
        r = buf_printf(text, "%s %s", named++ > 0 ? "," : "", check->name);
    }
    return r < 0 ? r : buf_printf(text, "%s\n", colour ? PLAIN : "");
}

int report_text(const struct report *report, bool colour, struct buf *text)
{
    size_t width = 0;
    int r = 0;

    for (size_t i = 0; i < report->count; i++)
        width = strlen(report->checks[i].name) > width ? strlen(report->checks[i].name) : width;
    for (size_t i = 0; r == 0 && i < report->count; i++) {
        if (i == 0 || report->checks[i].group != report->checks[i - 1].group)
            r = buf_printf(text, "%s%s\n", i == 0 ? "" : "\n", headings[report->checks[i].group]);
        if (r == 0)
            r = append_check(report, i, colour, width, text);
    }
    return r < 0 ? r : append_summary(report, colour, text);
}

/* "key":"value", or null for what is not there to say. */
static int append_pair(struct buf *json, const char *key, const char *value)
{
    int r = buf_printf(json, ",\"%s\":", key);

    if (r < 0)
        return r;
    return value == NULL || value[0] == '\0' ? append_text(json, "null") : buf_append_json(json, value, strlen(value));
}

static int append_check_json(const struct report *report, size_t i, struct buf *json)
{
    static const char *const words[] = {[FINDING_UNKNOWN] = "null", [FINDING_YES] = "true", [FINDING_NO] = "false"};
    const struct check *check = &report->checks[i];
    const struct finding *finding = &report->findings[i];
    bool is_no = finding->state == FINDING_NO;
    int r = buf_printf(json, "%s{\"name\":\"%s\",\"ok\":%s,\"required\":%s", i == 0 ? "" : ",", check->name,
                       words[finding->state], check_is_required(check) ? "true" : "false");

    if (r == 0)
        r = append_pair(json, "found", finding->found);
    if (r == 0)
        r = append_pair(json, "meaning", is_no ? check->meaning : NULL);
    if (r == 0)
        r = append_pair(json, "mend", is_no ? mend_of(report, i) : NULL);
    return r < 0 ? r : append_text(json, "}");
}

int report_json(const struct report *report, struct buf *json)
{
    int r = append_text(json, "{\"version\":");

    if (r == 0)
        r = buf_append_json(json, report->version, strlen(report->version));
    if (r == 0)
        r = append_pair(json, "kernel", report->kernel);
    if (r == 0)
        r = append_text(json, ",\"checks\":[");
    for (size_t i = 0; r == 0 && i < report->count; i++)
        r = append_check_json(report, i, json);
    if (r == 0)
        r = buf_printf(json, "],\"can_make_sandbox\":%s}\n", report_can_make_sandbox(report) ? "true" : "false");
    return r;
}
