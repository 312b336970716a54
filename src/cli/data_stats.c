/* tagine data stats: how many photos of each class, and what they are like. */
#include "base/json_writer.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/options_data.h"
#include "data/stats.h"

typedef struct stats_settings {
    tg_data_choice data;
    int64_t seed;
} stats_settings;

static const tg_option OPTIONS[] = {
    {.name = "seed",
     .type = TG_OPTION_INT,
     .offset = offsetof(stats_settings, seed),
     .initial = "42",
     .metavar = "N",
     .help = "decides which photos a --val-split share holds out",
     .low = 0,
     .high = 1e15},
};

static const tg_command_group GROUPS[] = {
    {"Data", tg_data_option_table, TG_DATA_OPTION_COUNT, offsetof(stats_settings, data)},
    {"Split", OPTIONS, TG_COUNT_OF(OPTIONS), 0},
};

static void put_spread(tg_json_writer *w, const char *key, const tg_spread *spread)
{
    tg_json_begin_object(w, key);
    tg_json_put_uint(w, "min", spread->min);
    tg_json_put_uint(w, "median", spread->median);
    tg_json_put_uint(w, "max", spread->max);
    tg_json_end_object(w);
}

static void put_channels(tg_json_writer *w, const char *key, const double values[3])
{
    tg_json_begin_array(w, key);
    for (int c = 0; c < 3; c++)
        tg_json_put_double(w, NULL, values[c]);
    tg_json_end_array(w);
}

static void print_json(const char *split, const tg_dataset *dataset, const tg_data_stats *stats,
                       tg_text *out)
{
    tg_json_writer w = tg_json_writer_init(out);
    tg_json_begin_object(&w, NULL);
    tg_json_put_string(&w, "split", split);
    tg_json_put_uint(&w, "images", stats->photos);
    tg_json_put_uint(&w, "bad", stats->bad);
    tg_json_put_uint(&w, "bytes", stats->total_bytes);
    tg_json_begin_object(&w, "classes");
    for (size_t c = 0; c < stats->class_count; c++)
        tg_json_put_uint(&w, dataset->class_names[c], stats->class_counts[c]);
    tg_json_end_object(&w);
    tg_json_begin_object(&w, "formats");
    for (int f = TG_IMAGE_JPEG; f <= TG_IMAGE_HEIF; f++)
        tg_json_put_uint(&w, tg_image_format_name((tg_image_format)f), stats->formats[f]);
    tg_json_end_object(&w);
    put_spread(&w, "width_px", &stats->width_px);
    put_spread(&w, "height_px", &stats->height_px);
    put_spread(&w, "file_bytes", &stats->file_bytes);
    tg_json_put_uint(&w, "with_alpha", stats->with_alpha);
    tg_json_put_uint(&w, "with_warning", stats->with_warning);
    put_channels(&w, "mean", stats->mean);
    put_channels(&w, "std", stats->std);
    tg_json_end_object(&w);
    tg_text_append_char(out, '\n');
}

static void print_spread(const char *name, const tg_spread *spread, const char *unit, tg_text *out)
{
    tg_text_append_format(out, "  %-14s%llu to %llu, median %llu %s\n", name,
                          (unsigned long long)spread->min, (unsigned long long)spread->max,
                          (unsigned long long)spread->median, unit);
}

static void print_table(const char *split, const tg_dataset *dataset, const tg_data_stats *stats,
                        tg_text *out)
{
    tg_text_append_format(out, "%s: %zu photos, %zu bad, ", split, stats->photos, stats->bad);
    tg_console_append_bytes(out, (double)stats->total_bytes);
    tg_text_append_string(out, "\n  formats       ");
    for (int f = TG_IMAGE_JPEG; f <= TG_IMAGE_HEIF; f++)
        if (stats->formats[f])
            tg_text_append_format(out, "%s %zu  ", tg_image_format_name((tg_image_format)f),
                                  stats->formats[f]);
    tg_text_append_char(out, '\n');
    print_spread("width", &stats->width_px, "px", out);
    print_spread("height", &stats->height_px, "px", out);
    print_spread("file size", &stats->file_bytes, "bytes", out);
    tg_text_append_format(out, "  mean          %.3f %.3f %.3f\n  deviation     %.3f %.3f %.3f\n",
                          stats->mean[0], stats->mean[1], stats->mean[2], stats->std[0],
                          stats->std[1], stats->std[2]);
    for (size_t c = 0; c < stats->class_count; c++) {
        tg_text_append_format(out, "  %8zu  ", stats->class_counts[c]);
        tg_text_append_visible(out, dataset->class_names[c], "");
        tg_text_append_char(out, '\n');
    }
}

static tg_status show(const tg_invocation *invocation, const char *split, const tg_dataset *dataset)
{
    tg_text text = {0};
    tg_data_stats stats = {0};
    TG_TRY(tg_data_stats_collect(dataset, tg_invocation_threads(invocation), &stats));
    (invocation->common->json ? print_json : print_table)(split, dataset, &stats, &text);
    tg_status status = tg_console_print(&text);
    tg_text_done(&text);
    tg_data_stats_done(&stats);
    return status;
}

static tg_status run(const tg_invocation *invocation)
{
    const stats_settings *s = invocation->settings;
    tg_dataset train = {0}, val = {0};
    tg_status status;
    TG_TRY_GOTO(tg_data_choice_open_both(&s->data, (uint64_t)s->seed, &train, &val), close_data);
    TG_TRY_GOTO(show(invocation, "train", &train), close_data);
    if (val.count)
        TG_TRY_GOTO(show(invocation, "val", &val), close_data);

close_data:
    tg_dataset_done(&val);
    tg_dataset_done(&train);
    return status;
}

static const tg_command_note EXAMPLES[] = {
    {"tagine data stats --data photos", "Classes, sizes, formats, mean and deviation"},
    {"tagine data stats --data photos/train --val-split 0.2",
     "What a share held out for validation leaves to train on"},
    {0},
};

const tg_command tg_command_data_stats = {
    .name = "data stats",
    .arguments = "",
    .summary = "Count photos by class and split, with sizes and colours",
    .description = "Decodes every photo. Mean and deviation are those of all pixels, in [0,1], as "
                   "--mean and --std\ntake them.",
    .examples = EXAMPLES,
    .see_also = "train",
    .work = TG_COMMAND_THREADS,
    .groups = GROUPS,
    .group_count = TG_COUNT_OF(GROUPS),
    .settings_bytes = sizeof(stats_settings),
    .run = run,
};
