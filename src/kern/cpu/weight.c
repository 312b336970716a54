#include "kern/cpu/weight.h"

#include "kern/cpu/entries.h"
#include "kern/cpu/panels.h"
#include "kern/cpu/product_amx.h"
#include "kern/cpu/weight_amx.h"

#include <omp.h>
#include <stdlib.h>

size_t tg_cpu_weight_bytes(size_t out_features, size_t in_features, tg_dtype compute,
                           bool trainable)
{
    /* blocks of oneDNN's layouts are at most 64 columns by 64 rows */
    size_t padded = ((out_features + 63) & ~(size_t)63) * ((in_features + 63) & ~(size_t)63);
    return sizeof(tg_weight) + padded * tg_dtype_bytes(compute) * (trainable ? 2 : 1);
}

void tg_cpu_weight_free(tg_weight *weight)
{
    if (!weight)
        return;
    dnnl_memory_t memories[] = {weight->source, weight->forward_memory, weight->backward_memory};
    for (int i = 0; i < 3; i++)
        if (memories[i])
            dnnl_memory_destroy(memories[i]);
    if (weight->forward_reorder)
        dnnl_primitive_destroy(weight->forward_reorder);
    if (weight->backward_reorder)
        dnnl_primitive_destroy(weight->backward_reorder);
    free(weight->forward);
    free(weight->backward);
    free(weight);
}

/* Prepares one copy: its memory and the conversion from fp32 rows read with `tag`. */
static tg_status prepare_copy(tg_stream *stream, const dnnl_dims_t dims, dnnl_format_tag_t tag,
                              const dnnl_memory_desc_t *layout, void **out_bytes,
                              dnnl_memory_t *out_memory, dnnl_primitive_t *out_reorder)
{
    size_t bytes = dnnl_memory_desc_get_size(layout);
    *out_bytes = aligned_alloc(64, (bytes + 63) & ~(size_t)63);
    if (!*out_bytes)
        return tg_fail(TG_ERROR_MACHINE, "out of memory for a prepared weight of %zu bytes", bytes);
    dnnl_memory_desc_t from;
    TG_TRY(tg_dnnl_room());
    TG_TRY(tg_dnnl_status(dnnl_memory_desc_init_by_tag(&from, 2, dims, dnnl_f32, tag), "weight"));
    dnnl_primitive_desc_t pd;
    TG_TRY(tg_dnnl_status(dnnl_reorder_primitive_desc_create(&pd, &from, stream->engine, layout,
                                                             stream->engine, NULL),
                          "prepare a weight's reorder"));
    dnnl_status_t s = dnnl_primitive_create(out_reorder, pd);
    dnnl_primitive_desc_destroy(pd);
    TG_TRY(tg_dnnl_status(s, "prepare a weight's reorder"));
    return tg_dnnl_status(dnnl_memory_create(out_memory, layout, stream->engine, *out_bytes),
                          "weight memory");
}

static tg_status new_panels(tg_weight *w, bool trainable)
{
    size_t bytes = w->in_features * w->out_features * 2; /* a multiple of 2 KiB */
    w->forward = aligned_alloc(64, bytes);
    w->backward = trainable ? aligned_alloc(64, bytes) : NULL;
    if (!w->forward || (trainable && !w->backward))
        return tg_fail(TG_ERROR_MACHINE, "out of memory for a prepared weight of %zu bytes", bytes);
    return TG_OK;
}

tg_status tg_cpu_weight_new(tg_stream *stream, size_t out_features, size_t in_features,
                            tg_dtype compute, bool trainable, tg_weight **out)
{
    tg_weight *w = calloc(1, sizeof *w);
    if (!w)
        return tg_fail(TG_ERROR_MACHINE, "out of memory for a weight");
    w->out_features = out_features;
    w->in_features = in_features;
    w->compute = compute;
    w->panels =
        stream->level >= TG_CPU_AMX && compute == TG_BF16 && tg_amx_fits(in_features, out_features);
    tg_status status;
    if (w->panels) {
        TG_TRY_GOTO(new_panels(w, trainable), free_weight);
        *out = w;
        return TG_OK;
    }
    const dnnl_dims_t forward_dims = {(dnnl_dim_t)in_features, (dnnl_dim_t)out_features};
    const dnnl_dims_t backward_dims = {(dnnl_dim_t)out_features, (dnnl_dim_t)in_features};
    dnnl_memory_desc_t rows;
    (void)dnnl_memory_desc_init_by_tag(&rows, 2, backward_dims, dnnl_f32, dnnl_ab);
    TG_TRY_GOTO(
        tg_dnnl_status(dnnl_memory_create(&w->source, &rows, stream->engine, DNNL_MEMORY_NONE),
                       "weight memory"),
        free_weight);
    TG_TRY_GOTO(tg_product_layout(stream, in_features, out_features, compute, &w->forward_layout),
                free_weight);
    TG_TRY_GOTO(prepare_copy(stream, forward_dims, dnnl_ba, &w->forward_layout, &w->forward,
                             &w->forward_memory, &w->forward_reorder),
                free_weight);
    if (trainable) {
        TG_TRY_GOTO(
            tg_product_layout(stream, out_features, in_features, compute, &w->backward_layout),
            free_weight);
        TG_TRY_GOTO(prepare_copy(stream, backward_dims, dnnl_ab, &w->backward_layout, &w->backward,
                                 &w->backward_memory, &w->backward_reorder),
                    free_weight);
    }
    *out = w;
    return TG_OK;
free_weight:
    tg_cpu_weight_free(w);
    return status;
}

static tg_status reorder(tg_stream *stream, dnnl_primitive_t primitive, dnnl_memory_t from,
                         dnnl_memory_t to)
{
    const dnnl_exec_arg_t args[] = {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}};
    return tg_dnnl_status(dnnl_primitive_execute(primitive, stream->dnnl, 2, args),
                          "refresh a weight");
}

static void refresh_panels(const tg_stream *stream, tg_weight *weight, const float *w)
{
    const size_t out = weight->out_features, in = weight->in_features;
#pragma omp parallel for schedule(static) num_threads(stream->threads)
    for (size_t n = 0; n < out; n += TG_PANEL)
        tg_amx_pack_rows(out, in, w, n, weight->forward, weight->backward);
}

tg_status tg_cpu_weight_refresh(tg_stream *stream, tg_weight *weight, const float *w)
{
    tg_stream_enter(stream);
    if (weight->panels) {
        refresh_panels(stream, weight, w);
        weight->ready = true;
        return TG_OK;
    }
    (void)dnnl_memory_set_data_handle(weight->source, (void *)(uintptr_t)w);
    TG_TRY(reorder(stream, weight->forward_reorder, weight->source, weight->forward_memory));
    if (weight->backward)
        TG_TRY(reorder(stream, weight->backward_reorder, weight->source, weight->backward_memory));
    weight->ready = true;
    return TG_OK;
}
