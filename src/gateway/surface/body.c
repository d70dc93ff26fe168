#include "gateway/surface/body.h"

#include "base/nearest.h"

#include <math.h>
#include <string.h>

enum { PATH_SIZE = 160 };

static bool opens(char c)
{
    return c == '{' || c == '[';
}

/*
 * jansson makes an object of 40 bytes and more of every `0,`: what would become too many, or too deep for the stack,
 * is refused from the text alone.
 */
static int check_shape(const char *text, size_t length, struct error *err)
{
    size_t depth = 0;
    size_t values = 1;
    bool is_in_text = false;

    for (size_t i = 0; i < length; i++) {
        char c = text[i];
        if (is_in_text && c == '\\')
            i++;
        else if (c == '"')
            is_in_text = !is_in_text;
        if (is_in_text)
            continue;
        values += opens(c) || c == ',' || c == ':';
        depth += opens(c);
        depth -= (c == '}' || c == ']') && depth > 0;
        if (depth > BODY_DEPTH_MAX)
            return error_set(err, ERROR_INVALID, 0, "the body is nested deeper than %d levels", BODY_DEPTH_MAX);
        if (values > BODY_VALUES_MAX)
            return error_set(err, ERROR_INVALID, 0, "the body has more than %d values", BODY_VALUES_MAX);
    }
    return 0;
}

int body_parse(const void *data, size_t length, json_t **ret_root, struct error *err)
{
    json_error_t why;

    int r = check_shape(data, length, err);
    if (r < 0)
        return r;
    json_t *root = length == 0 ? json_object() : json_loadb(data, length, JSON_REJECT_DUPLICATES, &why);
    if (root == NULL && length == 0)
        return error_set(err, ERROR_SYSTEM, ENOMEM, "reading the body");
    if (root == NULL)
        return error_set(err, ERROR_INVALID, 0, "the body is not JSON: line %d, column %d: %s", why.line, why.column,
                         why.text);
    if (!json_is_object(root)) {
        json_decref(root);
        return error_set(err, ERROR_INVALID, 0, "the body must be a JSON object");
    }
    *ret_root = root;
    return 0;
}

static void join(char path[PATH_SIZE], const char *above, const char *name)
{
    (void)snprintf(path, PATH_SIZE, "%s%s%s", above, *above == '\0' ? "" : ".", name);
}

static int refuse(struct error *err, const char *path, const char *expected)
{
    return error_set(err, ERROR_INVALID, 0, "%s: must be %s", path, expected);
}

static int refuse_range(struct error *err, const char *path, const char *unit, const struct body_field *field)
{
    return error_set(err, ERROR_INVALID, 0, "%s: must be %s from %lld to %lld", path, unit, (long long)field->least,
                     (long long)field->most);
}

static bool is_choice(const char *choices, const char *text)
{
    size_t length = strlen(text);

    for (const char *at = choices; at != NULL && strchr(text, '|') == NULL; at = strchr(at, '|')) {
        at += *at == '|';
        if (strncmp(at, text, length) == 0 && (at[length] == '|' || at[length] == '\0'))
            return true;
    }
    return false;
}

static int take_text(const json_t *value, const char *path, const struct body_field *field, void *at, struct error *err)
{
    if (!json_is_string(value))
        return refuse(err, path, "a string");
    size_t length = json_string_length(value);
    if (field->choices != NULL && !is_choice(field->choices, json_string_value(value)))
        return error_set(err, ERROR_INVALID, 0, "%s: must be one of %s", path, field->choices);
    if (field->choices == NULL && (length < (size_t)field->least || length > (size_t)field->most))
        return refuse_range(err, path, "a string whose bytes are", field);
    *(const char **)at = json_string_value(value);
    return 0;
}

#define EXACT_MOST 9007199254740992.0 /* beyond it a double skips whole numbers */

static int take_number(const json_t *value, const char *path, const struct body_field *field, void *at,
                       struct error *err)
{
    double number = json_number_value(value);
    bool is_milli = field->kind == BODY_MILLI;
    /* To JSON Schema 5.0 is a whole number too. */
    bool is_whole =
        json_is_integer(value) || (json_is_real(value) && fabs(number) < EXACT_MOST && trunc(number) == number);

