#include "base/log.h"

#include "base/buf.h"
#include "base/fd.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { LINE_MAX_BYTES = 8192 };

const char *log_level_name(enum log_level level)
{
    static const char *const names[LOG_LEVELS] = {"debug", "info", "warn", "error"};

    return (unsigned)level < LOG_LEVELS ? names[level] : "unknown";
}

static void format_time(char *text, size_t size)
{
    struct timespec now;
    struct tm utc;
    char seconds[32];

    (void)clock_gettime(CLOCK_REALTIME, &now);
    (void)gmtime_r(&now.tv_sec, &utc);
    (void)strftime(seconds, sizeof seconds, "%Y-%m-%dT%H:%M:%S", &utc);
    (void)snprintf(text, size, "%s.%03ldZ", seconds, now.tv_nsec / 1000000);
}

/* What could be taken for another field, or for the end of the line, is quoted as in JSON. */
static bool is_plain(const char *text)
{
    if (*text == '\0')
        return false;
    for (; *text != '\0'; text++) {
        if (*text <= ' ' || *text > '~' || *text == '"' || *text == '=' || *text == '\\')
            return false;
    }
    return true;
}

static int add_text(struct buf *line, enum log_format format, const char *name, const char *value)
{
    if (format == LOG_FORMAT_TEXT && is_plain(value))
        return buf_printf(line, "%s%s=%s", line->length > 0 ? " " : "", name, value);
    const char *before = line->length == 0 ? "" : format == LOG_FORMAT_TEXT ? " " : ",";
    int r = format == LOG_FORMAT_TEXT ? buf_printf(line, "%s%s=", before, name)
                                      : buf_printf(line, "%s\"%s\":", line->length > 1 ? "," : before, name);
    return r < 0 ? r : buf_append_json(line, value, strlen(value));
}

static int add_field(struct buf *line, enum log_format format, const struct log_field *field)
{
    if (field->text != NULL)
        return add_text(line, format, field->name, field->text);
    unsigned long long number = field->number;
    return format == LOG_FORMAT_TEXT ? buf_printf(line, " %s=%llu", field->name, number)
                                     : buf_printf(line, ",\"%s\":%llu", field->name, number);
}

void log_write(const struct log *log, enum log_level level, const char *event, const struct log_field *fields,
               size_t count)
{
    struct buf line = buf_init(LINE_MAX_BYTES);
    char now[48];
    bool is_json = log->format == LOG_FORMAT_JSON;

    if (level < log->level)
        return;
    format_time(now, sizeof now);
    int r = is_json ? buf_printf(&line, "{\"time\":\"%s\"", now) : add_text(&line, log->format, "time", now);
    if (r == 0)
        r = add_text(&line, log->format, "level", log_level_name(level));
    if (r == 0)
        r = add_text(&line, log->format, "program", log->program);
    if (r == 0)
        r = add_text(&line, log->format, "event", event);
    /* A field that does not fit is left out, not the line. */
    for (size_t i = 0; r == 0 && i < count; i++) {
        size_t before = line.length;
        if (add_field(&line, log->format, &fields[i]) < 0 || line.length + 2 > line.cap)
            line.length = before;
    }
    if (r == 0)
        r = buf_printf(&line, is_json ? "}\n" : "\n");
    if (r == 0)
        ignore_result(fd_write_all(log->fd, line.data, line.length)); /* there is nobody else to tell */
    buf_release(&line);
}
