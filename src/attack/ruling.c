#include "attack/ruling.h"

#include <stdarg.h>
#include <stdio.h>

void ruling_add(struct ruling *ruling, enum verdict verdict, const char *format, ...)
{
    va_list args;

    if (ruling->verdict >= verdict && ruling->verdict != VERDICT_NONE)
        return;
    ruling->verdict = verdict;
    va_start(args, format);
    (void)vsnprintf(ruling->detail, sizeof ruling->detail, format, args);
    va_end(args);
}
