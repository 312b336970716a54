/* Ranks by steps: what each worked and waited, as bytes between the least and nearly the most of all. */
#include "report/html_parts.h"

#include "base/median.h"

#include <math.h>
#include <stdlib.h>

enum { MATRIX_BYTES = 400000, LEAST_BINS = 60 };

typedef enum rank_value { OWN_WORK, WAITING } rank_value;

static double value_of(const tg_rank_step *s, rank_value value)
{
    return value == OWN_WORK ? s->t_step - s->t_reduce : s->t_reduce;
}

/* Mean of one rank over rows [begin, end). */
static double mean_of(const tg_history *h, size_t begin, size_t end, size_t rank, rank_value value)
{
    double sum = 0;
    size_t n = 0;
    for (size_t i = begin; i < end; i++)
        if (rank < h->rank_rows[i].ranks &&
            isfinite(value_of(&h->rank_rows[i].each[rank], value))) {
            sum += value_of(&h->rank_rows[i].each[rank], value);
            n++;
        }
    return n ? sum / (double)n : NAN;
}

typedef struct rank_bins {
    size_t ranks, size, count; /* rows in a bin, bins */
} rank_bins;

static rank_bins bins_for(const tg_history *h)
{
    rank_bins b = {.ranks = 0};
    for (size_t i = 0; i < h->rank_row_count; i++)
        if (h->rank_rows[i].ranks > b.ranks)
            b.ranks = h->rank_rows[i].ranks;
    size_t most = MATRIX_BYTES / (b.ranks ? b.ranks : 1);
    most = most < TG_HTML_RANK_BINS ? most : TG_HTML_RANK_BINS;
    most = most > LEAST_BINS ? most : LEAST_BINS;
    b.size = (h->rank_row_count + most - 1) / most;
    b.count = b.size ? (h->rank_row_count + b.size - 1) / b.size : 0;
    return b;
}

/* From the least to the value that one in a hundred passes: outliers must not make all else pale. */
static void find_scale(const double *means, size_t count, double *sorted, double scale[2])
{
    size_t n = 0;
    for (size_t i = 0; i < count; i++)
        if (!isnan(means[i]))
            sorted[n++] = means[i];
    tg_sort_doubles(sorted, n);
    scale[0] = n ? sorted[0] : 0;
    scale[1] = n ? tg_quantile(sorted, n, 0.99) : 1;
    if (!(scale[1] > scale[0]))
        scale[1] = scale[0] + 1e-6;
}

static tg_status put_matrix(tg_json_writer *w, const char *key, const char *scale_key,
                            const tg_history *h, const rank_bins *b, rank_value value, double *work)
{
    const size_t cells = b->ranks * b->count;
    double *means = work, scale[2];
    uint8_t *bytes = malloc(cells + 1);
    if (!bytes)
        return tg_fail(TG_ERROR_MACHINE, "out of memory for the report");
    for (size_t r = 0; r < b->ranks; r++)
        for (size_t k = 0; k < b->count; k++) {
            const size_t end = (k + 1) * b->size;
            means[r * b->count + k] = mean_of(
                h, k * b->size, end < h->rank_row_count ? end : h->rank_row_count, r, value);
        }
    find_scale(means, cells, work + cells, scale);
    for (size_t i = 0; i < cells; i++)
        bytes[i] = tg_html_share_byte((means[i] - scale[0]) / (scale[1] - scale[0]));
    tg_html_put_numbers(w, scale_key, scale, 2);
    tg_status status = tg_html_put_bytes(w, key, bytes, cells);
    free(bytes);
    return status;
}

