#include "run/operations.h"

#include "base/json.h"
#include "base/json_writer.h"
#include "os/document.h"
#include "os/file.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { MAX_BYTES = 16 << 20 };

static void put_operation(tg_json_writer *w, const tg_operation *o)
{
    tg_json_begin_object(w, NULL);
    tg_json_put_string(w, "name", o->name);
    tg_json_put_string(w, "phase", o->phase);
    tg_json_begin_array(w, "shape");
    for (size_t d = 0; d < TG_OPERATION_DIMENSIONS && o->shape[d]; d++)
        tg_json_put_uint(w, NULL, o->shape[d]);
    tg_json_end_array(w);
    tg_json_put_string(w, "dtype", o->dtype);
    tg_json_put_uint(w, "calls", o->calls);
    tg_json_put_double(w, "seconds", o->seconds);
    tg_json_put_double(w, "flops", o->flops);
    tg_json_put_double(w, "bytes", o->bytes);
    tg_json_end_object(w);
}

tg_status tg_operations_write(const char *path, const tg_operations *operations)
{
    tg_text text = {0};
    tg_json_writer w = tg_json_writer_init(&text);
    tg_json_begin_object(&w, NULL);
    tg_json_put_int(&w, "version", 1);
    tg_json_put_int(&w, "rank", operations->rank);
    tg_json_put_int(&w, "first_step", operations->first_step);
    tg_json_put_int(&w, "last_step", operations->last_step);
    tg_json_put_int(&w, "steps", operations->steps);
    tg_json_put_double(&w, "seconds", operations->seconds);
    tg_json_put_double(&w, "peak_flops_f32", operations->peak_flops_f32);
    tg_json_put_double(&w, "peak_flops_bf16", operations->peak_flops_bf16);
    tg_json_put_double(&w, "recording_s", operations->recording_s);
    tg_json_begin_array(&w, "operations");
    for (size_t i = 0; i < operations->count; i++)
        put_operation(&w, &operations->each[i]);
    tg_json_end_array(&w);
    tg_json_end_object(&w);
    tg_text_append_char(&text, '\n');
    tg_status status = tg_file_write_text(path, &text);
    tg_text_done(&text);
    return status;
}

static tg_status read_words(const tg_json_node *object, const char *key, char *out, size_t size)
{
    const char *text = "";
    TG_TRY(tg_json_get_string(object, key, TG_OPTIONAL, &text));
    snprintf(out, size, "%s", text);
    return TG_OK;
}

static tg_status read_shape(const tg_json_node *object, tg_operation *out)
{
    tg_json_node shape;
    bool found;
    TG_TRY(tg_json_get_array(object, "shape", TG_OPTIONAL, &shape, &found));
    for (size_t d = 0; found && d < tg_json_count(&shape) && d < TG_OPERATION_DIMENSIONS; d++) {
        tg_json_node element = tg_json_element(&shape, d);
        int64_t value;
        TG_TRY(tg_json_as_int(&element, &value));
        if (value < 0)
            return tg_json_fail(&element, "is negative");
        out->shape[d] = (size_t)value;
    }
    return TG_OK;
}

static tg_status read_operation(const tg_json_node *object, tg_operation *out)
{
    size_t calls = 0;
    TG_TRY(read_words(object, "name", out->name, sizeof out->name));
    TG_TRY(read_words(object, "phase", out->phase, sizeof out->phase));
    TG_TRY(read_words(object, "dtype", out->dtype, sizeof out->dtype));
    TG_TRY(read_shape(object, out));
    TG_TRY(tg_json_get_size(object, "calls", TG_REQUIRED, &calls));
    out->calls = calls;
    TG_TRY(tg_json_get_double(object, "seconds", TG_REQUIRED, &out->seconds));
    TG_TRY(tg_json_get_double(object, "flops", TG_OPTIONAL, &out->flops));
    return tg_json_get_double(object, "bytes", TG_OPTIONAL, &out->bytes);
}

static tg_status read_head(const tg_json_node *root, tg_operations *out)
{
    int64_t rank = 0;
    *out = (tg_operations){.peak_flops_f32 = NAN, .peak_flops_bf16 = NAN, .recording_s = NAN};
    TG_TRY(tg_json_get_int(root, "rank", TG_REQUIRED, &rank));
    out->rank = (int)rank;
    TG_TRY(tg_json_get_int(root, "first_step", TG_OPTIONAL, &out->first_step));
    TG_TRY(tg_json_get_int(root, "last_step", TG_OPTIONAL, &out->last_step));
    TG_TRY(tg_json_get_int(root, "steps", TG_REQUIRED, &out->steps));
    TG_TRY(tg_json_get_double(root, "seconds", TG_REQUIRED, &out->seconds));
    TG_TRY(tg_json_get_double(root, "peak_flops_f32", TG_OPTIONAL, &out->peak_flops_f32));
    TG_TRY(tg_json_get_double(root, "peak_flops_bf16", TG_OPTIONAL, &out->peak_flops_bf16));
    return tg_json_get_double(root, "recording_s", TG_OPTIONAL, &out->recording_s);
}

static tg_status read_all(const tg_json_node *root, tg_operations *out)
{
    tg_json_node list;
    TG_TRY(read_head(root, out));
    TG_TRY(tg_json_get_array(root, "operations", TG_REQUIRED, &list, NULL));
    const size_t count = tg_json_count(&list);
    out->each = calloc(count + 1, sizeof *out->each);
    if (!out->each)
        return tg_fail(TG_ERROR_MACHINE, "out of memory for %zu operations", count);
    for (; out->count < count; out->count++) {
        tg_json_node element = tg_json_element(&list, out->count);
        TG_TRY(read_operation(&element, &out->each[out->count]));
    }
    return TG_OK;
}

tg_status tg_operations_read(const char *path, tg_operations *out)
{
    tg_json json = {0};
    *out = (tg_operations){0};
    TG_TRY(tg_json_read_within(path, MAX_BYTES, &json));
    const tg_json_node root = tg_json_root(&json);
    tg_status status = read_all(&root, out);
    tg_json_done(&json);
    if (status < 0)
        tg_operations_done(out);
    return status;
}

void tg_operations_done(tg_operations *operations)
{
    free(operations->each);
    *operations = (tg_operations){0};
}
