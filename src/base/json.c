#include "base/json.h"

#include "base/number.h"

#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct position {
    size_t line, column; /* from 1; columns count bytes */
} position;

static position locate(const char *bytes, size_t at)
{
    position p = {1, 1};
    for (size_t i = 0; i < at; i++) {
        p.column++;
        if (bytes[i] == '\n')
            p = (position){p.line + 1, 1};
    }
    return p;
}

/* jansson recurses up to a depth of its own; this bounds it to ours before it starts. */
static tg_status check_depth(const char *bytes, size_t length, const char *name)
{
    size_t depth = 0;
    bool in_string = false;
    for (size_t i = 0; i < length; i++) {
        char c = bytes[i];
        if (in_string && c == '\\')
            i++;
        else if (c == '"')
            in_string = !in_string;
        else if (!in_string && (c == '{' || c == '['))
            depth++;
        else if (!in_string && (c == '}' || c == ']') && depth)
            depth--;
        if (depth > TG_JSON_MAX_DEPTH) {
            position p = locate(bytes, i);
            return tg_fail(TG_ERROR_INPUT, "%s: line %zu, column %zu: nested deeper than %d", name,
                           p.line, p.column, TG_JSON_MAX_DEPTH);
        }
    }
    return TG_OK;
}

static bool is_python_number(const char *text)
{
    return strstr(text, "'NaN'") || strstr(text, "'Infinity'") || strstr(text, "'-'") ||
           strstr(text, "'-Infinity'") || strstr(text, "'I'") || strstr(text, "'N'");
}

static tg_status parse_error(const json_error_t *error, const char *name)
{
    if (json_error_code(error) == json_error_out_of_memory)
        return tg_fail(TG_ERROR_MACHINE, "%s: out of memory while reading JSON", name);
    const char *hint = is_python_number(error->text)
                           ? " (NaN and Infinity are not JSON; write a number or null)"
                           : "";
    return tg_fail(TG_ERROR_INPUT, "%s: line %d, column %d: %s%s", name, error->line, error->column,
                   error->text, hint);
}

tg_status tg_json_parse(const char *bytes, size_t length, const char *name, tg_json *out)
{
    if (length >= 3 && memcmp(bytes, "\xEF\xBB\xBF", 3) == 0) {
        bytes += 3;
        length -= 3;
    }
    TG_TRY(check_depth(bytes, length, name));
    char *copy = strdup(name);
    if (!copy)
        return tg_fail(TG_ERROR_MACHINE, "%s: out of memory while reading JSON", name);
    json_error_t error;
    void *previous = tg_number_locale_enter();
    json_t *root = json_loadb(bytes, length, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &error);
    tg_number_locale_leave(previous);
    if (!root) {
        free(copy);
        return parse_error(&error, name);
    }
    *out = (tg_json){.root = root, .name = copy};
    return TG_OK;
}

void tg_json_done(tg_json *json)
{
    if (!json)
        return;
    json_decref(json->root);
    free(json->name);
    *json = (tg_json){0};
}

tg_json_node tg_json_root(const tg_json *json)
{
    return (tg_json_node){.value = json->root, .name = json->name};
}

tg_json_kind tg_json_node_kind(const tg_json_node *node)
{
    switch (json_typeof((const json_t *)node->value)) {
    case JSON_OBJECT:
        return TG_JSON_OBJECT;
    case JSON_ARRAY:
        return TG_JSON_ARRAY;
    case JSON_STRING:
        return TG_JSON_STRING;
    case JSON_INTEGER:
        return TG_JSON_INT;
    case JSON_REAL:
        return TG_JSON_DOUBLE;
    case JSON_TRUE:
    case JSON_FALSE:
        return TG_JSON_BOOL;
    case JSON_NULL:
        break;
    }
    return TG_JSON_NULL;
}

static const char *kind_name(tg_json_kind kind)
{
    static const char *const NAMES[] = {"null",     "true or false", "a whole number", "a number",
                                        "a string", "an array",      "an object"};
    return NAMES[kind];
}

size_t tg_json_count(const tg_json_node *node)
{
    const json_t *value = node->value;
    return json_is_array(value) ? json_array_size(value) : json_object_size(value);
}

tg_status tg_json_fail(const tg_json_node *node, const char *format, ...)
{
    char text[TG_ERROR_BYTES];
    va_list args;
    va_start(args, format);
    tg_number_vprint(text, sizeof text, format, args);
    va_end(args);
    return tg_fail(TG_ERROR_INPUT, "%s: %s%s%s", node->name, node->place,
                   node->place[0] ? ": " : "", text);
}

static tg_status wrong_kind(const tg_json_node *node, tg_json_kind wanted)
{
    return tg_json_fail(node, "expected %s, found %s", kind_name(wanted),
                        kind_name(tg_json_node_kind(node)));
}

tg_status tg_json_as_int(const tg_json_node *node, int64_t *out)
{
    const json_t *value = node->value;
    if (json_is_integer(value)) {
        *out = json_integer_value(value);
        return TG_OK;
    }
    double real = json_real_value(value);
    if (!json_is_real(value))
        return wrong_kind(node, TG_JSON_INT);
    if (real != floor(real) || fabs(real) > 0x1p53)
        return tg_json_fail(node, "expected a whole number, found %.17g", real);
    *out = (int64_t)real;
    return TG_OK;
}

tg_status tg_json_as_double(const tg_json_node *node, double *out)
{
    if (!json_is_number((const json_t *)node->value))
        return wrong_kind(node, TG_JSON_DOUBLE);
    *out = json_number_value(node->value);
    return TG_OK;
}

