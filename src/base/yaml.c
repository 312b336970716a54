#include "base/yaml.h"

#include "base/nearest.h"
#include "base/number.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <yaml.h>

typedef struct builder {
    yaml_parser_t parser;
    const char *name; /* the document's copy */
} builder;

static tg_status fail_at(const char *name, yaml_mark_t mark, const char *text)
{
    return tg_fail(TG_ERROR_INPUT, "%s: line %zu, column %zu: %s", name, mark.line + 1,
                   mark.column + 1, text);
}

tg_status tg_yaml_fail(const tg_yaml_node *node, const char *format, ...)
{
    char text[TG_ERROR_BYTES];
    va_list args;
    va_start(args, format);
    tg_number_vprint(text, sizeof text, format, args);
    va_end(args);
    return tg_fail(TG_ERROR_INPUT, "%s: line %zu, column %zu: %s%s%s", node->name, node->line,
                   node->column, node->key ? node->key : "", node->key ? ": " : "", text);
}

static void free_node(tg_yaml_node *node)
{
    while (node) {
        tg_yaml_node *next = node->next;
        free_node(node->first); /* as deep as TG_YAML_MAX_DEPTH at most */
        free(node->key);
        free(node->text);
        free(node);
        node = next;
    }
}

static tg_status parser_error(builder *b)
{
    const yaml_parser_t *p = &b->parser;
    if (p->error == YAML_MEMORY_ERROR)
        return tg_fail(TG_ERROR_MACHINE, "%s: out of memory while reading YAML", b->name);
    const char *problem = p->problem ? p->problem : "not readable as YAML";
    if (p->error == YAML_READER_ERROR)
        return tg_fail(TG_ERROR_INPUT, "%s: byte %zu: %s", b->name, p->problem_offset, problem);
    return fail_at(b->name, p->problem_mark, problem);
}

static tg_status next_event(builder *b, yaml_event_t *out)
{
    return yaml_parser_parse(&b->parser, out) ? TG_OK : parser_error(b);
}

/* Anchors, aliases and tags are not needed in a settings file, and are how small texts grow large.
 */
static tg_status check_plain(const builder *b, const yaml_event_t *event)
{
    const yaml_char_t *anchor = NULL, *tag = NULL;
    if (event->type == YAML_ALIAS_EVENT)
        return fail_at(b->name, event->start_mark, "aliases are not taken here; repeat the value");
    if (event->type == YAML_SCALAR_EVENT) {
        anchor = event->data.scalar.anchor;
        tag = event->data.scalar.tag;
    } else if (event->type == YAML_SEQUENCE_START_EVENT) {
        anchor = event->data.sequence_start.anchor;
        tag = event->data.sequence_start.tag;
    } else if (event->type == YAML_MAPPING_START_EVENT) {
        anchor = event->data.mapping_start.anchor;
        tag = event->data.mapping_start.tag;
    }
    if (anchor)
        return fail_at(b->name, event->start_mark, "anchors are not taken here; repeat the value");
    if (tag)
        return fail_at(b->name, event->start_mark, "tags are not taken here");
    return TG_OK;
}

static tg_status new_node(const builder *b, const yaml_event_t *event, tg_yaml_node **out)
{
    TG_TRY(check_plain(b, event));
    tg_yaml_node *node = calloc(1, sizeof *node);
    if (!node)
        return tg_fail(TG_ERROR_MACHINE, "%s: out of memory while reading YAML", b->name);
    node->kind = event->type == YAML_SCALAR_EVENT           ? TG_YAML_SCALAR
                 : event->type == YAML_SEQUENCE_START_EVENT ? TG_YAML_LIST
                                                            : TG_YAML_MAP;
    node->line = event->start_mark.line + 1;
    node->column = event->start_mark.column + 1;
    node->name = b->name;
    *out = node;
    if (node->kind != TG_YAML_SCALAR)
        return TG_OK;
    const char *text = (const char *)event->data.scalar.value;
    node->quoted = event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
    if (strlen(text) != event->data.scalar.length)
        return fail_at(b->name, event->start_mark, "a text with a zero byte is not taken");
    node->text = strdup(text);
    return node->text ? TG_OK
                      : tg_fail(TG_ERROR_MACHINE, "%s: out of memory while reading YAML", b->name);
}

static tg_status read_node(builder *b, const yaml_event_t *event, int depth, tg_yaml_node **out);

static tg_status read_key(builder *b, const tg_yaml_node *map, const yaml_event_t *event,
                          char **out)
{
    TG_TRY(check_plain(b, event));
    if (event->type != YAML_SCALAR_EVENT)
        return fail_at(b->name, event->start_mark, "a key has to be a plain word");
    const char *key = (const char *)event->data.scalar.value;
    if (map->count == TG_YAML_MAX_KEYS)
        return fail_at(b->name, event->start_mark, "too many keys in one map");
    if (tg_yaml_find(map, key))
        return tg_fail(TG_ERROR_INPUT, "%s: line %zu, column %zu: key \"%s\" appears twice",
                       b->name, event->start_mark.line + 1, event->start_mark.column + 1, key);
    *out = strdup(key);
    return *out ? TG_OK
                : tg_fail(TG_ERROR_MACHINE, "%s: out of memory while reading YAML", b->name);
}

