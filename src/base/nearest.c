#include "base/nearest.h"

#include <string.h>

enum { LENGTH_MAX = 63, FAR = 4 };

/* How many letters one would have to change to get from one to the other; words are short. */
static size_t distance(const char *a, const char *b)
{
    size_t row[LENGTH_MAX + 1];
    size_t length = strlen(b);

    if (length >= LENGTH_MAX || strlen(a) >= LENGTH_MAX)
        return LENGTH_MAX + 1;
    for (size_t j = 0; j <= length; j++)
        row[j] = j;
    for (size_t i = 1; a[i - 1] != '\0'; i++) {
        size_t corner = row[0];
        row[0] = i;
        for (size_t j = 1; j <= length; j++) {
            size_t change = corner + (a[i - 1] == b[j - 1] ? 0 : 1);
            size_t best = row[j] < row[j - 1] ? row[j] + 1 : row[j - 1] + 1;
            corner = row[j];
            row[j] = change < best ? change : best;
        }
    }
    return row[length];
}

struct nearest nearest_init(const char *word)
{
    return (struct nearest){.word = word, .distance = FAR};
}

void nearest_offer(struct nearest *nearest, const char *candidate)
{
    size_t d = distance(nearest->word, candidate);

    if (d < nearest->distance) {
        nearest->distance = d;
        nearest->best = candidate;
    }
}