/* In which share of the steps the rank had most to do. */
static double slowest_share(const tg_history *h, size_t rank)
{
    size_t slowest = 0, rows = 0;
    for (size_t i = 0; i < h->rank_row_count; i++) {
        const tg_history_rank_row *row = &h->rank_rows[i];
        size_t most = 0;
        for (size_t r = 1; r < row->ranks; r++)
            if (value_of(&row->each[r], OWN_WORK) > value_of(&row->each[most], OWN_WORK))
                most = r;
        rows += row->ranks > 1;
        slowest += row->ranks > 1 && most == rank;
    }
    return rows ? (double)slowest / (double)rows : NAN;
}

static double mean_data(const tg_history *h, size_t rank)
{
    double sum = 0;
    size_t n = 0;
    for (size_t i = 0; i < h->rank_row_count; i++)
        if (rank < h->rank_rows[i].ranks) {
            sum += h->rank_rows[i].each[rank].t_data;
            n++;
        }
    return n ? sum / (double)n : NAN;
}

static const char *host_of(const tg_history *h, size_t rank)
{
    const char *host = NULL;
    tg_json_node root, each, one;
    if (!h->info.root)
        return NULL;
    root = tg_json_root(&h->info);
    if (tg_json_node_kind(&root) != TG_JSON_OBJECT || !tg_json_find(&root, "each", &each) ||
        tg_json_node_kind(&each) != TG_JSON_ARRAY || rank >= tg_json_count(&each))
        return tg_history_info_text(h, "machine.host");
    one = tg_json_element(&each, rank);
    tg_json_node name;
    if (tg_json_node_kind(&one) == TG_JSON_OBJECT && tg_json_find(&one, "host", &name) &&
        tg_json_node_kind(&name) == TG_JSON_STRING && tg_json_as_string(&name, &host) == TG_OK)
        return host;
    return NULL;
}

static void put_each(tg_json_writer *w, const tg_history *h, size_t ranks)
{
    tg_json_begin_array(w, "each");
    for (size_t r = 0; r < ranks; r++) {
        tg_json_begin_object(w, NULL);
        tg_json_put_uint(w, "rank", r);
        tg_json_put_string(w, "host", host_of(h, r));
        tg_html_put_number(w, "work_s", mean_of(h, 0, h->rank_row_count, r, OWN_WORK));
        tg_html_put_number(w, "wait_s", mean_of(h, 0, h->rank_row_count, r, WAITING));
        tg_html_put_number(w, "data_s", mean_data(h, r));
        tg_html_put_number(w, "slowest", slowest_share(h, r));
        tg_json_end_object(w);
    }
    tg_json_end_array(w);
}

static void put_edges(tg_json_writer *w, const tg_history *h, const rank_bins *b)
{
    tg_json_begin_array(w, "first");
    for (size_t k = 0; k < b->count; k++)
        tg_json_put_int(w, NULL, h->rank_rows[k * b->size].step);
    tg_json_end_array(w);
    tg_json_begin_array(w, "last");
    for (size_t k = 0; k < b->count; k++) {
        const size_t end = (k + 1) * b->size;
        tg_json_put_int(w, NULL,
                        h->rank_rows[(end < h->rank_row_count ? end : h->rank_row_count) - 1].step);
    }
    tg_json_end_array(w);
}

tg_status tg_html_put_ranks(tg_json_writer *w, const tg_history *h)
{
    const rank_bins b = bins_for(h);
    if (!b.count || b.ranks < 2) {
        tg_json_put_null(w, "ranks");
        return TG_OK;
    }
    double *work = malloc(2 * b.ranks * b.count * sizeof *work);
    if (!work)
        return tg_fail(TG_ERROR_MACHINE, "out of memory for the report");
    tg_json_begin_object(w, "ranks");
    tg_json_put_uint(w, "count", b.ranks);
    put_edges(w, h, &b);
    tg_status status = put_matrix(w, "work", "work_scale", h, &b, OWN_WORK, work);
    if (status == TG_OK)
        status = put_matrix(w, "wait", "wait_scale", h, &b, WAITING, work);
    put_each(w, h, b.ranks);
    tg_json_end_object(w);
    free(work);
    return status;
}
