#include "data/stats.h"

#include "data/survey.h"

#include <math.h>
#include <stdlib.h>

typedef struct colour_sums {
    uint64_t sum[3], square_sum[3], pixels;
} colour_sums;

static int compare_u64(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static tg_spread spread_of(uint64_t *values, size_t n)
{
    if (n == 0)
        return (tg_spread){0};
    qsort(values, n, sizeof *values, compare_u64);
    return (tg_spread){values[0], values[(n - 1) / 2], values[n - 1]};
}

static void count_photo(const tg_photo_facts *facts, tg_data_stats *stats, colour_sums *colours)
{
    stats->formats[facts->format]++;
    stats->orientations[facts->orientation]++;
    stats->with_alpha += facts->has_alpha;
    stats->with_warning += facts->message != NULL;
    colours->pixels += (uint64_t)facts->width_px * (uint64_t)facts->height_px;
    for (int c = 0; c < 3; c++) {
        colours->sum[c] += facts->sum[c];
        colours->square_sum[c] += facts->square_sum[c];
    }
}

static void finish_colours(const colour_sums *colours, tg_data_stats *stats)
{
    const double n = (double)colours->pixels;
    for (int c = 0; c < 3 && colours->pixels > 0; c++) {
        double mean = (double)colours->sum[c] / n / 255;
        double square = (double)colours->square_sum[c] / n / (255.0 * 255.0);
        stats->mean[c] = mean;
        stats->std[c] = sqrt(fmax(0, square - mean * mean));
    }
}

static tg_status summarize(const tg_dataset *dataset, const tg_photo_facts *facts,
                           tg_data_stats *stats)
{
    colour_sums colours = {0};
    size_t n = 0;
    uint64_t *values = malloc((dataset->count ? dataset->count : 1) * 3 * sizeof *values);
    if (!values)
        return tg_fail(TG_ERROR_MACHINE, "out of memory for the sizes of %zu photos",
                       dataset->count);
    uint64_t *widths = values, *heights = values + dataset->count;
    uint64_t *bytes = values + 2 * dataset->count;
    for (size_t i = 0; i < dataset->count; i++) {
        stats->total_bytes += facts[i].bytes;
        if (dataset->samples[i].label >= 0 && stats->class_counts)
            stats->class_counts[dataset->samples[i].label]++;
        if (facts[i].bad) {
            stats->bad++;
            continue;
        }
        count_photo(&facts[i], stats, &colours);
        widths[n] = (uint64_t)facts[i].width_px;
        heights[n] = (uint64_t)facts[i].height_px;
        bytes[n++] = facts[i].bytes;
    }
    stats->width_px = spread_of(widths, n);
    stats->height_px = spread_of(heights, n);
    stats->file_bytes = spread_of(bytes, n);
    finish_colours(&colours, stats);
    free(values);
    return TG_OK;
}

tg_status tg_data_stats_collect(const tg_dataset *dataset, int workers, tg_data_stats *out)
{
    tg_data_stats stats = {.photos = dataset->count, .class_count = dataset->class_count};
    tg_photo_facts *facts = NULL;
    tg_status status = TG_OK;
    const char **paths = malloc((dataset->count ? dataset->count : 1) * sizeof *paths);
    if (dataset->class_count > 0)
        stats.class_counts = calloc(dataset->class_count, sizeof *stats.class_counts);
    if (!paths || (dataset->class_count > 0 && !stats.class_counts)) {
        status = tg_fail(TG_ERROR_MACHINE, "out of memory for statistics");
        goto free_paths;
    }
    for (size_t i = 0; i < dataset->count; i++)
        paths[i] = dataset->samples[i].path;
    TG_TRY_GOTO(tg_survey_photos(paths, dataset->count, workers, &facts), free_paths);
    status = summarize(dataset, facts, &stats);
    tg_survey_done(facts, dataset->count);
free_paths:
    free(paths);
    if (status < 0)
        tg_data_stats_done(&stats);
    else
        *out = stats;
    return status;
}

void tg_data_stats_done(tg_data_stats *stats)
{
    if (!stats)
        return;
    free(stats->class_counts);
    *stats = (tg_data_stats){0};
}
