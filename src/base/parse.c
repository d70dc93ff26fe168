#include "base/parse.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

/* Digits at *text, which moves behind them. */
static int take_digits(const char **text, uint64_t *ret_number)
{
    const char *at = *text;
    uint64_t number = 0;

    if (*at < '0' || *at > '9')
        return -EINVAL;
    for (; *at >= '0' && *at <= '9'; at++) {
        if (__builtin_mul_overflow(number, 10U, &number) ||
            __builtin_add_overflow(number, (uint64_t)(*at - '0'), &number))
            return -ERANGE;
    }
    *text = at;
    *ret_number = number;
    return 0;
}

/* A decimal number in thousandths; a fourth decimal is refused rather than lost. */
static int take_milli(const char **text, uint64_t *ret_milli)
{
    uint64_t whole;
    uint64_t milli = 0;
    int r = take_digits(text, &whole);

    if (r < 0)
        return r;
    if (**text == '.') {
        uint64_t weight = 100;
        const char *at = *text + 1;
        if (*at < '0' || *at > '9')
            return -EINVAL;
        for (; *at >= '0' && *at <= '9'; at++, weight /= 10) {
            if (weight == 0 && *at != '0')
                return -EINVAL;
            milli += weight * (uint64_t)(*at - '0');
        }
        *text = at;
    }
    if (__builtin_mul_overflow(whole, 1000U, &whole) || __builtin_add_overflow(whole, milli, ret_milli))
        return -ERANGE;
    return 0;
}

int parse_u64(const char *text, uint64_t *ret_number)
{
    uint64_t number;
    int r = take_digits(&text, &number);

    if (r < 0)
        return r;
    if (*text != '\0')
        return -EINVAL;
    *ret_number = number;
    return 0;
}

int parse_size(const char *text, uint64_t *ret_bytes)
{
    static const struct {
        const char *suffix;
        unsigned shift;
    } units[] = {
        {"", 0},     {"B", 0},  {"K", 10},  {"KB", 10},  {"KiB", 10}, {"M", 20},  {"MB", 20},
        {"MiB", 20}, {"G", 30}, {"GB", 30}, {"GiB", 30}, {"T", 40},   {"TB", 40}, {"TiB", 40},
    };
    uint64_t number;
    int r = take_digits(&text, &number);

    if (r < 0)
        return r;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (strcasecmp(text, units[i].suffix) != 0)
            continue;
        if (number > (UINT64_MAX >> units[i].shift))
            return -ERANGE;
        *ret_bytes = number << units[i].shift;
        return 0;
    }
    return -EINVAL;
}

int parse_duration_ms(const char *text, uint64_t *ret_ms)
{
    static const struct {
        const char *suffix;
        uint64_t ms;
    } units[] = {{"", 1000}, {"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}};
    uint64_t milli;
    int r = take_milli(&text, &milli);

    if (r < 0)
        return r;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (strcmp(text, units[i].suffix) != 0)
            continue;
        if (__builtin_mul_overflow(milli, units[i].ms, &milli))
            return -ERANGE;
        milli /= 1000;
        if (milli == 0)
            return -ERANGE;
        *ret_ms = milli;
        return 0;
    }
    return -EINVAL;
}

int parse_cpus_milli(const char *text, uint64_t *ret_milli)
{
    uint64_t milli;
    int r = take_milli(&text, &milli);

    if (r < 0)
        return r;
    if (*text != '\0')
        return -EINVAL;
    if (milli == 0)
        return -ERANGE;
    *ret_milli = milli;
    return 0;
}
