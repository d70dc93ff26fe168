/*
 * Any bytes as the answer of a hostile sandbox, to every question, in pieces of every kind: the pieces change nothing,
 * no more content comes than was asked for, and no name leads out of its folder.
 */
#include "fuzz.h"
#include "wire/answer.h"

#include <string.h>

enum { LENGTH_ASKED = 100, PIECES = 3 };

static uint64_t mix(uint64_t sum, const void *data, size_t length)
{
    const uint8_t *at = data;

    for (size_t i = 0; i < length; i++)
        sum = (sum ^ at[i]) * UINT64_C(1099511628211);
    return sum;
}

static void check_path(const char *path)
{
    MUST(path[0] != '/' && strstr(path, "//") == NULL && strcmp(path, "..") != 0 && strncmp(path, "../", 3) != 0);
    MUST(strstr(path, "/../") == NULL && strstr(path, "/./") == NULL);
    size_t length = strlen(path);
    MUST(length < 3 || strcmp(path + length - 3, "/..") != 0);
}

static void check_record(const struct answer *answer, const struct wire_message *record)
{
    static uint8_t frame[ANSWER_RECORD_MAX];

    MUST(wire_permits(record->type, WIRE_BY_WORKER, WIRE_IN_RUNNING, 0));
    MUST(wire_encode(record, frame, sizeof frame) > 0);
    if (record->type == WIRE_ENTRY) {
        check_path(record->entry.name.text);
        MUST((record->entry.name.length > 0) == (answer->operation == WIRE_FILE_LIST));
        MUST(answer->recursive || strchr(record->entry.name.text, '/') == NULL);
    }
    if (record->type == WIRE_EVENT)
        check_path(record->event.name.text);
    if (record->type == WIRE_PROBLEM)
        check_path(record->problem.path.text);
}

/* All of it, `most` bytes at a time: a sum of what was understood. */
static uint64_t hear(const struct wire_file *question, const uint8_t *data, size_t size, size_t most)
{
    static struct answer answer;
    struct answer_part part;
    uint64_t sum = 0;
    uint64_t content = 0;
    int r = 0;

    answer_init(&answer, question);
    for (size_t at = 0; at < size && r >= 0;) {
        struct wire_bytes piece = {data + at, (uint32_t)(size - at < most ? size - at : most)};
        at += piece.length;
        while ((r = answer_next(&answer, &piece, &part)) > 0) {
            if (part.record.type == WIRE_NOTHING) {
                sum = mix(sum, part.content.data, part.content.length);
                content += part.content.length;
                continue;
            }
            check_record(&answer, &part.record);
            sum = mix(sum, &part.record.type, sizeof part.record.type);
        }
        MUST(r < 0 || piece.length == 0);
    }
    MUST(content <= question->length && (content == 0 || question->operation == WIRE_FILE_READ));
    /* Of content that is too much, the piece it came in is refused. */
    if (r < 0 && question->operation == WIRE_FILE_READ && answer.records == 1)
        return UINT64_MAX;
    MUST(answer_end(&answer, &(struct wire_exit){.kind = WIRE_EXIT_NOT_STARTED + 1}) == -EBADMSG);
    sum += (uint64_t)(answer_end(&answer, &(struct wire_exit){0}) == 0);
    return mix(sum, &answer.records, sizeof answer.records);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const size_t pieces[PIECES] = {1, 61, 1 << 20};

    for (uint8_t operation = 0; operation <= WIRE_FILE_OPERATIONS; operation++) {
        struct wire_file question = {.operation = operation,
                                     .flags = size % 2 == 0 ? WIRE_FILE_RECURSIVE : 0,
                                     .length = size % 3 == 0 ? WIRE_FILE_ALL : LENGTH_ASKED};
        uint64_t sums[PIECES];
        for (size_t i = 0; i < PIECES; i++)
            sums[i] = hear(&question, data, size, pieces[i]);
        MUST(sums[0] == sums[1] && sums[1] == sums[2]);
    }
    return 0;
}
