#include "kern/cpu/product.h"

#include <omp.h>
#include <stdlib.h>
#include <string.h>

/* The memory objects of one thread: oneDNN keeps the data pointer inside them. */
typedef struct thread_memory {
    dnnl_memory_t a, b, c, bias, scratchpad;
    void *scratch; /* 64-byte aligned */
} thread_memory;

struct tg_product {
    tg_product_shape shape;
    dnnl_memory_desc_t b_layout;
    dnnl_primitive_t primitive;
    thread_memory *memory; /* one per thread that may run it */
    int threads;
};

typedef struct product_cache {
    tg_product **items;
    size_t count, capacity;
} product_cache;

static dnnl_data_type_t dnnl_type(tg_dtype dtype)
{
    return dtype == TG_BF16 ? dnnl_bf16 : dnnl_f32;
}

static void plain_layout(dnnl_memory_desc_t *out, size_t rows, size_t columns, tg_dtype dtype,
                         dnnl_format_tag_t tag)
{
    dnnl_dims_t dims = {(dnnl_dim_t)rows, (dnnl_dim_t)columns};
    (void)dnnl_memory_desc_init_by_tag(out, 2, dims, dnnl_type(dtype), tag);
}

static void product_free(tg_product *product)
{
    if (!product)
        return;
    for (int i = 0; product->memory && i < product->threads; i++) {
        thread_memory *m = &product->memory[i];
        dnnl_memory_t all[] = {m->a, m->b, m->c, m->bias, m->scratchpad};
        for (size_t k = 0; k < sizeof all / sizeof all[0]; k++)
            if (all[k])
                dnnl_memory_destroy(all[k]);
        free(m->scratch);
    }
    free(product->memory);
    if (product->primitive)
        dnnl_primitive_destroy(product->primitive);
    free(product);
}

static void cache_free(void *opaque)
{
    product_cache *cache = opaque;
    if (!cache)
        return;
    for (size_t i = 0; i < cache->count; i++)
        product_free(cache->items[i]);
    free(cache->items);
    free(cache);
}

/* NULL when memory is short. */
static product_cache *cache_of(tg_stream *stream)
{
    if (!stream->products) {
        stream->products = calloc(1, sizeof(product_cache));
        stream->products_free = cache_free;
    }
    return stream->products;
}

static tg_status cache_add(product_cache *cache, tg_product *product)
{
    if (cache->count == cache->capacity) {
        size_t capacity = cache->capacity ? 2 * cache->capacity : 32;
        tg_product **items = realloc(cache->items, capacity * sizeof(*items));
        if (!items)
            return tg_fail(TG_ERROR_MACHINE, "out of memory for the product cache");
        cache->items = items;
        cache->capacity = capacity;
    }
    cache->items[cache->count++] = product;
    return TG_OK;
}

static bool same_shape(const tg_product_shape *a, const tg_product_shape *b)
{
    return a->M == b->M && a->K == b->K && a->N == b->N && a->in == b->in && a->out == b->out &&
           a->a_transposed == b->a_transposed && a->bias == b->bias &&
           a->whole_team == b->whole_team && a->finish == b->finish;
}

static tg_product *cache_find(const product_cache *cache, const tg_product_shape *shape,
                              const dnnl_memory_desc_t *b_layout)
{
    for (size_t i = 0; i < cache->count; i++) {
        tg_product *p = cache->items[i];
        if (same_shape(&p->shape, shape) && dnnl_memory_desc_equal(&p->b_layout, b_layout))
            return p;
    }
    return NULL;
}

