/* tagine bench loader: photos from their files to batches, a second and a core. */
#include "base/json_writer.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/options_data.h"
#include "cli/signal.h"
#include "data/loader_bench.h"

#include <stdio.h>

typedef struct loader_settings {
    tg_data_choice data;
    int64_t batch_size, img_size, passes;
    bool no_aug;
} loader_settings;

#define AT(field) offsetof(loader_settings, field)
static const tg_option OPTIONS[] = {
    {.name = "workers",
     .letter = 'j',
     .type = TG_OPTION_INT,
     .offset = AT(data.workers),
     .initial = "auto",
     .metavar = "N|auto",
     .help = "threads that decode photos; auto: one for each core; 0: none of their own",
     .low = 0,
     .high = 1024,
     .flags = TG_OPTION_AUTO},
    {.name = "batch-size",
     .letter = 'b',
     .type = TG_OPTION_INT,
     .offset = AT(batch_size),
     .initial = "32",
     .metavar = "N",
     .help = "photos in a batch",
     .low = 1,
     .high = 1 << 20},
    {.name = "img-size",
     .type = TG_OPTION_INT,
     .offset = AT(img_size),
     .initial = "224",
     .metavar = "N",
     .help = "side of the network's input in pixels",
     .low = 1,
     .high = 1 << 14},
    {.name = "passes",
     .type = TG_OPTION_INT,
     .offset = AT(passes),
     .initial = "3",
     .metavar = "N",
     .help = "times the whole split is read; the fastest counts",
     .low = 1,
     .high = 1e6},
    {.name = "no-aug",
     .type = TG_OPTION_BOOL,
     .offset = AT(no_aug),
     .help = "the evaluation transform in place of crop, flip and jitter"},
};

static const tg_command_group GROUPS[] = {
    {"Data", tg_data_option_table, TG_DATA_OPTION_COUNT, AT(data)},
    {"Loading", OPTIONS, TG_COUNT_OF(OPTIONS), 0},
};

static void print_json(int workers, const tg_loader_bench *r, tg_text *out)
{
    tg_json_writer w = tg_json_writer_init(out);
    tg_json_begin_object(&w, NULL);
    tg_json_put_double(&w, "images_per_s", r->images_per_s);
    tg_json_put_double(&w, "images_per_s_per_core", r->images_per_s_per_core);
    tg_json_put_uint(&w, "images", r->images);
    tg_json_put_uint(&w, "skipped", r->skipped);
    tg_json_put_int(&w, "workers", workers);
    tg_json_put_int(&w, "cores", r->cores);
    tg_json_put_double(&w, "seconds", r->seconds);
    tg_json_put_double(&w, "decode_s", r->decode_s);
    tg_json_put_double(&w, "transform_s", r->transform_s);
    tg_json_end_object(&w);
    tg_text_append_char(out, '\n');
}

static void print_text(int workers, const tg_loader_bench *r, tg_text *out)
{
    double all_s = r->decode_s + r->transform_s;
    tg_text_append_format(out, "%llu photos, %d worker%s on %d core%s",
                          (unsigned long long)r->images, workers, workers == 1 ? "" : "s", r->cores,
                          r->cores == 1 ? "" : "s");
    if (r->skipped)
        tg_text_append_format(out, ", %llu could not be read", (unsigned long long)r->skipped);
    tg_text_append_format(out,
                          "\n\n  images        %10.1f /s\n  a core        %10.1f /s\n"
                          "  decoding      %10.1f %%\n  transforming  %10.1f %%\n",
                          r->images_per_s, r->images_per_s_per_core, 100 * r->decode_s / all_s,
                          100 * r->transform_s / all_s);
}

/* What show_progress measures against. */
typedef struct extent {
    size_t photos;
    int passes;
} extent;

static tg_status show_progress(void *context, int pass, uint64_t images)
{
    const extent *all = context;
    char note[32];
    snprintf(note, sizeof note, "pass %d of %d", pass + 1, all->passes);
    tg_console_progress("photos", images, all->photos, note);
    return tg_signal_stop() ? tg_fail(TG_ERROR_STOPPED, "stopped in %s", note) : TG_OK;
}

static tg_status measure(const tg_invocation *invocation, const tg_dataset *dataset, int workers,
                         tg_loader_bench *out)
{
    const loader_settings *s = invocation->settings;
    const tg_loader_options options = {.batch_size = (size_t)s->batch_size,
                                       .workers = workers,
                                       .seed = 42,
                                       .train = !s->no_aug,
                                       .augment = tg_augment_default(),
                                       .preprocess = tg_preprocess_default((int)s->img_size),
                                       .num_classes = dataset->class_count,
                                       .max_bad_share = 1};
    extent all = {dataset->count, (int)s->passes};
    tg_status status = tg_loader_bench_run(dataset, &options, all.passes, show_progress, &all, out);
    tg_console_progress_end();
    return status;
}

static tg_status run(const tg_invocation *invocation)
{
    const loader_settings *s = invocation->settings;
    tg_dataset dataset = {0};
    tg_loader_bench result;
    int workers = s->data.workers == TG_OPTION_AUTO_VALUE ? tg_invocation_threads(invocation)
                                                          : (int)s->data.workers;
    TG_TRY(tg_data_choice_refuse_val(&s->data));
    TG_TRY(tg_data_choice_open(&s->data, TG_DATA_TRAIN, 42, NULL, 0, &dataset));
    tg_status status = measure(invocation, &dataset, workers, &result);
    tg_dataset_done(&dataset);
    TG_TRY(status);
    tg_text text = {0};
    (invocation->common->json ? print_json : print_text)(workers, &result, &text);
    status = tg_console_print(&text);
    tg_text_done(&text);
    return status;
}

static const tg_command_note EXAMPLES[] = {
    {"tagine bench loader --data photos --img-size 32 --passes 1",
     "Photos a second, from files to batches"},
    {0},
};

const tg_command tg_command_bench_loader = {
    .name = "bench loader",
    .arguments = "",
    .summary = "Measure how many photos a second are read and augmented",
    .description = "Reads the training split as training would, and gives its batches straight "
                   "back. With --json:\n{\"images_per_s\", \"images_per_s_per_core\", ...}.",
    .examples = EXAMPLES,
    .see_also = "data stats",
    .work = TG_COMMAND_THREADS,
    .groups = GROUPS,
    .group_count = TG_COUNT_OF(GROUPS),
    .settings_bytes = sizeof(loader_settings),
    .run = run,
};
