/* json_writer.h - writes one JSON document onto a tg_text, value by value, in the order of calls.
 *
 * Inside an object every call names its key; inside an array (and for the outermost value) the key
 * is NULL. Numbers are the shortest that read back; numbers that JSON cannot hold (NaN, infinities)
 * become null. No white space is written, so one document is one line.
 *
 *   tg_json_writer w = tg_json_writer_init(&text);
 *   tg_json_begin_object(&w, NULL);
 *   tg_json_put_int(&w, "step", 3);
 *   tg_json_put_double(&w, "loss", 0.5);
 *   tg_json_end_object(&w);                       -> {"step":3,"loss":0.5}
 *
 * Memory  none beyond the text's (no allocation once that has grown). Nesting up to 64.
 * Errors  those of the text: ask tg_text_check at the end. Wrong nesting is an assert (our bug).
 */
#ifndef TG_BASE_JSON_WRITER_H
#define TG_BASE_JSON_WRITER_H

#include "base/text.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct tg_json_writer {
    tg_text *text;   /* borrowed */
    unsigned depth;  /* open objects and arrays */
    uint64_t filled; /* bit d: the container at depth d has a member already */
} tg_json_writer;

tg_json_writer tg_json_writer_init(tg_text *text);

void tg_json_begin_object(tg_json_writer *writer, const char *key);
void tg_json_end_object(tg_json_writer *writer);
void tg_json_begin_array(tg_json_writer *writer, const char *key);
void tg_json_end_array(tg_json_writer *writer);

void tg_json_put_int(tg_json_writer *writer, const char *key, int64_t value);
void tg_json_put_uint(tg_json_writer *writer, const char *key, uint64_t value);
void tg_json_put_double(tg_json_writer *writer, const char *key, double value);
/* Shortest text that reads back as this float: 0.1f is 0.1. */
void tg_json_put_float(tg_json_writer *writer, const char *key, float value);
void tg_json_put_bool(tg_json_writer *writer, const char *key, bool value);
/* NULL gives null. Any bytes: see tg_text_append_json_string. */
void tg_json_put_string(tg_json_writer *writer, const char *key, const char *value);
void tg_json_put_null(tg_json_writer *writer, const char *key);

#endif
