/* json.h - reading JSON that comes from outside, with errors that name file, line and key.
 *
 * Syntax is jansson's (RFC 8259), made stricter: duplicate keys are refused, nesting deeper than
 * TG_JSON_MAX_DEPTH is refused before parsing, and so are NaN and Infinity, which Python's json
 * writes although JSON has no such numbers. A leading UTF-8 byte order mark is passed over. Numbers
 * are read the same under every locale.
 *
 * A tg_json is the document, a tg_json_node one value of it together with its place ("a.b[3]"),
 * which every message carries. Getters look a key up in an object node. With TG_OPTIONAL an absent
 * key or a null leaves *out as it was, so set the default before; with TG_REQUIRED it is an error.
 * A value of another type is always an error.
 *
 * Memory  the document owns everything; nodes and strings are borrowed until tg_json_done.
 * Errors  TG_ERROR_INPUT; TG_ERROR_MACHINE when memory is short.
 * Threads reentrant; a document may be read by many threads.
 */
#ifndef TG_BASE_JSON_H
#define TG_BASE_JSON_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TG_JSON_MAX_DEPTH 64
#define TG_JSON_PLACE_BYTES 160

#ifndef TG_REQUIRED
#define TG_REQUIRED true
#define TG_OPTIONAL false
#endif

typedef struct tg_json {
    void *root; /* jansson's value */
    char *name;
} tg_json;

typedef enum tg_json_kind {
    TG_JSON_NULL,
    TG_JSON_BOOL,
    TG_JSON_INT,
    TG_JSON_DOUBLE,
    TG_JSON_STRING,
    TG_JSON_ARRAY,
    TG_JSON_OBJECT
} tg_json_kind;

typedef struct tg_json_node {
    const void *value;               /* jansson's value */
    const char *name;                /* of the document, for messages */
    char place[TG_JSON_PLACE_BYTES]; /* "" at the root; cut when longer */
} tg_json_node;

/* Parses `length` bytes; `name` (a path) is for messages and is copied. Any JSON value may be the
 * outermost. *out must be zeroed or done. */
tg_status tg_json_parse(const char *bytes, size_t length, const char *name,
                        tg_json *out) TG_MUST_CHECK;
void tg_json_done(tg_json *json);

tg_json_node tg_json_root(const tg_json *json);
tg_json_kind tg_json_node_kind(const tg_json_node *node);
/* Members of an object, elements of an array, else 0. */
size_t tg_json_count(const tg_json_node *node);

/* The value itself. */
tg_status tg_json_as_int(const tg_json_node *node, int64_t *out) TG_MUST_CHECK;
tg_status tg_json_as_double(const tg_json_node *node, double *out) TG_MUST_CHECK;
tg_status tg_json_as_bool(const tg_json_node *node, bool *out) TG_MUST_CHECK;
tg_status tg_json_as_string(const tg_json_node *node, const char **out) TG_MUST_CHECK;

/* Object members by key. An int may be written as 224.0; a double as 1. */
tg_status tg_json_get_int(const tg_json_node *object, const char *key, bool required,
                          int64_t *out) TG_MUST_CHECK;
tg_status tg_json_get_size(const tg_json_node *object, const char *key, bool required,
                           size_t *out) TG_MUST_CHECK; /* an int that is not negative */
tg_status tg_json_get_double(const tg_json_node *object, const char *key, bool required,
                             double *out) TG_MUST_CHECK;
tg_status tg_json_get_bool(const tg_json_node *object, const char *key, bool required,
                           bool *out) TG_MUST_CHECK;
tg_status tg_json_get_string(const tg_json_node *object, const char *key, bool required,
                             const char **out) TG_MUST_CHECK;
/* Exactly `count` numbers in an array. */
tg_status tg_json_get_doubles(const tg_json_node *object, const char *key, bool required,
                              size_t count, double *out) TG_MUST_CHECK;
/* Sub-objects and arrays; *out_found tells whether an optional one was there (may be NULL). */
tg_status tg_json_get_object(const tg_json_node *object, const char *key, bool required,
                             tg_json_node *out, bool *out_found) TG_MUST_CHECK;
tg_status tg_json_get_array(const tg_json_node *object, const char *key, bool required,
                            tg_json_node *out, bool *out_found) TG_MUST_CHECK;
/* The member under `key`, whatever its kind (null included); false when there is none. */
bool tg_json_find(const tg_json_node *object, const char *key, tg_json_node *out);

/* Element `index` < tg_json_count of an array. */
tg_json_node tg_json_element(const tg_json_node *array, size_t index);

/* Walks the members of an object in the order of the file: start with a zeroed iterator; false at
 * the end. *out_key is borrowed from the document. */
typedef struct tg_json_iterator {
    void *at;
    bool started;
} tg_json_iterator;
bool tg_json_next(const tg_json_node *object, tg_json_iterator *iterator, const char **out_key,
                  tg_json_node *out);

/* Records "NAME: PLACE: text" and returns TG_ERROR_INPUT, for checks of the caller's own. */
tg_status tg_json_fail(const tg_json_node *node, const char *format, ...) TG_PRINTF(2, 3);

#endif
