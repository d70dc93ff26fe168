#include "wire/steps.h"

#define STEP_NAME(NAME, name, words) name,
#define STEP_WORDS(NAME, name, words) words,

const char *step_name(uint32_t step)
{
    static const char *const names[] = {STEPS(STEP_NAME)};
    return step < STEP_COUNT ? names[step] : "unknown";
}

const char *step_words(uint32_t step)
{
    static const char *const words[] = {STEPS(STEP_WORDS)};
    return step < STEP_COUNT ? words[step] : "doing something unknown";
}
