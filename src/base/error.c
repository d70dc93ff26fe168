#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int error_set(struct error *error, enum error_code code, int err, const char *format, ...)
{
    if (error != NULL) {
        va_list args;
        error->code = code;
        error->err = err;
        va_start(args, format);
        int n = vsnprintf(error->message, sizeof error->message, format, args);
        va_end(args);
        if (err != 0 && n >= 0 && (size_t)n < sizeof error->message)
            (void)snprintf(error->message + n, sizeof error->message - (size_t)n, ": %s", strerror(err));
    }
    return err != 0 ? -err : -EINVAL;
}

void error_wrap(struct error *error, const char *format, ...)
{
    char inner[ERROR_MESSAGE_MAX];
    va_list args;

    if (error == NULL)
        return;
    memcpy(inner, error->message, sizeof inner);
    va_start(args, format);
    int n = vsnprintf(error->message, sizeof error->message, format, args);
    va_end(args);
    if (n >= 0 && (size_t)n + 3 < sizeof error->message) {
        int room = (int)sizeof error->message - n - 3;
        (void)snprintf(error->message + n, sizeof error->message - (size_t)n, ": %.*s", room, inner);
    }
}

const char *error_code_name(enum error_code code)
{
    static const char *const names[] = {
        [ERROR_NONE] = "none",         [ERROR_INVALID] = "invalid", [ERROR_NOT_FOUND] = "not_found",
        [ERROR_DENIED] = "denied",     [ERROR_LIMIT] = "limit",     [ERROR_UNSUPPORTED] = "unsupported",
        [ERROR_PROTOCOL] = "protocol", [ERROR_SYSTEM] = "system",
    };
    return (size_t)code < sizeof names / sizeof *names ? names[code] : "unknown";
}
