/* document.h - JSON files read whole and parsed; errors name the file (base/json.h). */
#ifndef TG_OS_DOCUMENT_H
#define TG_OS_DOCUMENT_H

#include "base/json.h"

/* Largest file taken: configurations are small; records are read line by line elsewhere. */
#define TG_DOCUMENT_MAX_BYTES (64u << 20)

tg_status tg_json_read(const char *path, tg_json *out) TG_MUST_CHECK;
/* Of at most so many bytes. */
tg_status tg_json_read_within(const char *path, size_t max_bytes, tg_json *out) TG_MUST_CHECK;

#endif
