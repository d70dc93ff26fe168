#include "wire/answer.h"

#include <string.h>

enum { ERRNO_MAX = 4095 };

/* What the answer to an operation consists of. */
struct grammar {
    enum wire_type first;
    enum wire_type others;
    uint64_t records_most;
    bool needs_one; /* to have succeeded */
};

static const struct grammar grammars[WIRE_FILE_OPERATIONS] = {
    [WIRE_FILE_READ] = {WIRE_ENTRY, WIRE_NOTHING, 1, true},
    [WIRE_FILE_WRITE] = {WIRE_WRITTEN, WIRE_NOTHING, 1, true},
    [WIRE_FILE_APPEND] = {WIRE_WRITTEN, WIRE_NOTHING, 1, true},
    [WIRE_FILE_STAT] = {WIRE_ENTRY, WIRE_NOTHING, 1, true},
    [WIRE_FILE_LIST] = {WIRE_ENTRY, WIRE_PROBLEM, UINT64_MAX, false},
    [WIRE_FILE_REMOVE] = {WIRE_PROBLEM, WIRE_PROBLEM, UINT64_MAX, false},
    [WIRE_FILE_WATCH] = {WIRE_EVENT, WIRE_NOTHING, UINT64_MAX, true},
};

void answer_init(struct answer *answer, const struct wire_file *question)
{
    answer->operation = (enum wire_file_operation)question->operation;
    answer->recursive = (question->flags & WIRE_FILE_RECURSIVE) != 0;
    answer->gone = false;
    answer->records = 0;
    answer->content_left = answer->operation == WIRE_FILE_READ ? question->length : 0;
    answer->held_length = 0;
}

bool answer_is_below(struct wire_str path)
{
    const char *at = path.text;

    for (;;) {
        size_t length = strcspn(at, "/");
        if (length == 0 || (at[0] == '.' && (length == 1 || (length == 2 && at[1] == '.'))))
            return false;
        if (at[length] == '\0')
            return true;
        at += length + 1;
    }
}

static bool is_name(const struct answer *answer, struct wire_str name)
{
    return answer_is_below(name) && (answer->recursive || strchr(name.text, '/') == NULL);
}

static bool is_entry(const struct answer *answer, const struct wire_entry *entry)
{
    bool is_listed = answer->operation == WIRE_FILE_LIST;

    return entry->kind < WIRE_ENTRY_KINDS && (entry->mode & ~07777U) == 0 &&
           (entry->target.length == 0 || entry->kind == WIRE_ENTRY_SYMLINK) &&
           (answer->operation != WIRE_FILE_READ || entry->kind == WIRE_ENTRY_FILE) &&
           (is_listed ? is_name(answer, entry->name) : entry->name.length == 0);
}

static bool is_event(const struct answer *answer, const struct wire_event *event)
{
    return event->kind < WIRE_EVENT_KINDS && event->is_folder <= 1 &&
           (answer->records == 0) == (event->kind == WIRE_EVENT_WATCHING) &&
           (event->name.length == 0 || is_name(answer, event->name));
}

/* Does it say something that a worker could say here? */
static bool is_sound(const struct answer *answer, const struct wire_message *record)
{
    switch ((int)record->type) { /* only some of them come here */
    case WIRE_ENTRY:
        return is_entry(answer, &record->entry);
    case WIRE_EVENT:
        return is_event(answer, &record->event);
    case WIRE_PROBLEM:
        return record->problem.error > 0 && record->problem.error <= ERRNO_MAX &&
               (record->problem.path.length == 0 || answer_is_below(record->problem.path));
    default:
        return record->type == WIRE_WRITTEN;
    }
}

static int take_record(struct answer *answer, const uint8_t *data, size_t length, struct wire_message *ret_record)
{
    const struct grammar *grammar = &grammars[answer->operation];

    if (wire_decode(data, length, ret_record) < 0 || answer->gone || answer->records == grammar->records_most ||
        (ret_record->type != grammar->first && ret_record->type != grammar->others) || !is_sound(answer, ret_record))
        return -EBADMSG;
    answer->records++;
    answer->gone = ret_record->type == WIRE_EVENT && ret_record->event.kind == WIRE_EVENT_GONE;
    return 1;
}

static void move(struct wire_bytes *data, size_t length)
{
    data->data += length;
    data->length -= (uint32_t)length;
}

/* Gather until `wanted` bytes of a record are held: true when they are. */
static bool hold(struct answer *answer, struct wire_bytes *data, size_t wanted)
{
    size_t missing = wanted > answer->held_length ? wanted - answer->held_length : 0;
    size_t length = data->length < missing ? data->length : missing;

    if (length > 0)
        memcpy(answer->held + answer->held_length, data->data, length);
    answer->held_length += length;
    move(data, length);
    return answer->held_length >= wanted;
}

static int next_record(struct answer *answer, struct wire_bytes *data, struct wire_message *ret_record)
{
    if (!hold(answer, data, WIRE_HEADER_SIZE))
        return 0;
    int length = wire_frame_length(answer->held, answer->held_length);
    if (length < 0 || length > ANSWER_RECORD_MAX)
        return -EBADMSG;
    if (!hold(answer, data, (size_t)length))
        return 0;
    answer->held_length = 0;
    return take_record(answer, answer->held, (size_t)length, ret_record);
}

int answer_next(struct answer *answer, struct wire_bytes *data, struct answer_part *ret_part)
{
    if (data->length == 0)
        return 0;
    if (answer->operation >= WIRE_FILE_OPERATIONS)
        return -EBADMSG;
    if (answer->operation != WIRE_FILE_READ || answer->records == 0) {
        ret_part->content = (struct wire_bytes){0};
        return next_record(answer, data, &ret_part->record);
    }
    if (data->length > answer->content_left)
        return -EBADMSG;
    answer->content_left -= answer->content_left == WIRE_FILE_ALL ? 0 : data->length;
    ret_part->record.type = WIRE_NOTHING;
    ret_part->content = *data;
    move(data, data->length);
    return 1;
}

int answer_end(const struct answer *answer, const struct wire_exit *exit)
{
    if (answer->operation >= WIRE_FILE_OPERATIONS)
        return -EBADMSG;
    bool succeeded = exit->kind == WIRE_EXIT_CODE && exit->value == 0;

    if (succeeded && (answer->held_length > 0 || (grammars[answer->operation].needs_one && answer->records == 0)))
        return -EBADMSG;
    /* One that was ended or not started has not succeeded, whatever it says. */
    return exit->kind > WIRE_EXIT_NOT_STARTED || (exit->kind != WIRE_EXIT_CODE && exit->value == 0) ||
                   exit->value > ERRNO_MAX
               ? -EBADMSG
               : 0;
}
