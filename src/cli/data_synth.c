/* tagine data synth: generated pictures of food, for trying things without photos. */
#include "base/json_writer.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/signal.h"
#include "data/synth.h"

#include <sys/stat.h>

typedef struct synth_settings {
    const char *output;
    int64_t classes, per_class, seed, img_size;
    double val_share;
} synth_settings;

#define AT(field) offsetof(synth_settings, field)
static const tg_option OPTIONS[] = {
    {.name = "output",
     .type = TG_OPTION_STRING,
     .offset = AT(output),
     .metavar = "DIR",
     .help = "folder to write train/ and val/ into",
     .flags = TG_OPTION_FOLDER},
    {.name = "classes",
     .type = TG_OPTION_INT,
     .offset = AT(classes),
     .initial = "12",
     .metavar = "N",
     .help = "kinds of food, of the 20 that it can draw",
     .low = 2,
     .high = 1e6},
    {.name = "per-class",
     .type = TG_OPTION_INT,
     .offset = AT(per_class),
     .initial = "200",
     .metavar = "N",
     .help = "training pictures of each kind",
     .low = 1,
     .high = TG_SYNTH_PER_CLASS_MAX},
    {.name = "val-share",
     .type = TG_OPTION_DOUBLE,
     .offset = AT(val_share),
     .initial = "0.2",
     .metavar = "SHARE",
     .help = "validation pictures, on top, as a share of --per-class",
     .low = 0,
     .high = 1},
    {.name = "img-size",
     .type = TG_OPTION_INT,
     .offset = AT(img_size),
     .initial = "64",
     .metavar = "PX",
     .help = "side of the square pictures",
     .low = TG_SYNTH_SIZE_MIN_PX,
     .high = TG_SYNTH_SIZE_MAX_PX},
    {.name = "seed",
     .type = TG_OPTION_INT,
     .offset = AT(seed),
     .initial = "0",
     .metavar = "N",
     .help = "another seed, other pictures; the same seed, the same files",
     .low = 0,
     .high = 1e15},
};

static const tg_command_group GROUPS[] = {{"Pictures", OPTIONS, TG_COUNT_OF(OPTIONS), 0}};

static tg_status show_progress(void *context, size_t done, size_t total)
{
    (void)context;
    tg_console_progress("drawing", done, total, "");
    if (tg_signal_stop())
        return tg_fail(TG_ERROR_STOPPED, "stopped after %zu of %zu pictures", done, total);
    return TG_OK;
}

static tg_status print_result(const tg_invocation *invocation, const tg_synth_options *options)
{
    tg_text text = {0};
    size_t classes = (size_t)options->class_count;
    size_t train = classes * (size_t)options->per_class;
    size_t val = classes * (size_t)tg_synth_val_count(options);
    if (invocation->common->json) {
        tg_json_writer w = tg_json_writer_init(&text);
        tg_json_begin_object(&w, NULL);
        tg_json_put_string(&w, "output", options->output);
        tg_json_put_uint(&w, "classes", classes);
        tg_json_put_uint(&w, "train_images", train);
        tg_json_put_uint(&w, "val_images", val);
        tg_json_end_object(&w);
        tg_text_append_char(&text, '\n');
    } else {
        tg_text_append_format(&text, "%s: %zu kinds of food, %zu + %zu pictures of %d px\n",
                              options->output, classes, train, val, options->size_px);
    }
    tg_status status = tg_console_print(&text);
    tg_text_done(&text);
    return status;
}

_Static_assert(TG_SYNTH_CLASSES == 20, "the help of --classes says 20");

static tg_status check_output(const char *path)
{
    struct stat st;
    if (stat(path, &st) == 0 && !S_ISDIR(st.st_mode))
        return tg_fail(TG_ERROR_USAGE,
                       "--output %s: there is a file of that name; a folder is needed", path);
    return TG_OK;
}

static tg_status run(const tg_invocation *invocation)
{
    const synth_settings *s = invocation->settings;
    if (!s->output)
        return tg_fail(TG_ERROR_USAGE, "where to? --output DIR");
    if (s->classes > TG_SYNTH_CLASSES)
        return tg_fail(TG_ERROR_USAGE,
                       "--classes: \"%lld\" is above %d: it can draw %d kinds of food, and a class "
                       "is one of them",
                       (long long)s->classes, TG_SYNTH_CLASSES, TG_SYNTH_CLASSES);
    TG_TRY(check_output(s->output));
    int threads = tg_invocation_threads(invocation);
    const tg_synth_options options = {.output = s->output,
                                      .class_count = (int)s->classes,
                                      .per_class = (int)s->per_class,
                                      .val_share = s->val_share,
                                      .seed = (uint64_t)s->seed,
                                      .size_px = (int)s->img_size,
                                      .threads = threads < 256 ? threads : 256};
    TG_TRY(tg_synth_write(&options, show_progress, NULL));
    tg_console_progress_end();
    return print_result(invocation, &options);
}

static const tg_command_note EXAMPLES[] = {
    {"tagine data synth --output photos --classes 12 --per-class 10 --img-size 32",
     "120 pictures of 12 kinds of food to train on, 24 to validate"},
    {0},
};

const tg_command tg_command_data_synth = {
    .name = "data synth",
    .arguments = "",
    .summary = "Draw pictures of food on plates, to train on without a download",
    .description = "Writes DIR/train/CLASS and DIR/val/CLASS. The pictures depend on nothing but "
                   "the options: the\nsame command gives the same files.",
    .examples = EXAMPLES,
    .see_also = "train",
    .work = TG_COMMAND_THREADS,
    .groups = GROUPS,
    .group_count = TG_COUNT_OF(GROUPS),
    .settings_bytes = sizeof(synth_settings),
    .run = run,
};
