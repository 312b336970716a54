/* csv.h - comma-separated values, record by record, read strictly.
 *
 * Format   RFC 4180: fields parted by commas; a field in double quotes may hold commas, line ends
 * and doubled quotes. UTF-8, with or without a byte order mark; lines end in LF or CRLF, the last
 * one may lack it. Empty lines are passed over. Blanks belong to their field. Memory   fields are
 * decoded in place: the caller's bytes are overwritten, bytes[length] included, and every field
 * points into them, NUL-terminated. Errors   TG_ERROR_INPUT with "line N": a quote inside an
 * unquoted field, text behind a closing quote, a quoted field without end, a lone carriage return,
 * a zero byte, more than TG_CSV_FIELDS_MAX fields. The caller adds the file's name. Threads
 * reentrant.
 */
#ifndef TG_INFER_CSV_H
#define TG_INFER_CSV_H

#include "base/status.h"

#include <stddef.h>

enum { TG_CSV_FIELDS_MAX = 64 };

typedef struct tg_csv {
    char *at, *end;
    size_t line;        /* of `at`, from 1 */
    size_t record_line; /* where the record last read begins */
} tg_csv;

/* `bytes` must be writable up to and including bytes[length]. */
tg_csv tg_csv_init(char *bytes, size_t length);
/* TG_OK with the next record's fields, TG_END after the last. */
tg_status tg_csv_next(tg_csv *csv, char *out_fields[TG_CSV_FIELDS_MAX],
                      size_t *out_count) TG_MUST_CHECK;

#endif
