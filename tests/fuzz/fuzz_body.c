/*
 * A body as a caller sends it, taken by a table with every kind of field in it. Whatever is taken keeps its promises:
 * in its bounds, of its type; what is refused has a message.
 */
#include "fuzz.h"
#include "gateway/surface/body.h"

#include <string.h>

struct sample {
    const char *name;
    const char *mode;
    struct body_number count;
    struct body_number cpu;
    struct body_switch on;
    const json_t *list;
    const json_t *map;
    struct body_number inner;
    const json_t *any;
};

enum { NAME_MAX_BYTES = 16, COUNT_MAX = 1000, LIST_MAX = 4, CPU_LEAST = 10, CPU_MOST = 4000 };

#define AT(member) offsetof(struct sample, member)
static const struct body_field inner_items[] = {{"inner", BODY_NUMBER, AT(inner), true, 0, COUNT_MAX, NULL, NULL}};
static const struct body_fields inner_fields = BODY_FIELDS(inner_items);
static const struct body_field items[] = {
    {"name", BODY_TEXT, AT(name), false, 1, NAME_MAX_BYTES, NULL, NULL},
    {"mode", BODY_TEXT, AT(mode), false, 0, 0, "ro|rw", NULL},
    {"count", BODY_NUMBER, AT(count), false, 0, COUNT_MAX, NULL, NULL},
    {"cpu", BODY_MILLI, AT(cpu), false, CPU_LEAST, CPU_MOST, NULL, NULL},
    {"on", BODY_SWITCH, AT(on), false, 0, 0, NULL, NULL},
    {"list", BODY_TEXTS, AT(list), false, 0, LIST_MAX, NULL, NULL},
    {"map", BODY_MAP, AT(map), false, 0, LIST_MAX, NULL, NULL},
    {"part", BODY_PART, 0, false, 0, 0, NULL, &inner_fields},
    {"any", BODY_VALUE, AT(any), false, 0, 0, NULL, NULL},
};
static const struct body_fields fields = BODY_FIELDS(items);

static void check(const struct sample *sample)
{
    MUST(sample->name == NULL || (strlen(sample->name) >= 1 && strlen(sample->name) <= NAME_MAX_BYTES));
    MUST(sample->mode == NULL || strcmp(sample->mode, "ro") == 0 || strcmp(sample->mode, "rw") == 0);
    MUST(!sample->count.given || (sample->count.value >= 0 && sample->count.value <= COUNT_MAX));
    MUST(!sample->inner.given || (sample->inner.value >= 0 && sample->inner.value <= COUNT_MAX));
    MUST(!sample->cpu.given || (sample->cpu.value >= CPU_LEAST && sample->cpu.value <= CPU_MOST));
    MUST(sample->list == NULL || json_array_size(sample->list) <= LIST_MAX);
    MUST(sample->map == NULL || json_object_size(sample->map) <= LIST_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sample sample = {0};
    struct error err = {0};
    json_t *root = NULL;

    if (body_parse(data, size, &root, &err) < 0) {
        MUST(root == NULL && err.message[0] != '\0');
        return 0;
    }
    if (body_take(root, "", &fields, &sample, &err) < 0)
        MUST(err.code != ERROR_NONE && err.message[0] != '\0');
    else
        check(&sample);
    json_decref(root);
    return 0;
}
