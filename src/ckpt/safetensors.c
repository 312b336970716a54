#include "ckpt/safetensors.h"

#include "base/checked.h"
#include "base/json.h"
#include "os/file.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PREFIX_BYTES = 8 };

const char *tg_safetensors_shape_text(int ndim, const size_t *shape,
                                      char out[TG_SAFETENSORS_SHAPE_BYTES])
{
    size_t used = (size_t)snprintf(out, TG_SAFETENSORS_SHAPE_BYTES, "[");
    for (int i = 0; i < ndim; i++)
        used += (size_t)snprintf(out + used, TG_SAFETENSORS_SHAPE_BYTES - used, i ? ",%zu" : "%zu",
                                 shape[i]);
    snprintf(out + used, TG_SAFETENSORS_SHAPE_BYTES - used, "]");
    return out;
}

static tg_status read_shape(const tg_json_node *node, tg_safetensors_entry *entry)
{
    tg_json_node shape;
    TG_TRY(tg_json_get_array(node, "shape", TG_REQUIRED, &shape, NULL));
    size_t ndim = tg_json_count(&shape);
    if (ndim > TG_SAFETENSORS_MAX_DIMS)
        return tg_json_fail(node, "%zu dimensions, at most %d are known", ndim,
                            TG_SAFETENSORS_MAX_DIMS);
    entry->ndim = (int)ndim;
    entry->count = 1;
    for (size_t i = 0; i < ndim; i++) {
        tg_json_node element = tg_json_element(&shape, i);
        int64_t value;
        TG_TRY(tg_json_as_int(&element, &value));
        if (value < 0)
            return tg_json_fail(node, "negative size in dimension %zu", i);
        entry->shape[i] = (size_t)value;
        if (!tg_mul_size(entry->count, entry->shape[i], &entry->count))
            return tg_json_fail(node, "the shape has more elements than memory has addresses");
    }
    return TG_OK;
}

static tg_status read_offsets(const tg_json_node *node, uint64_t data_bytes,
                              tg_safetensors_entry *entry)
{
    tg_json_node offsets;
    TG_TRY(tg_json_get_array(node, "data_offsets", TG_REQUIRED, &offsets, NULL));
    if (tg_json_count(&offsets) != 2)
        return tg_json_fail(node, "data_offsets is not a pair");
    int64_t pair[2];
    for (size_t i = 0; i < 2; i++) {
        tg_json_node element = tg_json_element(&offsets, i);
        TG_TRY(tg_json_as_int(&element, &pair[i]));
    }
    if (pair[0] < 0 || pair[1] < pair[0] || (uint64_t)pair[1] > data_bytes)
        return tg_json_fail(
            node, "data_offsets %lld to %lld are not inside the file's %llu bytes of data",
            (long long)pair[0], (long long)pair[1], (unsigned long long)data_bytes);
    entry->begin = (uint64_t)pair[0];
    entry->end = (uint64_t)pair[1];
    return TG_OK;
}

static tg_status read_entry(const char *name, const tg_json_node *node, uint64_t data_bytes,
                            tg_safetensors_entry *out)
{
    const char *dtype;
    if (tg_json_node_kind(node) != TG_JSON_OBJECT)
        return tg_json_fail(node, "a tensor must be an object");
    TG_TRY(tg_json_get_string(node, "dtype", TG_REQUIRED, &dtype));
    out->dtype = tg_dtype_from_name(dtype);
    if (out->dtype == TG_DTYPE_COUNT)
        return tg_json_fail(node, "unknown dtype %.32s", dtype);
    TG_TRY(read_shape(node, out));
    TG_TRY(read_offsets(node, data_bytes, out));
    size_t bytes;
    if (!tg_mul_size(out->count, tg_dtype_bytes(out->dtype), &bytes) ||
        bytes != out->end - out->begin) {
        char shape[TG_SAFETENSORS_SHAPE_BYTES];
        return tg_json_fail(node, "%s %s does not take the %llu bytes that data_offsets give",
                            dtype, tg_safetensors_shape_text(out->ndim, out->shape, shape),
                            (unsigned long long)(out->end - out->begin));
    }
    out->name = strdup(name);
    return out->name ? TG_OK : tg_fail(TG_ERROR_MACHINE, "out of memory");
}

static tg_status read_notes(const tg_json_node *object, tg_safetensors *out)
{
    if (tg_json_node_kind(object) != TG_JSON_OBJECT)
        return tg_json_fail(object, "must be an object of strings");
    size_t count = tg_json_count(object);
    out->notes = calloc(count ? count : 1, sizeof *out->notes);
    if (!out->notes)
        return tg_fail(TG_ERROR_MACHINE, "out of memory");
    tg_json_iterator iterator = {0};
    const char *key, *value;
    tg_json_node node;
    while (tg_json_next(object, &iterator, &key, &node)) {
        TG_TRY(tg_json_as_string(&node, &value));
        tg_safetensors_note *note = &out->notes[out->note_count++];
        note->key = strdup(key);
        note->value = strdup(value);
        if (!note->key || !note->value)
            return tg_fail(TG_ERROR_MACHINE, "out of memory");
    }
    return TG_OK;
}