/* Reads one child of a list or map; TG_END at its end. */
static tg_status read_child(builder *b, tg_yaml_node *parent, int depth, tg_yaml_node **link)
{
    yaml_event_t event;
    char *key = NULL;
    TG_TRY(next_event(b, &event));
    tg_status status = TG_OK;
    if (event.type == YAML_SEQUENCE_END_EVENT || event.type == YAML_MAPPING_END_EVENT)
        status = TG_END;
    else if (parent->kind == TG_YAML_MAP)
        status = read_key(b, parent, &event, &key);
    if (status == TG_OK && key) {
        yaml_event_delete(&event);
        status = next_event(b, &event);
        if (status < 0) {
            free(key);
            return status;
        }
    }
    if (status == TG_OK)
        status = read_node(b, &event, depth + 1, link);
    yaml_event_delete(&event);
    if (status == TG_OK && *link) {
        (*link)->key = key;
        parent->count++;
        return TG_OK;
    }
    free(key);
    return status;
}

/* On failure *out holds what was built so far, for the caller to free. */
static tg_status read_node(builder *b, const yaml_event_t *event, int depth, tg_yaml_node **out)
{
    if (depth > TG_YAML_MAX_DEPTH)
        return fail_at(b->name, event->start_mark, "nested too deep");
    TG_TRY(new_node(b, event, out));
    tg_yaml_node *node = *out, **link = &node->first;
    if (node->kind == TG_YAML_SCALAR)
        return TG_OK;
    for (;;) {
        tg_status status = read_child(b, node, depth, link);
        if (status != TG_OK)
            return status == TG_END ? TG_OK : status;
        link = &(*link)->next;
    }
}

/* Stream start, document start, the root, document end, stream end. */
static tg_status read_document(builder *b, tg_yaml_node **out)
{
    yaml_event_t event;
    tg_status status = TG_OK;
    yaml_event_type_t type;
    do {
        TG_TRY(next_event(b, &event));
        type = event.type;
        bool skipped = type == YAML_STREAM_START_EVENT || type == YAML_DOCUMENT_END_EVENT ||
                       type == YAML_STREAM_END_EVENT;
        if (type == YAML_DOCUMENT_START_EVENT) {
            if (*out)
                status = fail_at(b->name, event.start_mark, "only one document is taken");
        } else if (!skipped) {
            status = read_node(b, &event, 1, out);
        }
        yaml_event_delete(&event);
    } while (status == TG_OK && type != YAML_STREAM_END_EVENT);
    return status;
}

/* An empty text has no root; a null one stands for an empty map too. */
static tg_status settle_root(tg_yaml *yaml)
{
    if (yaml->root && !tg_yaml_is_null(yaml->root))
        return TG_OK;
    free_node(yaml->root);
    yaml->root = calloc(1, sizeof *yaml->root);
    if (!yaml->root)
        return tg_fail(TG_ERROR_MACHINE, "%s: out of memory while reading YAML", yaml->name);
    *yaml->root = (tg_yaml_node){.kind = TG_YAML_MAP, .line = 1, .column = 1, .name = yaml->name};
    return TG_OK;
}

tg_status tg_yaml_parse(const char *bytes, size_t length, const char *name, tg_yaml *out)
{
    if (length > TG_YAML_MAX_BYTES)
        return tg_fail(TG_ERROR_INPUT, "%s: larger than the %u bytes allowed here", name,
                       TG_YAML_MAX_BYTES);
    tg_yaml yaml = {.name = strdup(name)};
    builder b = {.name = yaml.name};
    if (!yaml.name || !yaml_parser_initialize(&b.parser)) {
        free(yaml.name);
        return tg_fail(TG_ERROR_MACHINE, "%s: out of memory while reading YAML", name);
    }
    yaml_parser_set_input_string(&b.parser, (const unsigned char *)bytes, length);
    tg_status status = read_document(&b, &yaml.root);
    if (status == TG_OK)
        status = settle_root(&yaml);
    yaml_parser_delete(&b.parser);
    if (status < 0)
        tg_yaml_done(&yaml);
    else
        *out = yaml;
    return status;
}

void tg_yaml_done(tg_yaml *yaml)
{
    if (!yaml)
        return;
    free_node(yaml->root);
    free(yaml->name);
    *yaml = (tg_yaml){0};
}

const tg_yaml_node *tg_yaml_find(const tg_yaml_node *map, const char *key)
{
    if (map->kind != TG_YAML_MAP)
        return NULL;
    for (const tg_yaml_node *node = map->first; node; node = node->next)
        if (node->key && strcmp(node->key, key) == 0)
            return node;
    return NULL;
}