    if (!json_is_number(value) || (!is_milli && !is_whole))
        return refuse(err, path, is_milli ? "a number" : "a whole number");
    if (is_milli)
        number = round(number * 1000);
    if (number < (double)field->least || number > (double)field->most) {
        if (!is_milli)
            return refuse_range(err, path, "a whole number", field);
        return error_set(err, ERROR_INVALID, 0, "%s: must be a number from %g to %g", path, (double)field->least / 1000,
                         (double)field->most / 1000);
    }
    *(struct body_number *)at =
        (struct body_number){true, json_is_integer(value) && !is_milli ? json_integer_value(value) : (int64_t)number};
    return 0;
}

static int take_switch(const json_t *value, const char *path, void *at, struct error *err)
{
    if (!json_is_boolean(value))
        return refuse(err, path, "true or false");
    *(struct body_switch *)at = (struct body_switch){true, json_is_true(value)};
    return 0;
}

static int take_texts(const json_t *value, const char *path, const struct body_field *field, void *at,
                      struct error *err)
{
    size_t i;
    json_t *item;

    if (!json_is_array(value))
        return refuse(err, path, "a list of strings");
    if (json_array_size(value) < (size_t)field->least || json_array_size(value) > (size_t)field->most)
        return refuse_range(err, path, "a list whose entries are", field);
    json_array_foreach(value, i, item)
    {
        if (!json_is_string(item))
            return error_set(err, ERROR_INVALID, 0, "%s[%zu]: must be a string", path, i);
    }
    *(const json_t **)at = value;
    return 0;
}

static int take_map(const json_t *value, const char *path, const struct body_field *field, void *at, struct error *err)
{
    const char *name;
    json_t *item;

    if (!json_is_object(value))
        return refuse(err, path, "an object");
    if (json_object_size(value) > (size_t)field->most)
        return refuse_range(err, path, "an object whose entries are", field);
    json_object_foreach((json_t *)value, name, item)
    {
        if (!json_is_string(item))
            return error_set(err, ERROR_INVALID, 0, "%s.%.64s: must be a string", path, name);
    }
    *(const json_t **)at = value;
    return 0;
}

static int take_field(const json_t *value, const char *path, const struct body_field *field, void *target,
                      struct error *err)
{
    void *at = (char *)target + field->offset;

    switch (field->kind) {
    case BODY_TEXT:
        return take_text(value, path, field, at, err);
    case BODY_NUMBER:
    case BODY_MILLI:
        return take_number(value, path, field, at, err);
    case BODY_SWITCH:
        return take_switch(value, path, at, err);
    case BODY_TEXTS:
        return take_texts(value, path, field, at, err);
    case BODY_MAP:
        return take_map(value, path, field, at, err);
    case BODY_PART:
        return body_take(value, path, field->part, target, err);
    case BODY_VALUE:
        *(const json_t **)at = value;
        return 0;
    }
    return 0;
}

static int refuse_unknown(const char *above, const char *name, const struct body_fields *fields, struct error *err)
{
    struct nearest nearest = nearest_init(name);
    char path[PATH_SIZE];

    join(path, above, name);
    for (size_t i = 0; i < fields->count; i++)
        nearest_offer(&nearest, fields->items[i].name);
    if (nearest.best != NULL)
        return error_set(err, ERROR_INVALID, 0, "%s: there is no such field; did you mean %s?", path, nearest.best);
    return error_set(err, ERROR_INVALID, 0, "%s: there is no such field", path);
}

static bool is_known(const char *name, const struct body_fields *fields)
{
    for (size_t i = 0; i < fields->count; i++) {
        if (strcmp(fields->items[i].name, name) == 0)
            return true;
    }
    return false;
}

int body_take(const json_t *object, const char *path, const struct body_fields *fields, void *target, struct error *err)
{
    const char *name;
    json_t *value;
    int r = 0;

    if (!json_is_object(object))
        return refuse(err, *path == '\0' ? "the body" : path, "an object");
    json_object_foreach((json_t *)object, name, value)
    {
        if (!is_known(name, fields))
            return refuse_unknown(path, name, fields, err);
    }
    for (size_t i = 0; r == 0 && i < fields->count; i++) {
        const struct body_field *field = &fields->items[i];
        char below[PATH_SIZE];
        join(below, path, field->name);
        value = json_object_get(object, field->name);
        if (value != NULL && !json_is_null(value))
            r = take_field(value, below, field, target, err);
        else if (field->required || value != NULL)
            r = error_set(err, ERROR_INVALID, 0, "%s: %s", below, value != NULL ? "must not be null" : "is missing");
    }
    return r;
}