static int by_place(const void *a, const void *b)
{
    const tg_safetensors_entry *x = a, *y = b;
    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    return x->end < y->end ? -1 : x->end > y->end;
}

/* Sorted entries must follow each other exactly and end where the data ends. */
static tg_status check_places(const tg_safetensors *file, uint64_t data_bytes)
{
    uint64_t at = 0;
    for (size_t i = 0; i < file->count; i++) {
        const tg_safetensors_entry *entry = &file->items[i];
        if (entry->begin != at)
            return tg_fail(TG_ERROR_INPUT,
                           "%s: tensor %.128s begins at byte %llu of the data, but the one before "
                           "it ends at %llu: %s",
                           file->path, entry->name, (unsigned long long)entry->begin,
                           (unsigned long long)at, entry->begin < at ? "they overlap" : "a hole");
        at = entry->end;
    }
    if (at != data_bytes)
        return tg_fail(TG_ERROR_INPUT,
                       "%s: the tensors end at byte %llu of the data, the file at %llu", file->path,
                       (unsigned long long)at, (unsigned long long)data_bytes);
    return TG_OK;
}

static tg_status read_members(const tg_json_node *root, uint64_t data_bytes, tg_safetensors *out)
{
    if (tg_json_node_kind(root) != TG_JSON_OBJECT)
        return tg_json_fail(root, "the header is not a JSON object");
    size_t count = tg_json_count(root);
    out->items = calloc(count ? count : 1, sizeof *out->items);
    if (!out->items)
        return tg_fail(TG_ERROR_MACHINE, "out of memory for %zu tensors", count);
    tg_json_iterator iterator = {0};
    const char *key;
    tg_json_node node;
    while (tg_json_next(root, &iterator, &key, &node)) {
        if (strcmp(key, "__metadata__") == 0) {
            TG_TRY(read_notes(&node, out));
            continue;
        }
        TG_TRY(read_entry(key, &node, data_bytes, &out->items[out->count]));
        out->count++;
    }
    qsort(out->items, out->count, sizeof *out->items, by_place);
    return check_places(out, data_bytes);
}

tg_status tg_safetensors_parse(const char *header, size_t length, uint64_t data_bytes,
                               const char *path, tg_safetensors *out)
{
    if (length == 0 || header[0] != '{')
        return tg_fail(TG_ERROR_INPUT, "%s: not a safetensors file (the header must begin with {)",
                       path);
    tg_json json = {0};
    tg_safetensors file = {.fd = -1, .path = strdup(path)};
    if (!file.path)
        return tg_fail(TG_ERROR_MACHINE, "out of memory");
    tg_status status;
    TG_TRY_GOTO(tg_json_parse(header, length, path, &json), close_file);
    tg_json_node root = tg_json_root(&json);
    TG_TRY_GOTO(read_members(&root, data_bytes, &file), close_file);
    tg_json_done(&json);
    *out = file;
    return TG_OK;
close_file:
    tg_json_done(&json);
    tg_safetensors_close(&file);
    return status;
}

void tg_safetensors_close(tg_safetensors *file)
{
    if (!file || !file->path)
        return;
    for (size_t i = 0; i < file->count; i++)
        free((char *)file->items[i].name);
    for (size_t i = 0; i < file->note_count; i++) {
        free((char *)file->notes[i].key);
        free((char *)file->notes[i].value);
    }
    free(file->items);
    free(file->notes);
    free(file->path);
    if (file->fd >= 0)
        close(file->fd);
    *file = (tg_safetensors){.fd = -1};
}

/* All of the bytes, or an error that says how the file ended. */
static tg_status read_at(int fd, const char *path, void *out, size_t bytes, uint64_t offset)
{
    char *to = out;
    while (bytes) {
        ssize_t n = pread(fd, to, bytes, (off_t)offset);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return tg_fail(TG_ERROR_MACHINE, "%s: reading: %s", path, strerror(errno));
        if (n == 0)
            return tg_fail(TG_ERROR_INPUT, "%s: the file ends %zu bytes early", path, bytes);
        to += n;
        offset += (uint64_t)n;
        bytes -= (size_t)n;
    }
    return TG_OK;
}

