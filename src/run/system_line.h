/* system_line.h - lines of a system/HOST.jsonl and the samples that they are; for system_read.c and system_write.c. */
#ifndef TG_RUN_SYSTEM_LINE_H
#define TG_RUN_SYSTEM_LINE_H

#include "run/system.h"

#include <stdbool.h>

/* What the last head said. */
typedef struct tg_system_head {
    char host[256];
    size_t cores, devices;
    size_t columns
        [TG_SYSTEM_METRICS]; /* metric of each column; TG_SYSTEM_METRICS: none that is known */
    size_t column_count;
} tg_system_head;

typedef enum tg_system_line_kind {
    TG_SYSTEM_LINE_BAD,
    TG_SYSTEM_LINE_HEAD,
    TG_SYSTEM_LINE_SAMPLE
} tg_system_line_kind;

/* *head: zeroed before the first line; a head changes it. *out: a sample's, with arrays of its own (head->cores and
 * head->devices long); empty for other lines. TG_ERROR_MACHINE for memory. */
tg_status tg_system_line_parse(const char *line, size_t length, tg_system_head *head,
                               tg_system_sample *out, tg_system_line_kind *out_kind) TG_MUST_CHECK;

/* Without line ends. */
void tg_system_head_print(const char *host, size_t cores, size_t devices, tg_text *out);
void tg_system_sample_print(const tg_system_sample *sample, size_t cores, size_t devices,
                            tg_text *out);

/* Arrays of a sample, all unknown. TG_ERROR_MACHINE. */
tg_status tg_system_sample_make(size_t cores, size_t devices, tg_system_sample *out) TG_MUST_CHECK;
void tg_system_sample_done(tg_system_sample *sample);

#endif
