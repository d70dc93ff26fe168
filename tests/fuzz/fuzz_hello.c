/*
 * A TLS hello, whole and cut: more bytes never change an outcome that was final, and `needed` never skips one.
 */
#include "airlock/hello.h"
#include "fuzz.h"

#include <string.h>

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
    return 0;
}