bool tg_yaml_is_null(const tg_yaml_node *node)
{
    if (node->kind != TG_YAML_SCALAR || node->quoted)
        return false;
    return !node->text[0] || strcmp(node->text, "~") == 0 || strcasecmp(node->text, "null") == 0;
}

static const char *kind_name(tg_yaml_kind kind)
{
    return kind == TG_YAML_SCALAR ? "a single value" : kind == TG_YAML_LIST ? "a list" : "a map";
}

static tg_status check_kind(const tg_yaml_node *node, tg_yaml_kind kind)
{
    if (node->kind == kind)
        return TG_OK;
    return tg_yaml_fail(node, "expected %s, found %s", kind_name(kind), kind_name(node->kind));
}

tg_status tg_yaml_as_string(const tg_yaml_node *node, const char **out)
{
    TG_TRY(check_kind(node, TG_YAML_SCALAR));
    *out = node->text;
    return TG_OK;
}

tg_status tg_yaml_as_int(const tg_yaml_node *node, int64_t *out)
{
    TG_TRY(check_kind(node, TG_YAML_SCALAR));
    if (!tg_number_parse_i64(node->text, strlen(node->text), out))
        return tg_yaml_fail(node, "expected a whole number, found \"%.100s\"", node->text);
    return TG_OK;
}

tg_status tg_yaml_as_double(const tg_yaml_node *node, double *out)
{
    TG_TRY(check_kind(node, TG_YAML_SCALAR));
    if (!tg_number_parse_double(node->text, strlen(node->text), out))
        return tg_yaml_fail(node, "expected a number like 0.5, found \"%.100s\"", node->text);
    return TG_OK;
}

tg_status tg_yaml_as_bool(const tg_yaml_node *node, bool *out)
{
    static const char *const WORDS[] = {"false", "true", "no", "yes", "off", "on"};
    TG_TRY(check_kind(node, TG_YAML_SCALAR));
    for (size_t i = 0; i < 6; i++) {
        if (strcasecmp(node->text, WORDS[i]) == 0) {
            *out = i % 2;
            return TG_OK;
        }
    }
    return tg_yaml_fail(node, "expected true or false, found \"%.100s\"", node->text);
}

/* TG_OK with the child, TG_END when it is absent or null and need not be there. */
static tg_status look_up(const tg_yaml_node *map, const char *key, bool required,
                         const tg_yaml_node **out)
{
    TG_TRY(check_kind(map, TG_YAML_MAP));
    const tg_yaml_node *node = tg_yaml_find(map, key);
    if (node && !tg_yaml_is_null(node)) {
        *out = node;
        return TG_OK;
    }
    if (!required)
        return TG_END;
    return tg_yaml_fail(node ? node : map, "key \"%s\" %s", key,
                        node ? "has no value" : "is missing");
}

#define GETTER(name, type, convert)                                                                \
    tg_status name(const tg_yaml_node *map, const char *key, bool required, type *out)             \
    {                                                                                              \
        const tg_yaml_node *node;                                                                  \
        tg_status status = look_up(map, key, required, &node);                                     \
        return status == TG_OK ? convert(node, out) : status < 0 ? status : TG_OK;                 \
    }

GETTER(tg_yaml_get_string, const char *, tg_yaml_as_string)
GETTER(tg_yaml_get_int, int64_t, tg_yaml_as_int)
GETTER(tg_yaml_get_double, double, tg_yaml_as_double)
GETTER(tg_yaml_get_bool, bool, tg_yaml_as_bool)

static tg_status get_container(const tg_yaml_node *map, const char *key, bool required,
                               tg_yaml_kind kind, const tg_yaml_node **out)
{
    const tg_yaml_node *node = NULL;
    tg_status status = look_up(map, key, required, &node);
    TG_TRY(status);
    if (status == TG_OK)
        TG_TRY(check_kind(node, kind));
    *out = node;
    return TG_OK;
}

tg_status tg_yaml_get_list(const tg_yaml_node *map, const char *key, bool required,
                           const tg_yaml_node **out)
{
    return get_container(map, key, required, TG_YAML_LIST, out);
}

tg_status tg_yaml_get_map(const tg_yaml_node *map, const char *key, bool required,
                          const tg_yaml_node **out)
{
    return get_container(map, key, required, TG_YAML_MAP, out);
}

static bool is_among(const char *key, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(names[i], key) == 0)
            return true;
    return false;
}

tg_status tg_yaml_check_keys(const tg_yaml_node *map, const char *const *names, size_t count)
{
    TG_TRY(check_kind(map, TG_YAML_MAP));
    for (const tg_yaml_node *node = map->first; node; node = node->next) {
        if (is_among(node->key, names, count))
            continue;
        const char *best = tg_nearest_of(node->key, names, count);
        return tg_yaml_fail(node, "unknown key" TG_NEAREST_FORMAT, TG_NEAREST_HINT(best));
    }
    return TG_OK;
}
