#include "ckpt/safetensors.h"

#include "base/checked.h"
#include "base/text.h"
#include "os/file.h"

#include <stdlib.h>
#include <string.h>

enum { ALIGN = 8, CHUNK = 1 << 14 };

static tg_status tensor_count(const tg_safetensors_tensor *tensor, size_t *out_count,
                              size_t *out_bytes)
{
    size_t count = 1;
    bool fits = tensor->ndim >= 0 && tensor->ndim <= TG_SAFETENSORS_MAX_DIMS;
    for (int i = 0; fits && i < tensor->ndim; i++)
        fits = tg_mul_size(count, tensor->shape[i], &count);
    if (!fits || !tg_mul_size(count, tg_dtype_bytes(tensor->dtype), out_bytes))
        return tg_fail(TG_ERROR_USAGE, "tensor %s: impossible shape", tensor->name);
    *out_count = count;
    return TG_OK;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static tg_status check_names(const tg_safetensors_tensor *tensors, size_t count)
{
    const char **names = calloc(count + 1, sizeof *names);
    if (!names)
        return tg_fail(TG_ERROR_MACHINE, "out of memory for %zu names", count);
    for (size_t i = 0; i < count; i++)
        names[i] = tensors[i].name;
    qsort(names, count, sizeof *names, by_name);
    tg_status status = TG_OK;
    for (size_t i = 1; i < count && status == TG_OK; i++)
        if (strcmp(names[i - 1], names[i]) == 0)
            status = tg_fail(TG_ERROR_USAGE, "two tensors are called %s", names[i]);
    free(names);
    return status;
}

static void append_key(tg_text *text, const char *key)
{
    tg_text_append_json_string(text, key, strlen(key));
    tg_text_append_char(text, ':');
}

static void append_notes(tg_text *text, const tg_safetensors_note *notes, size_t count)
{
    append_key(text, "__metadata__");
    for (size_t i = 0; i < count; i++) {
        tg_text_append_char(text, i ? ',' : '{');
        append_key(text, notes[i].key);
        tg_text_append_json_string(text, notes[i].value, strlen(notes[i].value));
    }
    tg_text_append_char(text, '}');
}

static tg_status append_tensor(tg_text *text, const tg_safetensors_tensor *tensor, size_t *at)
{
    size_t count, bytes, end;
    TG_TRY(tensor_count(tensor, &count, &bytes));
    if (!tg_add_size(*at, bytes, &end))
        return tg_fail(TG_ERROR_USAGE, "tensor %s: the file would be too large", tensor->name);
    append_key(text, tensor->name);
    tg_text_append_format(text, "{\"dtype\":\"%s\",\"shape\":[", tg_dtype_name(tensor->dtype));
    for (int i = 0; i < tensor->ndim; i++)
        tg_text_append_format(text, i ? ",%zu" : "%zu", tensor->shape[i]);
    tg_text_append_format(text, "],\"data_offsets\":[%zu,%zu]}", *at, end);
    *at = end;
    return TG_OK;
}

/* The length prefix and the padded JSON. */
tg_status tg_safetensors_header(const tg_safetensors_tensor *tensors, size_t count,
                                const tg_safetensors_note *notes, size_t note_count, tg_text *out,
                                uint64_t *out_data_bytes)
{
    size_t at = 0;
    uint64_t length = 0;
    TG_TRY(check_names(tensors, count));
    tg_text_append(out, &length, sizeof length);
    tg_text_append_char(out, '{');
    if (note_count)
        append_notes(out, notes, note_count);
    for (size_t i = 0; i < count; i++) {
        if (i || note_count)
            tg_text_append_char(out, ',');
        TG_TRY(append_tensor(out, &tensors[i], &at));
    }
    tg_text_append_char(out, '}');
    while (out->length % ALIGN && !out->failed)
        tg_text_append_char(out, ' ');
    TG_TRY(tg_text_check(out, "a safetensors header"));
    length = out->length - sizeof length;
    if (length > TG_SAFETENSORS_MAX_HEADER)
        return tg_fail(TG_ERROR_USAGE, "%zu tensors make too long a header", count);
    memcpy(out->data, &length, sizeof length);
    *out_data_bytes = at;
    return TG_OK;
}

static tg_status write_rounded(tg_new_file *file, const float *from, size_t count, tg_dtype dtype)
{
    uint16_t chunk[CHUNK];
    for (size_t at = 0; at < count; at += CHUNK) {
        size_t n = count - at < CHUNK ? count - at : CHUNK;
        for (size_t i = 0; i < n; i++)
            chunk[i] =
                dtype == TG_BF16 ? tg_bf16_from_f32(from[at + i]) : tg_f16_from_f32(from[at + i]);
        TG_TRY(tg_new_file_write(file, chunk, n * sizeof chunk[0]));
    }
    return TG_OK;
}

static tg_status write_tensor(tg_new_file *file, const tg_safetensors_tensor *tensor)
{
    size_t count, bytes;
    TG_TRY(tensor_count(tensor, &count, &bytes));
    if (!tensor->from_f32 || tensor->dtype == TG_F32)
        return tg_new_file_write(file, tensor->data, bytes);
    if (tensor->dtype != TG_BF16 && tensor->dtype != TG_F16)
        return tg_fail(TG_ERROR_USAGE, "tensor %s: floats are not written as %s", tensor->name,
                       tg_dtype_name(tensor->dtype));
    return write_rounded(file, tensor->data, count, tensor->dtype);
}

tg_status tg_safetensors_write(const char *path, const tg_safetensors_tensor *tensors, size_t count,
                               const tg_safetensors_note *notes, size_t note_count)
{
    tg_text header = {0};
    tg_new_file file = {.fd = -1};
    uint64_t data_bytes;
    tg_status status;
    TG_TRY_GOTO(tg_safetensors_header(tensors, count, notes, note_count, &header, &data_bytes),
                free_header);
    TG_TRY_GOTO(tg_new_file_open(path, &file), free_header);
    TG_TRY_GOTO(tg_new_file_write(&file, header.data, header.length), discard_file);
    for (size_t i = 0; i < count; i++)
        TG_TRY_GOTO(write_tensor(&file, &tensors[i]), discard_file);
    status = tg_new_file_commit(&file);
discard_file:
    tg_new_file_discard(&file);
free_header:
    tg_text_done(&header);
    return status;
}
