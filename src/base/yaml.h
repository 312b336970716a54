/* yaml.h - reading YAML that people write (--config files, job files), with errors that name the
 * file, line, column and key.
 *
 * Taken: maps, lists and scalars in block or flow style, one document, comments. Refused with a
 * message: duplicate keys, anchors and aliases, tags, more than one document, keys that are not
 * scalars, nesting deeper than TG_YAML_MAX_DEPTH, texts above TG_YAML_MAX_BYTES, maps of more than
 * TG_YAML_MAX_KEYS keys. An empty document is an empty map. Scalars stay text until a getter reads
 * them, so `no` is a fine string; numbers are read under the C locale; true/false, yes/no and on/off
 * in any case are booleans.
 *
 * Getters look a key up in a map. With TG_OPTIONAL an absent key, or a plain empty, `~` or `null`
 * value, leaves *out as it was; with TG_REQUIRED it is an error.
 *
 * Memory  the document owns everything; nodes and strings are borrowed until tg_yaml_done.
 * Errors  TG_ERROR_INPUT; TG_ERROR_MACHINE when memory is short. Threads reentrant.
 */
#ifndef TG_BASE_YAML_H
#define TG_BASE_YAML_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TG_YAML_MAX_DEPTH 32
#define TG_YAML_MAX_BYTES (4u << 20)
#define TG_YAML_MAX_KEYS 10000

#ifndef TG_REQUIRED
#define TG_REQUIRED true
#define TG_OPTIONAL false
#endif

typedef enum tg_yaml_kind { TG_YAML_SCALAR, TG_YAML_LIST, TG_YAML_MAP } tg_yaml_kind;

typedef struct tg_yaml_node {
    tg_yaml_kind kind;
    size_t line, column; /* from 1 */
    const char *name;    /* of the document */
    char *key;           /* in a map; else NULL */
    char *text;          /* of a scalar; may hold NUL bytes only as its end */
    bool quoted;         /* the scalar was quoted or a block: never null */
    size_t count;        /* children of a list or map */
    struct tg_yaml_node *first, *next;
} tg_yaml_node;

typedef struct tg_yaml {
    tg_yaml_node *root;
    char *name;
} tg_yaml;

tg_status tg_yaml_parse(const char *bytes, size_t length, const char *name,
                        tg_yaml *out) TG_MUST_CHECK;
void tg_yaml_done(tg_yaml *yaml);

/* The child of a map; NULL when absent or `map` is none. */
const tg_yaml_node *tg_yaml_find(const tg_yaml_node *map, const char *key);
/* Plain empty, `~` or `null`. */
bool tg_yaml_is_null(const tg_yaml_node *node);

tg_status tg_yaml_as_string(const tg_yaml_node *node, const char **out) TG_MUST_CHECK;
tg_status tg_yaml_as_int(const tg_yaml_node *node, int64_t *out) TG_MUST_CHECK;
tg_status tg_yaml_as_double(const tg_yaml_node *node, double *out) TG_MUST_CHECK;
tg_status tg_yaml_as_bool(const tg_yaml_node *node, bool *out) TG_MUST_CHECK;

tg_status tg_yaml_get_string(const tg_yaml_node *map, const char *key, bool required,
                             const char **out) TG_MUST_CHECK;
tg_status tg_yaml_get_int(const tg_yaml_node *map, const char *key, bool required,
                          int64_t *out) TG_MUST_CHECK;
tg_status tg_yaml_get_double(const tg_yaml_node *map, const char *key, bool required,
                             double *out) TG_MUST_CHECK;
tg_status tg_yaml_get_bool(const tg_yaml_node *map, const char *key, bool required,
                           bool *out) TG_MUST_CHECK;
/* A list or map under `key`; *out is NULL when it is optional and absent. */
tg_status tg_yaml_get_list(const tg_yaml_node *map, const char *key, bool required,
                           const tg_yaml_node **out) TG_MUST_CHECK;
tg_status tg_yaml_get_map(const tg_yaml_node *map, const char *key, bool required,
                          const tg_yaml_node **out) TG_MUST_CHECK;

/* Refuses the first key that is not among `names`, with the nearest that is. */
tg_status tg_yaml_check_keys(const tg_yaml_node *map, const char *const *names,
                             size_t count) TG_MUST_CHECK;

/* Records "NAME: line L, column C: KEY: text" and returns TG_ERROR_INPUT. */
tg_status tg_yaml_fail(const tg_yaml_node *node, const char *format, ...) TG_PRINTF(2, 3);

#endif
