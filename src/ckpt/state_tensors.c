#include "ckpt/state_tensors.h"

#include "base/text.h"
#include "os/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_BYTES = TG_PARAM_NAME_BYTES + 64 };

static void full_name(const tg_state_buffer *buffer, const tg_param *param, char out[NAME_BYTES])
{
    snprintf(out, NAME_BYTES, "%s%s%s", buffer->name, *buffer->name ? "/" : "", param->name);
}

static size_t count_tensors(const tg_state_buffer *buffers, size_t count)
{
    size_t tensors = 0;
    for (size_t b = 0; b < count; b++)
        tensors += buffers[b].table->count;
    return tensors;
}

/* names: room for one per tensor. */
static void describe(const tg_state_tensors_plan *plan, char (*names)[NAME_BYTES],
                     tg_safetensors_tensor *out)
{
    for (size_t b = 0; b < plan->count; b++) {
        const tg_param_table *table = plan->buffers[b].table;
        for (size_t i = 0; i < table->count; i++, names++, out++) {
            const tg_param *param = &table->items[i];
            full_name(&plan->buffers[b], param, *names);
            *out = (tg_safetensors_tensor){.name = *names, .dtype = TG_F32, .ndim = param->ndim};
            memcpy(out->shape, param->shape, sizeof param->shape);
        }
    }
}

static tg_status make_header(const tg_state_tensors_plan *plan, tg_text *out,
                             uint64_t *out_data_bytes)
{
    const size_t count = count_tensors(plan->buffers, plan->count);
    char(*names)[NAME_BYTES] = calloc(count + 1, sizeof *names);
    tg_safetensors_tensor *tensors = calloc(count + 1, sizeof *tensors);
    tg_status status;
    if (names && tensors) {
        describe(plan, names, tensors);
        status = tg_safetensors_header(tensors, count, plan->notes, plan->note_count, out,
                                       out_data_bytes);
    } else {
        status = tg_fail(TG_ERROR_MACHINE, "out of memory for %zu tensors", count);
    }
    free(tensors);
    free(names);
    return status;
}

tg_status tg_state_tensors_open(const tg_state_tensors_plan *plan, bool first,
                                tg_state_tensors *out)
{
    tg_text header = {0};
    uint64_t data_bytes = 0;
    tg_status status;
    *out = (tg_state_tensors){.buffers = plan->buffers, .count = plan->count};
    TG_TRY_GOTO(make_header(plan, &header, &data_bytes), free_header);
    out->data_start = header.length;
    const uint64_t length = header.length + data_bytes;
    TG_TRY_GOTO(first ? tg_pieces_create(plan->path, length, &out->file)
                      : tg_pieces_open(plan->path, length, &out->file),
                free_header);
    if (first)
        status = tg_pieces_write(&out->file, 0, header.data, header.length);
    if (status < 0)
        tg_pieces_discard(&out->file);
free_header:
    tg_text_done(&header);
    return status;
}

/* The elements that a piece and a parameter share; false: none. */
static bool overlap(const tg_state_piece *piece, const tg_param *param, size_t *out_begin,
                    size_t *out_end)
{
    const size_t end = piece->offset + piece->count, stop = param->offset + param->count;
    *out_begin = piece->offset > param->offset ? piece->offset : param->offset;
    *out_end = end < stop ? end : stop;
    return *out_begin < *out_end;
}

tg_status tg_state_tensors_write(tg_state_tensors *tensors, size_t buffer,
                                 const tg_state_piece *piece)
{
    const tg_param_table *table = tensors->buffers[buffer].table;
    size_t before = 0, begin, end; /* elements of the file's data */
    for (size_t b = 0; b < buffer; b++)
        before += tg_param_total(tensors->buffers[b].table);
    for (size_t i = 0; i < table->count; before += table->items[i++].count)
        if (overlap(piece, &table->items[i], &begin, &end))
            TG_TRY(tg_pieces_write(
                &tensors->file,
                tensors->data_start + sizeof(float) * (before + begin - table->items[i].offset),
                piece->data + (begin - piece->offset), (end - begin) * sizeof(float)));
    return TG_OK;
}

/* Entries are as many as are wanted and each one wanted is there: then none is left over. */
static tg_status check_entries(const tg_safetensors *file, const tg_state *state, tg_text *faults)
{
    char name[NAME_BYTES], theirs[TG_SAFETENSORS_SHAPE_BYTES], ours[TG_SAFETENSORS_SHAPE_BYTES];
    size_t wrong = 0, wanted = count_tensors(state->buffers, state->buffer_count);
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

static tg_status read_piece(const tg_safetensors *file, const tg_state_buffer *buffer,
                            const tg_state_piece *piece)
{
    char name[NAME_BYTES];
    size_t begin, end;
    memset(piece->data, 0, piece->count * sizeof *piece->data);
    for (size_t i = 0; i < buffer->table->count; i++) {
        const tg_param *param = &buffer->table->items[i];
        if (!overlap(piece, param, &begin, &end))
            continue;
        full_name(buffer, param, name);
        TG_TRY(tg_safetensors_read_part(file, tg_safetensors_find(file, name),
                                        begin - param->offset, end - begin,
                                        piece->data + (begin - piece->offset)));
    }
    return TG_OK;
}

static tg_status read_pieces(const tg_safetensors *file, const tg_state *state)
{
    for (size_t b = 0; b < state->buffer_count; b++)
        for (size_t i = 0; i < state->buffers[b].piece_count; i++)
            TG_TRY(read_piece(file, &state->buffers[b], &state->buffers[b].pieces[i]));
    return TG_OK;
}

tg_status tg_state_tensors_read(const char *folder, const tg_state *state)
{
    tg_safetensors file = {.fd = -1};
    tg_text faults = {0};
    char *path = tg_path_join(folder, TG_STATE_TENSORS_FILE);
    tg_status status = path ? tg_safetensors_open(path, &file)
                            : tg_fail(TG_ERROR_MACHINE, "out of memory for a path");
    TG_TRY_GOTO(status, free_all);
    TG_TRY_GOTO(check_entries(&file, state, &faults), free_all);
    status = read_pieces(&file, state);
free_all:
    tg_text_done(&faults);
    tg_safetensors_close(&file);
    free(path);
    return status;
}