static tg_status finish_attributes(tg_product_finish finish, dnnl_primitive_attr_t attributes)
{
    if (finish == TG_FINISH_NONE)
        return TG_OK;
    dnnl_post_ops_t ops;
    TG_TRY(tg_dnnl_status(dnnl_post_ops_create(&ops), "post-operations"));
    dnnl_status_t s;
    if (finish == TG_FINISH_ACCUMULATE)
        s = dnnl_post_ops_append_sum(ops, 1.0f);
    else
        s = dnnl_post_ops_append_eltwise(ops, 1.0f,
                                         finish == TG_FINISH_GELU_EXACT ? dnnl_eltwise_gelu_erf
                                                                        : dnnl_eltwise_gelu_tanh,
                                         0.0f, 0.0f);
    if (s == dnnl_success)
        s = dnnl_primitive_attr_set_post_ops(attributes, ops);
    dnnl_post_ops_destroy(ops);
    return tg_dnnl_status(s, "post-operations");
}

static tg_status describe(tg_stream *stream, const tg_product_shape *shape,
                          const dnnl_memory_desc_t *b_layout, dnnl_primitive_desc_t *out)
{
    dnnl_memory_desc_t a, c, bias;
    plain_layout(&a, shape->M, shape->K, shape->in, shape->a_transposed ? dnnl_ba : dnnl_ab);
    plain_layout(&c, shape->M, shape->N, shape->out, dnnl_ab);
    plain_layout(&bias, 1, shape->N, TG_F32, dnnl_ab);
    dnnl_matmul_desc_t matmul;
    TG_TRY(tg_dnnl_status(
        dnnl_matmul_desc_init(&matmul, &a, b_layout, shape->bias ? &bias : NULL, &c),
        "describe a matrix product"));
    dnnl_primitive_attr_t attributes;
    TG_TRY(tg_dnnl_status(dnnl_primitive_attr_create(&attributes), "attributes"));
    (void)dnnl_primitive_attr_set_scratchpad_mode(attributes, dnnl_scratchpad_mode_user);
    tg_status status = finish_attributes(shape->finish, attributes);
    if (status == TG_OK)
        status = tg_dnnl_status(
            dnnl_primitive_desc_create(out, &matmul, attributes, stream->engine, NULL),
            "prepare a matrix product");
    dnnl_primitive_attr_destroy(attributes);
    return status;
}

tg_status tg_product_layout(tg_stream *stream, size_t K, size_t N, tg_dtype dtype,
                            dnnl_memory_desc_t *out)
{
    enum { MANY_ROWS = 256 };
    tg_product_shape shape = {.M = MANY_ROWS, .K = K, .N = N, .in = dtype, .out = dtype};
    dnnl_memory_desc_t any;
    plain_layout(&any, K, N, dtype, dnnl_format_tag_any);
    dnnl_primitive_desc_t pd;
    TG_TRY(tg_dnnl_room());
    omp_set_num_threads(1);
    tg_status status = describe(stream, &shape, &any, &pd);
    tg_stream_enter(stream);
    TG_TRY(status);
    *out = *dnnl_primitive_desc_query_md(pd, dnnl_query_weights_md, 0);
    dnnl_primitive_desc_destroy(pd);
    return TG_OK;
}

static tg_status make_memory(tg_stream *stream, const_dnnl_primitive_desc_t pd, bool bias,
                             thread_memory *out)
{
    const struct {
        dnnl_query_t what;
        int index;
        dnnl_memory_t *memory;
    } parts[] = {{dnnl_query_src_md, 0, &out->a},
                 {dnnl_query_weights_md, 0, &out->b},
                 {dnnl_query_dst_md, 0, &out->c},
                 {dnnl_query_scratchpad_md, 0, &out->scratchpad},
                 {dnnl_query_weights_md, 1, &out->bias}};
    size_t count = bias ? 5 : 4;
    for (size_t i = 0; i < count; i++) {
        const dnnl_memory_desc_t *md =
            dnnl_primitive_desc_query_md(pd, parts[i].what, parts[i].index);
        TG_TRY(tg_dnnl_status(
            dnnl_memory_create(parts[i].memory, md, stream->engine, DNNL_MEMORY_NONE),
            "memory object"));
    }
    size_t bytes =
        dnnl_memory_desc_get_size(dnnl_primitive_desc_query_md(pd, dnnl_query_scratchpad_md, 0));
    if (bytes) {
        out->scratch = aligned_alloc(64, (bytes + 63) & ~(size_t)63);
        if (!out->scratch)
            return tg_fail(TG_ERROR_MACHINE, "out of memory for %zu bytes of scratch", bytes);
    }
    return tg_dnnl_status(dnnl_memory_set_data_handle(out->scratchpad, out->scratch), "scratch");
}

