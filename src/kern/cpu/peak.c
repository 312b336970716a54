#include "kern/peak.h"

#include "dev/cpu/stream.h"
#include "os/clock.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { SIZE_COUNT = 5, OPERANDS = 3, MOST_RUNS = 256 };
#define BUDGET_S 2.0

/* Small to large, so that a slow machine is known before it is asked too much. */
static const struct product_size {
    size_t M, K, N;
} SIZES[SIZE_COUNT] = {{6304, 384, 1536},
                       {6304, 1536, 384},
                       {2048, 2048, 2048},
                       {6304, 768, 3072},
                       {4096, 4096, 4096}};

typedef struct peak_product {
    dnnl_primitive_t primitive;
    dnnl_memory_t memory[OPERANDS]; /* A, B, C */
    double rate[MOST_RUNS];         /* FLOP/s of the runs that count */
    size_t runs;
} peak_product;

static tg_status describe(tg_stream *stream, const struct product_size *size, tg_dtype dtype,
                          dnnl_primitive_desc_t *out)
{
    dnnl_memory_desc_t md[OPERANDS];
    const size_t dims[OPERANDS][2] = {{size->M, size->K}, {size->K, size->N}, {size->M, size->N}};
    for (int i = 0; i < OPERANDS; i++) {
        dnnl_dims_t d = {(dnnl_dim_t)dims[i][0], (dnnl_dim_t)dims[i][1]};
        TG_TRY(tg_dnnl_status(dnnl_memory_desc_init_by_tag(&md[i], 2, d,
                                                           dtype == TG_BF16 ? dnnl_bf16 : dnnl_f32,
                                                           dnnl_format_tag_any),
                              "layout of a matrix"));
    }
    dnnl_matmul_desc_t matmul;
    TG_TRY(tg_dnnl_status(dnnl_matmul_desc_init(&matmul, &md[0], &md[1], NULL, &md[2]),
                          "describe a matrix product"));
    return tg_dnnl_status(dnnl_primitive_desc_create(out, &matmul, NULL, stream->engine, NULL),
                          "prepare a matrix product");
}

static void product_done(peak_product *product)
{
    for (int i = 0; i < OPERANDS; i++)
        if (product->memory[i])
            dnnl_memory_destroy(product->memory[i]);
    if (product->primitive)
        dnnl_primitive_destroy(product->primitive);
}

/* The values do not matter for time, but must not be subnormal or infinite: 1.0 in either type is
 * near enough to a pattern of equal bytes. */
static void fill(dnnl_memory_t memory, size_t bytes)
{
    void *data;
    if (dnnl_memory_get_data_handle(memory, &data) == dnnl_success && data)
        memset(data, 0x3c, bytes);
}

static tg_status make_memory(tg_stream *stream, const_dnnl_primitive_desc_t pd,
                             peak_product *product)
{
    static const dnnl_query_t parts[OPERANDS] = {dnnl_query_src_md, dnnl_query_weights_md,
                                                 dnnl_query_dst_md};
    for (int i = 0; i < OPERANDS; i++) {
        const dnnl_memory_desc_t *md = dnnl_primitive_desc_query_md(pd, parts[i], 0);
        TG_TRY(tg_dnnl_status(
            dnnl_memory_create(&product->memory[i], md, stream->engine, DNNL_MEMORY_ALLOCATE),
            "memory of a matrix"));
        fill(product->memory[i], dnnl_memory_desc_get_size(md));
    }
    return TG_OK;
}

static tg_status product_init(tg_stream *stream, const struct product_size *size, tg_dtype dtype,
                              peak_product *out)
{
    dnnl_primitive_desc_t pd;
    TG_TRY(tg_dnnl_room());
    TG_TRY(describe(stream, size, dtype, &pd));
    tg_status status = make_memory(stream, pd, out);
    if (status == TG_OK)
        status = tg_dnnl_status(dnnl_primitive_create(&out->primitive, pd), "matrix product");
    dnnl_primitive_desc_destroy(pd);
    return status;
}

static tg_status run_once(tg_stream *stream, peak_product *product, int64_t *out_ns)
{
    const dnnl_exec_arg_t args[OPERANDS] = {{DNNL_ARG_SRC, product->memory[0]},
                                            {DNNL_ARG_WEIGHTS, product->memory[1]},
                                            {DNNL_ARG_DST, product->memory[2]}};
    int64_t start = tg_clock_ns();
    TG_TRY(tg_dnnl_status(dnnl_primitive_execute(product->primitive, stream->dnnl, OPERANDS, args),
                          "matrix product"));
    TG_TRY(tg_dnnl_status(dnnl_stream_wait(stream->dnnl), "matrix product"));
    *out_ns = tg_clock_ns() - start;
    return TG_OK;
}

/* One round over all sizes; those that would not end in time are left out. */
static tg_status run_round(tg_stream *stream, tg_dtype dtype, int64_t end_ns,
                           peak_product products[SIZE_COUNT], double *best, bool *out_ran)
{
    *out_ran = false;
    for (int i = 0; i < SIZE_COUNT; i++) {
        peak_product *p = &products[i];
        const struct product_size *s = &SIZES[i];
        double flops = 2.0 * (double)s->M * (double)s->K * (double)s->N;
        double left_s = (double)(end_ns - tg_clock_ns()) * 1e-9;
        if (*best > 0 && flops / *best > left_s)
            continue;
        int64_t ns;
        if (!p->primitive) {
            TG_TRY(product_init(stream, s, dtype, p));
            TG_TRY(run_once(stream, p, &ns));
        }
        TG_TRY(run_once(stream, p, &ns));
        *out_ran = true;
        double rate = flops / ((double)ns * 1e-9);
        if (p->runs < MOST_RUNS)
            p->rate[p->runs++] = rate;
        *best = rate > *best ? rate : *best;
    }
    return TG_OK;
}

static int by_rate(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double best_median(peak_product products[SIZE_COUNT])
{
    double best = 0;
    for (int i = 0; i < SIZE_COUNT; i++) {
        peak_product *p = &products[i];
        qsort(p->rate, p->runs, sizeof *p->rate, by_rate);
        double median = p->runs ? p->rate[p->runs / 2] : 0;
        best = median > best ? median : best;
    }
    return best;
}

tg_status tg_kern_peak(tg_stream *stream, tg_dtype dtype, tg_peak *out)
{
    return tg_kern_peak_within(stream, dtype, BUDGET_S, out);
}

tg_status tg_kern_peak_within(tg_stream *stream, tg_dtype dtype, double seconds, tg_peak *out)
{
    peak_product *products = calloc(SIZE_COUNT, sizeof *products);
    if (!products)
        return tg_fail(TG_ERROR_MACHINE, "out of memory for the peak's measurement");
    double fastest = 0;
    bool ran = true;
    tg_status status = TG_OK;
    tg_stream_enter(stream);
    int64_t end_ns = tg_clock_ns() + (int64_t)(seconds * 1e9);
    while (status == TG_OK && ran && tg_clock_ns() < end_ns)
        status = run_round(stream, dtype, end_ns, products, &fastest, &ran);
    if (status == TG_OK)
        *out = (tg_peak){.flops_per_s = best_median(products), .fastest_flops_per_s = fastest};
    for (int i = 0; i < SIZE_COUNT; i++)
        product_done(&products[i]);
    free(products);
    return status;
}
