/* safetensors.h - reading and writing .safetensors files: named tensors, packed, little-endian.
 *
 * Format     u64 header length N, N bytes of JSON (name -> dtype, shape, data_offsets;
 * __metadata__), then the data. github.com/huggingface/safetensors; docs/FORMATS.md. Reading
 * nothing in a file is believed. Opening checks: N against the file's size and
 *            TG_SAFETENSORS_MAX_HEADER; JSON without duplicate names, nesting or oddities
 *            (base/json.h); dtype known; at most TG_SAFETENSORS_MAX_DIMS dimensions; shape x size =
 *            end - begin without wrap; offsets inside the data, without overlap or hole, and all of
 *            the data used. Reads are read() calls, so a file cut meanwhile is an error, not a
 * signal. Writing    data in the order given, packed, its start 8-byte aligned (the header is
 * padded with spaces), written aside and renamed (os/file.h). Same input, same bytes. Errors
 * TG_ERROR_INPUT naming file, tensor and cause; TG_ERROR_MACHINE for I/O and memory. Memory     a
 * tg_safetensors owns its entries. Data pointers are the caller's. Threads    reads of one open
 * file may run at once (pread); open and close alone.
 */
#ifndef TG_CKPT_SAFETENSORS_H
#define TG_CKPT_SAFETENSORS_H

#include "base/status.h"
#include "base/text.h"
#include "tensor/dtype.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TG_SAFETENSORS_MAX_HEADER 100000000u
#define TG_SAFETENSORS_MAX_DIMS 8

typedef struct tg_safetensors_entry {
    const char *name;
    tg_dtype dtype;
    int ndim; /* 0: one element */
    size_t shape[TG_SAFETENSORS_MAX_DIMS];
    size_t count;        /* elements; 0 when a dimension is 0 */
    uint64_t begin, end; /* bytes, from the start of the data */
} tg_safetensors_entry;

typedef struct tg_safetensors_note {
    const char *key, *value;
} tg_safetensors_note;

typedef struct tg_safetensors {
    char *path;
    int fd;                      /* -1 when only a header was parsed */
    uint64_t data_start;         /* bytes from the start of the file */
    tg_safetensors_entry *items; /* in the order of the data */
    size_t count;
    tg_safetensors_note *notes; /* __metadata__ */
    size_t note_count;
} tg_safetensors;

/* Opens and checks. `out` is written on success only. */
tg_status tg_safetensors_open(const char *path, tg_safetensors *out) TG_MUST_CHECK;
/* Accepts NULL and a zeroed object. */
void tg_safetensors_close(tg_safetensors *file);

/* The checks of open on a header in memory: `data_bytes` follow it in the file called `path`. */
tg_status tg_safetensors_parse(const char *header, size_t length, uint64_t data_bytes,
                               const char *path, tg_safetensors *out) TG_MUST_CHECK;

/* NULL when there is none. Borrowed until close. */
const tg_safetensors_entry *tg_safetensors_find(const tg_safetensors *file, const char *name);
const char *tg_safetensors_metadata(const tg_safetensors *file, const char *key);

/* Reads a tensor as floats, `entry->count` of them: F32, F16, BF16 and small integers exactly,
 * F64, I32 and I64 rounded to nearest. 8-bit floats are refused (TG_ERROR_INPUT). */
tg_status tg_safetensors_read_f32(const tg_safetensors *file, const tg_safetensors_entry *entry,
                                  float *out) TG_MUST_CHECK;
/* The elements [first, first + count) of it. */
tg_status tg_safetensors_read_part(const tg_safetensors *file, const tg_safetensors_entry *entry,
                                   size_t first, size_t count, float *out) TG_MUST_CHECK;
/* Reads a tensor's bytes as stored, end - begin of them. */
tg_status tg_safetensors_read_raw(const tg_safetensors *file, const tg_safetensors_entry *entry,
                                  void *out) TG_MUST_CHECK;

/* "[2,3]" into a buffer of TG_SAFETENSORS_SHAPE_BYTES, for messages; returns the buffer. */
#define TG_SAFETENSORS_SHAPE_BYTES 192
const char *tg_safetensors_shape_text(int ndim, const size_t *shape,
                                      char out[TG_SAFETENSORS_SHAPE_BYTES]);

/* One tensor to write. */
typedef struct tg_safetensors_tensor {
    const char *name;
    tg_dtype dtype; /* in the file */
    int ndim;
    size_t shape[TG_SAFETENSORS_MAX_DIMS];
    const void *data; /* packed elements of dtype, or floats when from_f32 */
    bool from_f32;    /* data are floats, rounded to dtype (F32, BF16, F16) while writing */
} tg_safetensors_tensor;

/* Writes a whole file. `notes` go to __metadata__ (torch's tools ask for format = pt). Names must
 * differ; TG_ERROR_USAGE otherwise. */
tg_status tg_safetensors_write(const char *path, const tg_safetensors_tensor *tensors, size_t count,
                               const tg_safetensors_note *notes, size_t note_count) TG_MUST_CHECK;

/* What such a file begins with, appended to `out` (tg_text_done), and the bytes of data that follow it:
 * for writers that place tensors themselves (ckpt/pieces.h). `data` of the tensors is not looked at. */
tg_status tg_safetensors_header(const tg_safetensors_tensor *tensors, size_t count,
                                const tg_safetensors_note *notes, size_t note_count, tg_text *out,
                                uint64_t *out_data_bytes) TG_MUST_CHECK;

#endif
