#include "cli/doctor/check.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void finding_yes(struct probe *probe, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    (void)vsnprintf(probe->finding->found, sizeof probe->finding->found, format, args);
    va_end(args);
    probe->finding->state = FINDING_YES;
}

void finding_no(struct probe *probe, int err, const char *format, ...)
{
    struct finding *finding = probe->finding;
    va_list args;

    va_start(args, format);
    int n = vsnprintf(finding->found, sizeof finding->found, format, args);
    va_end(args);
    if (err != 0 && n >= 0 && (size_t)n < sizeof finding->found)
        (void)snprintf(finding->found + n, sizeof finding->found - (size_t)n, ": %s", strerror(err));
    finding->state = FINDING_NO;
}

void finding_mend(struct probe *probe, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    (void)vsnprintf(probe->finding->mend, sizeof probe->finding->mend, format, args);
    va_end(args);
}