static tg_status product_new(tg_stream *stream, const tg_product_shape *shape,
                             const dnnl_memory_desc_t *b_layout, tg_product **out)
{
    tg_status status;
    dnnl_primitive_desc_t pd = NULL;
    TG_TRY(tg_dnnl_room());
    tg_product *product = calloc(1, sizeof *product);
    if (!product)
        return tg_fail(TG_ERROR_MACHINE, "out of memory for a matrix product");
    product->shape = *shape;
    product->b_layout = *b_layout;
    product->threads = shape->whole_team ? 1 : stream->threads;
    if (!shape->whole_team)
        omp_set_num_threads(1); /* oneDNN plans for the team it sees */
    status = describe(stream, shape, b_layout, &pd);
    if (status == TG_OK)
        status = tg_dnnl_status(dnnl_primitive_create(&product->primitive, pd), "matrix product");
    tg_stream_enter(stream);
    if (status < 0)
        goto free_product;
    product->memory = calloc((size_t)product->threads, sizeof *product->memory);
    if (!product->memory) {
        status = tg_fail(TG_ERROR_MACHINE, "out of memory for a matrix product");
        goto free_product;
    }
    for (int i = 0; i < product->threads; i++)
        TG_TRY_GOTO(make_memory(stream, pd, shape->bias, &product->memory[i]), free_product);
    dnnl_primitive_desc_destroy(pd);
    *out = product;
    return TG_OK;
free_product:
    if (pd)
        dnnl_primitive_desc_destroy(pd);
    product_free(product);
    return status;
}

tg_status tg_product_get(tg_stream *stream, const tg_product_shape *shape, tg_product **out)
{
    product_cache *cache = cache_of(stream);
    if (!cache)
        return tg_fail(TG_ERROR_MACHINE, "out of memory for the product cache");
    dnnl_memory_desc_t layout;
    if (shape->b_layout)
        layout = *shape->b_layout;
    else
        plain_layout(&layout, shape->K, shape->N, shape->in, dnnl_ab);
    tg_product *found = cache_find(cache, shape, &layout);
    if (!found) {
        TG_TRY(product_new(stream, shape, &layout, &found));
        tg_status status = cache_add(cache, found);
        if (status < 0) {
            product_free(found);
            return status;
        }
    }
    *out = found;
    return TG_OK;
}

tg_status tg_product_run(tg_stream *stream, tg_product *product, int thread, const void *a,
                         const void *b, const float *bias, void *out_c)
{
    thread_memory *m = &product->memory[thread];
    (void)dnnl_memory_set_data_handle(m->a, (void *)(uintptr_t)a);
    (void)dnnl_memory_set_data_handle(m->b, (void *)(uintptr_t)b);
    (void)dnnl_memory_set_data_handle(m->c, out_c);
    dnnl_exec_arg_t args[5] = {{DNNL_ARG_SRC, m->a},
                               {DNNL_ARG_WEIGHTS, m->b},
                               {DNNL_ARG_DST, m->c},
                               {DNNL_ARG_SCRATCHPAD, m->scratchpad}};
    int count = 4;
    if (product->shape.bias) {
        (void)dnnl_memory_set_data_handle(m->bias, (void *)(uintptr_t)bias);
        args[count++] = (dnnl_exec_arg_t){DNNL_ARG_BIAS, m->bias};
    }
    return tg_dnnl_status(
        dnnl_primitive_execute(product->primitive, stream->dnnl, count, args), "matrix product");
}
