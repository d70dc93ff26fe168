#include "attack/tries.h"

#include <string.h>

static const struct {
    const char *word;
    enum try_verdict verdict;
} words[] = {{"refused", TRY_REFUSED}, {"through", TRY_THROUGH}, {"absent", TRY_ABSENT}};

/* What stands before `end` or the next tab; *text moves behind it. */
static void take_field(const char **text, const char *end, char *ret_field, size_t size)
{
    const char *tab = memchr(*text, '\t', (size_t)(end - *text));
    size_t length = (size_t)((tab != NULL ? tab : end) - *text);
    size_t kept = length < size ? length : size - 1;

    memcpy(ret_field, *text, kept);
    ret_field[kept] = '\0';
    *text += length + (tab != NULL ? 1 : 0);
}

static int take_line(const char *text, const char *end, struct tries *tries)
{
    char word[16];

    take_field(&text, end, word, sizeof word);
    if (strcmp(word, "done") == 0) {
        tries->done = true;
        return 0;
    }
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strcmp(word, words[i].word) != 0)
            continue;
        if (tries->count == TRIES_MAX)
            return -ENOBUFS;
        struct try *try = &tries->list[tries->count++];
        try->verdict = words[i].verdict;
        take_field(&text, end, try->what, sizeof try->what);
        take_field(&text, end, try->detail, sizeof try->detail);
        return try->what[0] != '\0' ? 0 : -EBADMSG;
    }
    return -EBADMSG;
}

int tries_parse(const char *text, size_t length, struct tries *ret_tries)
{
    const char *end = text + length;
    int r = 0;

    ret_tries->count = 0;
    ret_tries->done = false;
    while (r == 0 && text < end) {
        const char *newline = memchr(text, '\n', (size_t)(end - text));
        /* The last line may have been cut by the end of who wrote it. */
        if (newline == NULL)
            return 0;
        r = take_line(text, newline, ret_tries);
        text = newline + 1;
    }
    return r;
}

void tries_compare(struct tries *tries, const struct tries *control)
{
    for (size_t i = 0; i < tries->count; i++) {
        for (size_t j = 0; j < control->count; j++) {
            if (strcmp(tries->list[i].what, control->list[j].what) != 0 || control->list[j].verdict == TRY_THROUGH ||
                tries->list[i].verdict == TRY_THROUGH)
                continue;
            tries->list[i].verdict = TRY_ABSENT;
            memcpy(tries->list[i].detail, control->list[j].detail, sizeof tries->list[i].detail);
        }
    }
}

const struct try *tries_first(const struct tries *tries, enum try_verdict verdict)
{
    for (size_t i = 0; i < tries->count; i++) {
        if (tries->list[i].verdict == verdict)
            return &tries->list[i];
    }
    return NULL;
}
