#include "ckpt/state_tensors.h"

#include "base/text.h"
#include "ckpt/safetensors.h"
#include "os/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TENSORS "state.safetensors"

enum { NAME_BYTES = TG_PARAM_NAME_BYTES + 64 };

static void full_name(const tg_state_buffer *buffer, const tg_param *param, char out[NAME_BYTES])
{
    snprintf(out, NAME_BYTES, "%s/%s", buffer->name, param->name);
}

static size_t count_tensors(const tg_state *state)
{
    size_t count = 0;
    for (size_t b = 0; b < state->buffer_count; b++)
        count += state->buffers[b].table->count;
    return count;
}

/* names: room for one per tensor. */
static void describe(const tg_state *state, char (*names)[NAME_BYTES], tg_safetensors_tensor *out)
{
    for (size_t b = 0; b < state->buffer_count; b++) {
        const tg_state_buffer *buffer = &state->buffers[b];
        for (size_t i = 0; i < buffer->table->count; i++, names++, out++) {
            const tg_param *param = &buffer->table->items[i];
            full_name(buffer, param, *names);
            *out = (tg_safetensors_tensor){.name = *names,
                                           .dtype = TG_F32,
                                           .ndim = param->ndim,
                                           .data = buffer->data + param->offset};
            memcpy(out->shape, param->shape, sizeof param->shape);
        }
    }
}

tg_status tg_state_tensors_write(const char *folder, const tg_state *state)
{
    size_t count = count_tensors(state);
    char(*names)[NAME_BYTES] = calloc(count + 1, sizeof *names);
    tg_safetensors_tensor *tensors = calloc(count + 1, sizeof *tensors);
    char *path = tg_path_join(folder, TENSORS);
    tg_status status;
    if (names && tensors && path) {
        describe(state, names, tensors);
        status = tg_safetensors_write(path, tensors, count, NULL, 0);
    } else {
        status = tg_fail(TG_ERROR_MACHINE, "out of memory for %zu tensors", count);
    }
    free(path);
    free(tensors);
    free(names);
    return status;
}

/* Entries are as many as are wanted and each one wanted is there: then none is left over. */
static tg_status check_entries(const tg_safetensors *file, const tg_state *state, tg_text *faults)
{
    char name[NAME_BYTES], theirs[TG_SAFETENSORS_SHAPE_BYTES], ours[TG_SAFETENSORS_SHAPE_BYTES];
    size_t wrong = 0, wanted = count_tensors(state);
    for (size_t b = 0; b < state->buffer_count; b++)
        for (size_t i = 0; i < state->buffers[b].table->count; i++) {
            const tg_param *param = &state->buffers[b].table->items[i];
            full_name(&state->buffers[b], param, name);
            const tg_safetensors_entry *entry = tg_safetensors_find(file, name);
            if (entry && entry->ndim == param->ndim &&
                memcmp(entry->shape, param->shape, (size_t)param->ndim * sizeof *param->shape) == 0)
                continue;
            wrong++;
            if (entry)
                tg_text_append_format(faults, "\n  mis-shaped %s %s, needed %s", name,
                                      tg_safetensors_shape_text(entry->ndim, entry->shape, theirs),
                                      tg_safetensors_shape_text(param->ndim, param->shape, ours));
            else
                tg_text_append_format(faults, "\n  missing %s", name);
        }
    if (wrong == 0 && file->count == wanted)
        return TG_OK;
    return tg_fail(TG_ERROR_INPUT,
                   "%s: not the state of this job (%zu tensors where %zu are needed; an average, "
                   "model or projection that differs?)%s",
                   file->path, file->count, wanted, tg_text_string(faults));
}

static tg_status read_entries(const tg_safetensors *file, const tg_state *state)
{
    char name[NAME_BYTES];
    for (size_t b = 0; b < state->buffer_count; b++) {
        const tg_state_buffer *buffer = &state->buffers[b];
        memset(buffer->data, 0, buffer->table->elements * sizeof *buffer->data);
        for (size_t i = 0; i < buffer->table->count; i++) {
            const tg_param *param = &buffer->table->items[i];
            full_name(buffer, param, name);
            TG_TRY(tg_safetensors_read_f32(file, tg_safetensors_find(file, name),
                                           buffer->data + param->offset));
        }
    }
    return TG_OK;
}

tg_status tg_state_tensors_read(const char *folder, const tg_state *state)
{
    tg_safetensors file = {.fd = -1};
    tg_text faults = {0};
    char *path = tg_path_join(folder, TENSORS);
    tg_status status = path ? tg_safetensors_open(path, &file)
                            : tg_fail(TG_ERROR_MACHINE, "out of memory for a path");
    TG_TRY_GOTO(status, free_all);
    TG_TRY_GOTO(check_entries(&file, state, &faults), free_all);
    status = read_entries(&file, state);
free_all:
    tg_text_done(&faults);
    tg_safetensors_close(&file);
    free(path);
    return status;
}
