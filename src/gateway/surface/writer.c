#include "gateway/surface/writer.h"

#include <sodium.h>
#include <string.h>
#include <time.h>

enum { BASE64_STEP = 3 << 14, TIME_SIZE = 40 };

static void note(struct writer *writer, int result)
{
    if (writer->result == 0)
        writer->result = result;
}

static void start(struct writer *writer, const char *key)
{
    if (writer->has_item)
        note(writer, buf_append(&writer->buf, ",", 1));
    writer->has_item = true;
    if (key == NULL)
        return;
    note(writer, buf_append_json(&writer->buf, key, strlen(key)));
    note(writer, buf_append(&writer->buf, ":", 1));
}

void writer_open(struct writer *writer, const char *key, char bracket)
{
    start(writer, key);
    note(writer, buf_append(&writer->buf, &bracket, 1));
    writer->has_item = false;
}

void writer_close(struct writer *writer, char bracket)
{
    note(writer, buf_append(&writer->buf, &bracket, 1));
    writer->has_item = true;
}

void writer_bytes(struct writer *writer, const char *key, const void *data, size_t length)
{
    start(writer, key);
    note(writer, buf_append_json(&writer->buf, data, length));
}

void writer_text(struct writer *writer, const char *key, const char *text)
{
    if (text == NULL)
        writer_null(writer, key);
    else
        writer_bytes(writer, key, text, strlen(text));
}

void writer_base64(struct writer *writer, const char *key, const void *data, size_t length)
{
    static const int variant = sodium_base64_VARIANT_ORIGINAL;
    char text[sodium_base64_ENCODED_LEN(BASE64_STEP, sodium_base64_VARIANT_ORIGINAL)];
    const unsigned char *at = data;

    start(writer, key);
    note(writer, buf_append(&writer->buf, "\"", 1));
    for (size_t done = 0; done < length && writer->result == 0; done += BASE64_STEP) {
        size_t step = length - done < BASE64_STEP ? length - done : BASE64_STEP;
        (void)sodium_bin2base64(text, sizeof text, at + done, step, variant);
        note(writer, buf_append(&writer->buf, text, strlen(text)));
    }
    note(writer, buf_append(&writer->buf, "\"", 1));
}

void writer_number(struct writer *writer, const char *key, int64_t number)
{
    start(writer, key);
    note(writer, buf_printf(&writer->buf, "%lld", (long long)number));
}

void writer_milli(struct writer *writer, const char *key, uint64_t thousandths)
{
    start(writer, key);
    note(writer, buf_printf(&writer->buf, "%llu.%03llu", (unsigned long long)(thousandths / 1000),
                            (unsigned long long)(thousandths % 1000)));
}

void writer_switch(struct writer *writer, const char *key, bool value)
{
    start(writer, key);
    note(writer, buf_printf(&writer->buf, "%s", value ? "true" : "false"));
}

void writer_null(struct writer *writer, const char *key)
{
    start(writer, key);
    note(writer, buf_append(&writer->buf, "null", 4));
}

void writer_time(struct writer *writer, const char *key, uint64_t ms)
{
    char text[TIME_SIZE];
    char whole[TIME_SIZE];
    time_t seconds = (time_t)(ms / 1000);
    struct tm parts;

    if (ms == 0 || gmtime_r(&seconds, &parts) == NULL) {
        writer_null(writer, key);
        return;
    }
    (void)strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts);
    (void)snprintf(whole, sizeof whole, "%.20s.%03uZ", text, (unsigned)(ms % 1000));
    writer_text(writer, key, whole);
}

void writer_json(struct writer *writer, const char *key, const char *json)
{
    start(writer, key);
    note(writer, buf_append(&writer->buf, json, strlen(json)));
}

int writer_end(const struct writer *writer)
{
    return writer->result;
}
