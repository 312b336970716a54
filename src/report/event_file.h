/* event_file.h - scalars as TensorBoard reads them: RUN/tensorboard/events.out.tfevents.SECONDS.HOST.PID.
 *
 * A file is a row of records (TFRecord): u64 length, u32 masked CRC-32C of these 8 bytes, the bytes, u32 masked CRC-32C of
 * them, all little-endian; masked is ((c >> 15) | (c << 17)) + 0xA282EAD8. The bytes are protobuf: an Event with
 * wall_time (1, double), step (2, varint) and file_version (3, "brain.Event:2", the first record), summary (5: values (1)
 * of tag (1) and simple_value (2, float)) or session_log (7: status (1) START).
 *
 *   add ... add, end   one record of all values of a step
 *
 * Only appended to, one write a record, so that a reader sees whole ones or a torn last one. A resumed run writes a new
 * file, whose session_log tells TensorBoard from which step on older ones no longer count.
 * Memory   one record's buffer. Errors TG_ERROR_MACHINE for disk and memory, TG_ERROR_USAGE for a folder that is none.
 * Threads  one at a time.
 */
#ifndef TG_REPORT_EVENT_FILE_H
#define TG_REPORT_EVENT_FILE_H

#include "base/status.h"
#include "base/text.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct tg_event_file {
    char *path; /* NULL: not open */
    int fd;
    tg_text summary, event, record;
} tg_event_file;

/* A new file in `folder`, which is made; first_step: the first that it will hold. unix_s: now. */
tg_status tg_event_file_open(const char *folder, double unix_s, int64_t first_step,
                             tg_event_file *out) TG_MUST_CHECK;
/* NaN is unknown, and left out. */
void tg_event_file_add(tg_event_file *file, const char *tag, double value);
/* Writes the values added, if any, as one record. A failed write leaves the file usable; they are lost. */
tg_status tg_event_file_end(tg_event_file *file, int64_t step, double unix_s) TG_MUST_CHECK;
void tg_event_file_close(tg_event_file *file);

/* CRC-32C (Castagnoli), and masked as records have it. */
uint32_t tg_crc32c(const void *bytes, size_t length);
uint32_t tg_crc32c_masked(const void *bytes, size_t length);

#endif
