/* What a service says on standard error: it comes out as text, in lines that say whose they are and are not too long.
 */
#include "base/utf8.h"
#include "fuzz.h"
#include "keeper/relay.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { SAID_MAX = 16384, OUT_MAX = 40 * SAID_MAX };

/* No quote but those of the object ends the text that was said. */
static void check_object(const uint8_t *line, size_t length)
{
    static const char start[] = "{\"source\":\"gateway\",\"line\":\"";
    size_t at = sizeof start - 1;

    MUST(length >= at + 2 && memcmp(line, start, at) == 0);
    for (; at < length - 2; at++) {
        MUST(line[at] != '"' && line[at] != '\t');
        at += line[at] == '\\' ? 1 : 0;
    }
    MUST(at == length - 2 && memcmp(line + at, "\"}", 2) == 0);
}

static void check_line(enum log_format format, const uint8_t *line, size_t length)
{
    MUST(length < RELAY_LINE_MAX);
    if (format == LOG_FORMAT_JSON)
        check_object(line, length);
    else
        MUST(length >= 9 && memcmp(line, "gateway: ", 9) == 0);
}

static void check(enum log_format format, const uint8_t *text, size_t length)
{
    size_t start = 0;
    size_t n = 0;

    for (size_t at = 0; at < length; at += n) {
        n = utf8_sequence(text + at, length - at);
        MUST(n > 0);
        MUST(n > 1 || text[at] == '\n' || text[at] == '\t' || (text[at] >= ' ' && text[at] != 0x7f));
        MUST(text[at] != 0xc2 || text[at + 1] >= 0xa0);
        if (text[at] != '\n')
            continue;
        check_line(format, text + start, at - start);
        start = at + 1;
    }
    MUST(start == length);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t out[OUT_MAX];
    static int fd = -1;
    struct relay relay = RELAY_EMPTY;
    struct error err = {0};
    int write_fd = -1;
    size_t first = size > 0 ? data[0] : 0;

    if (size > SAID_MAX)
        return 0;
    relay.format = first % 2 == 0 ? LOG_FORMAT_TEXT : LOG_FORMAT_JSON;
    if (fd < 0)
        fd = memfd_create("said", MFD_CLOEXEC);
    MUST(fd >= 0 && ftruncate(fd, 0) == 0 && lseek(fd, 0, SEEK_SET) == 0);
    MUST(relay_open(&relay, "gateway", fd, &write_fd, &err) == 0);
    /* In two pieces, wherever that cuts. */
    if (first > size)
        first = size;
    MUST(write(write_fd, data, first) == (ssize_t)first);
    relay_some(&relay);
    MUST(write(write_fd, data + first, size - first) == (ssize_t)(size - first));
    (void)close(write_fd);
    relay_finish(&relay);
    MUST(relay.fd < 0);
    ssize_t n = pread(fd, out, sizeof out, 0);
    MUST(n >= 0 && (size_t)n >= size && (size_t)n < sizeof out);
    check(relay.format, out, (size_t)n);
    return 0;
}