/* The header's length is compared with the size of the file before anything is added to it. */
static tg_status read_header(int fd, const char *path, tg_safetensors *out)
{
    struct stat info;
    if (fstat(fd, &info) != 0)
        return tg_fail(TG_ERROR_MACHINE, "%s: %s", path, strerror(errno));
    if (!S_ISREG(info.st_mode))
        return tg_fail(TG_ERROR_INPUT, "%s: not a regular file", path);
    uint64_t size = (uint64_t)info.st_size, length;
    if (size < PREFIX_BYTES)
        return tg_fail(TG_ERROR_INPUT, "%s: not a safetensors file (%llu bytes)", path,
                       (unsigned long long)size);
    TG_TRY(read_at(fd, path, &length, PREFIX_BYTES, 0));
    if (length > TG_SAFETENSORS_MAX_HEADER || length > size - PREFIX_BYTES)
        return tg_fail(TG_ERROR_INPUT,
                       "%s: not a safetensors file or a cut one: a header of %llu bytes in a file "
                       "of %llu",
                       path, (unsigned long long)length, (unsigned long long)size);
    char *header = malloc((size_t)length + 1);
    if (!header)
        return tg_fail(TG_ERROR_MACHINE, "%s: out of memory for the header", path);
    tg_status status;
    TG_TRY_GOTO(read_at(fd, path, header, (size_t)length, PREFIX_BYTES), free_header);
    TG_TRY_GOTO(
        tg_safetensors_parse(header, (size_t)length, size - PREFIX_BYTES - length, path, out),
        free_header);
    out->data_start = PREFIX_BYTES + length;
free_header:
    free(header);
    return status;
}

tg_status tg_safetensors_open(const char *path, tg_safetensors *out)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return tg_fail(tg_file_read_fault(errno), "%s: %s", path, strerror(errno));
    tg_status status;
    TG_TRY_GOTO(read_header(fd, path, out), close_fd);
    out->fd = fd;
    return TG_OK;
close_fd:
    close(fd);
    return status;
}

const tg_safetensors_entry *tg_safetensors_find(const tg_safetensors *file, const char *name)
{
    for (size_t i = 0; i < file->count; i++)
        if (strcmp(file->items[i].name, name) == 0)
            return &file->items[i];
    return NULL;
}

const char *tg_safetensors_metadata(const tg_safetensors *file, const char *key)
{
    for (size_t i = 0; i < file->note_count; i++)
        if (strcmp(file->notes[i].key, key) == 0)
            return file->notes[i].value;
    return NULL;
}

tg_status tg_safetensors_read_raw(const tg_safetensors *file, const tg_safetensors_entry *entry,
                                  void *out)
{
    tg_status status = read_at(file->fd, file->path, out, (size_t)(entry->end - entry->begin),
                               file->data_start + entry->begin);
    return status < 0 ? tg_fail_prefix(status, "tensor %.128s", entry->name) : TG_OK;
}

#define CONVERT(type, expression)                                                                  \
    for (size_t i = 0; i < n; i++) {                                                               \
        type x;                                                                                    \
        memcpy(&x, from + i * sizeof x, sizeof x);                                                 \
        out[i] = (float)(expression);                                                              \
    }                                                                                              \
    break

static void convert(tg_dtype dtype, const unsigned char *from, size_t n, float *out)
{
    switch (dtype) {
    case TG_F32:
        CONVERT(float, x);
    case TG_F64:
        CONVERT(double, x);
    case TG_F16:
        CONVERT(uint16_t, tg_f32_from_f16(x));
    case TG_BF16:
        CONVERT(uint16_t, tg_f32_from_bf16(x));
    case TG_I64:
        CONVERT(int64_t, x);
    case TG_I32:
        CONVERT(int32_t, x);
    case TG_I16:
        CONVERT(int16_t, x);
    case TG_I8:
        CONVERT(int8_t, x);
    default:
        CONVERT(uint8_t, x);
    }
}

tg_status tg_safetensors_read_part(const tg_safetensors *file, const tg_safetensors_entry *entry,
                                   size_t first, size_t count, float *out)
{
    if (entry->dtype == TG_F8_E4M3 || entry->dtype == TG_F8_E5M2)
        return tg_fail(TG_ERROR_INPUT, "%s: tensor %.128s: %s cannot be read as weights",
                       file->path, entry->name, tg_dtype_name(entry->dtype));
    assert(first <= entry->count && count <= entry->count - first);
    unsigned char chunk[1 << 16];
    const bool direct = entry->dtype == TG_F32;
    const size_t size = tg_dtype_bytes(entry->dtype), step = direct ? count : sizeof chunk / size;
    for (size_t at = 0; at < count; at += step) {
        size_t n = count - at < step ? count - at : step;
        tg_status status = read_at(file->fd, file->path, direct ? (void *)out : chunk, n * size,
                                   file->data_start + entry->begin + (first + at) * size);
        if (status < 0)
            return tg_fail_prefix(status, "tensor %.128s", entry->name);
        if (!direct)
            convert(entry->dtype, chunk, n, out + at);
    }
    return TG_OK;
}

tg_status tg_safetensors_read_f32(const tg_safetensors *file, const tg_safetensors_entry *entry,
                                  float *out)
{
    return tg_safetensors_read_part(file, entry, 0, entry->count, out);
}
