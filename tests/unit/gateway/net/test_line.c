#include "gateway/net/line.h"
#include "test.h"

/* What comes of it, in pieces of every size, and how many bytes were good. */
static int check(enum line_kind kind, size_t most, const char *text, size_t *ret_good)
{
    size_t length = strlen(text);
    int first = 0;

    for (size_t piece = 1; piece <= length; piece++) {
        struct line line = line_init(kind, most);
        size_t good = 0;
        int r = 0;
        for (size_t at = 0; r == 0 && at < length; at += piece) {
            size_t used = 0;
            r = line_check(&line, (const uint8_t *)text + at, length - at < piece ? length - at : piece, &used);
            good += used;
        }
        if (piece > 1 && (r != first || good != *ret_good))
            fail_msg("%s: %d in pieces of %zu, not %d", text, r, piece, first);
        first = r;
        *ret_good = good;
    }
    return first;
}

static const struct {
    enum line_kind kind;
    const char *text;
    int result;
    size_t good;
} rows[] = {
    {LINE_REQUEST, "GET / HTTP/1.1\r\nrest", 1, 16},
    {LINE_REQUEST, "GET / HTTP/1.1\r", 0, 15},
    {LINE_REQUEST, "GET / HTTP/1.1\rx", -EBADMSG, 15},
    {LINE_REQUEST, "GET / HTTP/1.1\n", -EBADMSG, 14},
    {LINE_REQUEST, "GET / HTTP/1.1 \r\n", -EBADMSG, 14},
    {LINE_REQUEST, "GET  / HTTP/1.1\r\n", -EBADMSG, 4},
    {LINE_REQUEST, "GET / HTTP/1.1 x\r\n", -EBADMSG, 14},
    {LINE_REQUEST, "GET /\r\n", -EBADMSG, 5},
    {LINE_REQUEST, " GET / HTTP/1.1\r\n", -EBADMSG, 0},
    {LINE_REQUEST, "G(T / HTTP/1.1\r\n", -EBADMSG, 1},
    {LINE_REQUEST, "\r\n", 1, 2},
    {LINE_HEADER, "A: b\tc \x80\r\n", 1, 10},
    {LINE_HEADER, "A:\r\n", 1, 4},
    {LINE_HEADER, "\r\n", 1, 2},
    {LINE_HEADER, "A\r\n", -EBADMSG, 1},
    {LINE_HEADER, "A : b\r\n", -EBADMSG, 1},
    {LINE_HEADER, " A: b\r\n", -EBADMSG, 0},
    {LINE_HEADER, "\tA: b\r\n", -EBADMSG, 0},
    {LINE_HEADER, ": b\r\n", -EBADMSG, 0},
    {LINE_HEADER, "A: \x01\r\n", -EBADMSG, 3},
    {LINE_HEADER, "A: b\r\r\n", -EBADMSG, 5},
    {LINE_HEADER, "A: 34567890123456789\r\n", 1, 22},
    {LINE_HEADER, "A: 345678901234567890\r\n", -EMSGSIZE, 20},
    {LINE_CHUNK, "aF09\r\n", 1, 6},
    {LINE_CHUNK, "1;x=y\r\n", 1, 7},
    {LINE_CHUNK, "\r\n", -EBADMSG, 0},
    {LINE_CHUNK, ";\r\n", -EBADMSG, 0},
    {LINE_CHUNK, "1 ;x\r\n", -EBADMSG, 1},
    {LINE_CHUNK, "0x1\r\n", -EBADMSG, 1},
    {LINE_CHUNK_END, "\r\n", 1, 2},
    {LINE_CHUNK_END, "x\r\n", -EBADMSG, 0},
    {LINE_CHUNK_END, "\n", -EBADMSG, 0},
};

TEST(lines)
{
    for (size_t i = 0; i < COUNT(rows); i++) {
        size_t good = 0;
        assert_row(rows[i].text, check(rows[i].kind, 20, rows[i].text, &good) == rows[i].result);
        assert_row(rows[i].text, good == rows[i].good);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(lines)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
