/*
 * A TLS hello, whole and cut: more bytes never change an outcome that was final, and `needed` never skips one. The same
 * bytes as a server's answer, and as what stands in front of a second hello.
 */
#include "airlock/hello.h"
#include "fuzz.h"

#include <string.h>

static void read_answer(const uint8_t *data, size_t size)
{
    size_t most = size < HELLO_ANSWER_MAX ? size : HELLO_ANSWER_MAX;
    enum hello_answer outcome = HELLO_ANSWER_MORE;

    for (size_t cut = 0; cut <= most; cut++) {
        enum hello_answer next = hello_read_answer(data, cut);
        MUST(outcome == HELLO_ANSWER_MORE || next == outcome);
        outcome = next;
    }
    MUST(most < HELLO_ANSWER_MAX || outcome != HELLO_ANSWER_MORE);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hello whole;
    struct hello part;
    enum hello_outcome outcome = hello_read(data, size, &whole);

    MUST(strnlen(whole.name, NAME_SIZE) < NAME_SIZE);
    MUST((outcome == HELLO_BAD) == (whole.why[0] != '\0'));
    for (size_t cut = 0; cut < size && size <= 4096;) {
        enum hello_outcome early = hello_read(data, cut, &part);
        if (early == HELLO_MORE) {
            MUST(part.needed > cut);
            cut = part.needed;
            continue;
        }
        /* Behind a hello that is complete come other records, which the whole may end in. */
        MUST(early == outcome || early == HELLO_DONE);
        MUST(early != HELLO_DONE || outcome != HELLO_DONE || strcmp(part.name, whole.name) == 0);
        break;
    }
    MUST(hello_skip(data, size) <= (ssize_t)size);
    read_answer(data, size);
    return 0;
}