tg_status tg_json_as_bool(const tg_json_node *node, bool *out)
{
    if (!json_is_boolean((const json_t *)node->value))
        return wrong_kind(node, TG_JSON_BOOL);
    *out = json_is_true((const json_t *)node->value);
    return TG_OK;
}

tg_status tg_json_as_string(const tg_json_node *node, const char **out)
{
    if (!json_is_string((const json_t *)node->value))
        return wrong_kind(node, TG_JSON_STRING);
    *out = json_string_value(node->value);
    return TG_OK;
}

static tg_json_node member_node(const tg_json_node *object, const char *key, const json_t *value)
{
    tg_json_node node = {.value = value, .name = object->name};
    snprintf(node.place, sizeof node.place, "%.*s%s%.*s", TG_JSON_PLACE_BYTES - 64, object->place,
             object->place[0] ? "." : "", 60, key);
    return node;
}

bool tg_json_find(const tg_json_node *object, const char *key, tg_json_node *out)
{
    const json_t *value = json_object_get(object->value, key);
    if (!value)
        return false;
    *out = member_node(object, key, value);
    return true;
}

/* TG_OK with the member, TG_END when it is absent or null and need not be there. */
static tg_status look_up(const tg_json_node *object, const char *key, bool required,
                         tg_json_node *out)
{
    if (!json_is_object((const json_t *)object->value))
        return wrong_kind(object, TG_JSON_OBJECT);
    bool found = tg_json_find(object, key, out);
    if (found && !json_is_null((const json_t *)out->value))
        return TG_OK;
    if (!required)
        return TG_END;
    return tg_json_fail(object, "key \"%s\" is %s", key, found ? "null" : "missing");
}

#define GETTER(name, type, convert)                                                                \
    tg_status name(const tg_json_node *object, const char *key, bool required, type *out)          \
    {                                                                                              \
        tg_json_node node;                                                                         \
        tg_status status = look_up(object, key, required, &node);                                  \
        return status == TG_OK ? convert(&node, out) : status < 0 ? status : TG_OK;                \
    }

static tg_status as_size(const tg_json_node *node, size_t *out)
{
    int64_t value;
    TG_TRY(tg_json_as_int(node, &value));
    if (value < 0)
        return tg_json_fail(node, "expected a number of at least 0, found %lld", (long long)value);
    *out = (size_t)value;
    return TG_OK;
}

GETTER(tg_json_get_int, int64_t, tg_json_as_int)
GETTER(tg_json_get_size, size_t, as_size)
GETTER(tg_json_get_double, double, tg_json_as_double)
GETTER(tg_json_get_bool, bool, tg_json_as_bool)
GETTER(tg_json_get_string, const char *, tg_json_as_string)

/* Looks up a member of one of the two container kinds. */
static tg_status get_container(const tg_json_node *object, const char *key, bool required,
                               tg_json_kind kind, tg_json_node *out, bool *out_found)
{
    tg_json_node node;
    tg_status status = look_up(object, key, required, &node);
    if (status < 0)
        return status;
    if (status == TG_OK && tg_json_node_kind(&node) != kind)
        return wrong_kind(&node, kind);
    if (status == TG_OK)
        *out = node;
    if (out_found)
        *out_found = status == TG_OK;
    return TG_OK;
}

tg_status tg_json_get_object(const tg_json_node *object, const char *key, bool required,
                             tg_json_node *out, bool *out_found)
{
    return get_container(object, key, required, TG_JSON_OBJECT, out, out_found);
}

tg_status tg_json_get_array(const tg_json_node *object, const char *key, bool required,
                            tg_json_node *out, bool *out_found)
{
    return get_container(object, key, required, TG_JSON_ARRAY, out, out_found);
}

tg_json_node tg_json_element(const tg_json_node *array, size_t index)
{
    tg_json_node node = {.value = json_array_get(array->value, index), .name = array->name};
    snprintf(node.place, sizeof node.place, "%.*s[%zu]", TG_JSON_PLACE_BYTES - 24, array->place,
             index);
    return node;
}

tg_status tg_json_get_doubles(const tg_json_node *object, const char *key, bool required,
                              size_t count, double *out)
{
    tg_json_node array;
    bool found;
    TG_TRY(tg_json_get_array(object, key, required, &array, &found));
    if (!found)
        return TG_OK;
    if (tg_json_count(&array) != count)
        return tg_json_fail(&array, "expected %zu numbers, found %zu", count,
                            tg_json_count(&array));
    double value;
    for (size_t i = 0; i < count; i++) {
        tg_json_node element = tg_json_element(&array, i);
        TG_TRY(tg_json_as_double(&element, &value));
    }
    for (size_t i = 0; i < count; i++)
        out[i] = json_number_value(json_array_get(array.value, i));
    return TG_OK;
}

bool tg_json_next(const tg_json_node *object, tg_json_iterator *iterator, const char **out_key,
                  tg_json_node *out)
{
    /* jansson's iterator takes the object without const but does not change it */
    json_t *value = (json_t *)(uintptr_t)object->value;
    iterator->at =
        iterator->started ? json_object_iter_next(value, iterator->at) : json_object_iter(value);
    iterator->started = true;
    if (!iterator->at)
        return false;
    *out_key = json_object_iter_key(iterator->at);
    *out = member_node(object, *out_key, json_object_iter_value(iterator->at));
    return true;
}
