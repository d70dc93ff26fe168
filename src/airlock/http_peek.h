/*
 * http_peek: may the first line on a connection be a request of HTTP? Pure.
 *
 * As lenient as the most lenient server: what any of them takes for a request is none of another protocol. What is
 * found to be HTTP is for a strict parser to read.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HTTP_PEEK_LINE_MOST = 16384, HTTP_PEEK_BLANKS_MOST = 64 };

enum http_peek {
    HTTP_PEEK_MORE, /* the line has not ended */
    HTTP_PEEK_OTHER,
    HTTP_PEEK_REQUEST,
    HTTP_PEEK_BARE,    /* without a version, as HTTP/0.9 had it; some servers read headers behind it nevertheless */
    HTTP_PEEK_ENDLESS, /* more than LINE_MOST or BLANKS_MOST */
};

/*
 * `has_end`: nothing more comes. With HTTP_PEEK_MORE, `*ret_ahead` bytes may go on although it is not known what they
 * are: no server acts on a request whose first line has not ended.
 */
enum http_peek http_peek(const uint8_t *data, size_t length, bool has_end, size_t *ret_ahead);
