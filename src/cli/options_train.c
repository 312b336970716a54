#include "cli/options_train.h"

#include "base/number.h"
#include "monitor/monitor.h"
#include "os/clock.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* Rows of the tables. */
#define FIELD(field) offsetof(tg_train_settings, field)
#define SWITCH(option, field, text)                                                                \
    {                                                                                              \
        .name = option, .type = TG_OPTION_BOOL, .offset = FIELD(field), .help = text               \
    }
#define WHOLE(option, field, start, least, most, meta, text)                                       \
    {                                                                                              \
        .name = option, .type = TG_OPTION_INT, .offset = FIELD(field), .initial = start,           \
        .metavar = meta, .help = text, .low = least, .high = most                                  \
    }
#define REAL(option, field, start, least, most, meta, text)                                        \
    {                                                                                              \
        .name = option, .type = TG_OPTION_DOUBLE, .offset = FIELD(field), .initial = start,        \
        .metavar = meta, .help = text, .low = least, .high = most                                  \
    }
#define REALS(option, field, start, least, most, meta, text)                                       \
    {                                                                                              \
        .name = option, .type = TG_OPTION_DOUBLES, .offset = FIELD(field), .initial = start,       \
        .metavar = meta, .help = text, .low = least, .high = most                                  \
    }
#define TEXT(option, field, start, meta, text, what)                                               \
    {                                                                                              \
        .name = option, .type = TG_OPTION_STRING, .offset = FIELD(field), .initial = start,        \
        .metavar = meta, .help = text, .flags = what                                               \
    }
#define ONE_OF(option, field, start, names, text)                                                  \
    {                                                                                              \
        .name = option, .type = TG_OPTION_CHOICE, .offset = FIELD(field), .initial = start,        \
        .choices = names, .help = text                                                             \
    }

static const char *const INTERPOLATIONS[] = {"model", "bicubic", "bilinear", NULL};
static const char *const OPTIMIZERS[] = {"adamw", NULL};
static const char *const SCHEDULES[] = {"cosine", "constant", NULL};
static const char *const AMP_DTYPES[] = {"bfloat16", "float32", NULL};
static const char *const KD_LOSSES[] = {"kl", "hard", "feature", NULL};
static const char *const KD_REDUCTIONS[] = {"batchmean", "mean", NULL};

/* Choices whose index is the enum's value, stored in place. */
_Static_assert(TG_SCHEDULE_COSINE == 0 && TG_SCHEDULE_CONSTANT == 1, "order of SCHEDULES");
_Static_assert(TG_KD_BATCHMEAN == 0 && TG_KD_MEAN == 1, "order of KD_REDUCTIONS");
_Static_assert(TG_KD_KL == 1 && TG_KD_HARD == 2 && TG_KD_FEATURE == 3, "order of KD_LOSSES");
_Static_assert(TG_BICUBIC == 0 && TG_BILINEAR == 1, "order of INTERPOLATIONS");
_Static_assert(sizeof(tg_schedule_kind) == sizeof(int), "a choice is stored as int");

const tg_option tg_start_option_table[TG_START_OPTION_COUNT] = {
    TEXT("initial-checkpoint", train.model.initial_checkpoint, NULL, "MODEL",
         "start from these weights; a head for other classes is made anew", TG_OPTION_FILE),
    TEXT("resume", train.output.resume, NULL, "auto|RUN|CHECKPOINT",
         "continue from the newest whole checkpoint of a run, or from one; auto: that of --output, "
         "or a fresh start",
         TG_OPTION_FILE),
    REAL("crop-pct", train.preprocess.crop_pct, NULL, 0.01, 1, "SHARE",
         "part of the resized photo that evaluation crops (default: the model's)"),
    ONE_OF("interpolation", extra.interpolation, "model", INTERPOLATIONS, "how photos are resized"),
    REALS("mean", extra.mean, NULL, -10, 10, "R G B",
          "mean of the channels (default: the model's)"),
    REALS("std", extra.std, NULL, 1e-6, 10, "R G B",
          "deviation of the channels (default: the model's)"),
};

const tg_option tg_recipe_option_table[TG_RECIPE_OPTION_COUNT] = {
    {.name = "batch-size",
     .letter = 'b',
     .type = TG_OPTION_INT,
     .offset = FIELD(train.recipe.batch_size),
     .initial = "128",
     .metavar = "N",
     .help = "images in a forward, on each rank",
     .low = 1,
     .high = 1 << 20},
    WHOLE("global-batch-size", train.recipe.global_batch_size, "0", 0, 1 << 24, "N",
          "images in a forward of all ranks together, in place of --batch-size; 0: that times the "
          "ranks"),
    WHOLE("epochs", train.recipe.epochs, "300", 0, 1e6, "N", "passes over the training photos"),
    WHOLE("grad-accum-steps", train.recipe.grad_accum_steps, "1", 1, 1e6, "N",
          "batches whose gradients make one step"),
    ONE_OF("opt", extra.opt, "adamw", OPTIMIZERS, "optimizer"),
    {.name = "lr",
     .type = TG_OPTION_DOUBLE,
     .offset = FIELD(train.recipe.lr),
     .metavar = "RATE",
     .help = "learning rate (default: 5e-4 x images a step / 512, as DeiT)",
     .low = 0,
     .high = 1e3,
     .flags = TG_OPTION_SOFT_LOW},
    REAL("weight-decay", train.recipe.weight_decay, "0.05", 0, 1e3, "DECAY",
         "decoupled decay of weight matrices; biases, norms and tokens have none"),
    REAL("opt-eps", train.recipe.eps, "1e-8", 1e-30, 1, "EPS", "AdamW's epsilon"),
    REALS("opt-betas", extra.opt_betas, "0.9,0.999", 0, 0.9999999, "B1 B2", "AdamW's betas"),
    ONE_OF("sched", train.recipe.sched, "cosine", SCHEDULES, "schedule of the learning rate"),
    REAL("warmup-epochs", train.recipe.warmup_epochs, "5", 0, 1e6, "N", "epochs of linear warm-up"),
    REAL("warmup-lr", train.recipe.warmup_lr, "1e-6", 0, 1e3, "RATE",
         "learning rate where warm-up begins"),
    REAL("min-lr", train.recipe.min_lr, "0", 0, 1e3, "RATE",
         "learning rate where the schedule ends"),
    REAL("clip-grad", train.recipe.clip_grad, "0", 0, 1e9, "NORM",
         "clip the gradient to this norm; 0: off"),
    REAL("layer-decay", train.recipe.layer_decay, "1", 0.01, 1, "FACTOR",
         "learning rate of each layer relative to the one above; 1: off"),
    REAL("drop-path", train.model.drop_path, "0", 0, 0.99, "RATE",
         "stochastic depth of the last block"),
    SWITCH("amp", train.recipe.amp,
           "mixed precision: activations in --amp-dtype, everything else in float32"),
    ONE_OF("amp-dtype", extra.amp_dtype, "bfloat16", AMP_DTYPES, "type of activations with --amp"),
    SWITCH("model-ema", train.recipe.model_ema,
           "keep a running average of the weights, and evaluate it"),
    REAL("model-ema-decay", train.recipe.model_ema_decay, "0.9998", 0, 1, "DECAY",
         "decay of that average"),
    WHOLE("seed", train.recipe.seed, "42", 0, 1e15, "N", "seed of every random number"),
};

const tg_option tg_augment_option_table[TG_AUGMENT_OPTION_COUNT] = {
    REALS("scale", extra.scale, "0.08,1", 1e-6, 1, "MIN 1",
          "area of the random crop, from this share to the whole"),
    REALS("ratio", extra.ratio, "0.75,1.3333333333333333", 0.01, 100, "MIN MAX",
          "aspect ratio of the random crop; MAX is 1/MIN"),
    REAL("hflip", train.augment.hflip, "0.5", 0, 1, "P", "probability of a mirror image"),
    REAL("vflip", train.augment.vflip, "0", 0, 1, "P", "probability of turning upside down"),
    REAL("color-jitter", train.augment.color_jitter, "0", 0, 1, "STRENGTH",
         "brightness, contrast and saturation jitter; not used with --aa"),
    TEXT("aa", train.augment.aa, NULL, "POLICY",
         "RandAugment, e.g. rand-m9-mstd0.5-inc1 (default: off)", 0),
    REAL("reprob", train.augment.reprob, "0", 0, 1, "P", "probability of random erasing"),
    REAL("smoothing", train.augment.smoothing, "0.1", 0, 0.999, "SHARE", "label smoothing"),
    REAL("mixup", train.augment.mixup, "0", 0, 100, "ALPHA", "mixup; 0: off"),
    REAL("cutmix", train.augment.cutmix, "0", 0, 100, "ALPHA", "cutmix; 0: off"),
    REAL("mixup-prob", train.augment.mixup_prob, "1", 0, 1, "P",
         "probability that a batch is mixed"),
    REAL("mixup-switch-prob", train.augment.mixup_switch_prob, "0.5", 0, 1, "P",
         "probability of cutmix when both are on"),
    SWITCH("no-aug", train.augment.no_aug,
           "train on evaluation's view of each photo: no crop, flip, colour, erasing or mixing"),
};

const tg_option tg_loader_option_table[TG_LOADER_OPTION_COUNT] = {
    {.name = "workers",
     .letter = 'j',
     .type = TG_OPTION_INT,
     .offset = FIELD(train.data.workers),
     .initial = "auto",
     .metavar = "N|auto",
     .help = "threads that decode photos; auto: train and distill measure in their first steps how "
             "many help; 0: none of their own",
     .low = 0,
     .high = 1024,
     .flags = TG_OPTION_AUTO},
    SWITCH("strict", train.data.strict, "stop at the first photo that cannot be read"),
    REAL("max-bad-share", train.data.max_bad_share, "0.1", 0, 1, "SHARE",
         "stop when more of an epoch's photos than this cannot be read; 0: when any cannot"),
};

const tg_option tg_output_option_table[TG_OUTPUT_OPTION_COUNT] = {
    TEXT("output", train.output.output, NULL, "DIR", "run directory (default: runs/COMMAND-TIME)",
         TG_OPTION_FOLDER),
    TEXT("experiment", extra.experiment, NULL, "NAME", "folder below --output for this run", 0),
    WHOLE("checkpoint-hist", train.output.checkpoint_hist, "1", 1, 1e6, "N",
          "newest checkpoints to keep, last among them, and best besides"),
    WHOLE("checkpoint-steps", train.output.checkpoint_steps, "0", 0, 1e9, "N",
          "save every so many steps as well; 0: at the end of each epoch only"),
    WHOLE("eval-interval", train.output.eval_interval, "1", 0, 1e6, "N",
          "epochs between evaluations; 0: only at the end"),
    WHOLE("steps", train.output.max_steps, "0", 0, 1e12, "N",
          "stop after so many steps, the schedule as it is; 0: no limit"),
    {.name = "trace",
     .type = TG_OPTION_BOOL,
     .offset = FIELD(train.output.trace),
     .initial = "true",
     .help = "record what every operation takes, added up in trace/ of the run directory"},
    TEXT("trace-steps", extra.trace_steps, NULL, "FIRST-LAST",
         "keep timelines of these steps, for Perfetto, in trace/ of the run directory", 0),
    WHOLE(
        "trace-outliers", train.output.trace_outliers, "8", 0, 1000, "N",
        "keep timelines of so many steps that take much longer than the usual, and of those around "
        "them"),
    WHOLE("trace-budget", train.output.trace_budget_mib, "32", 1, 4096, "MIB",
          "size of each rank's timelines at most"),
    WHOLE("monitor-interval", train.output.monitor_interval_ms, "500", 0,
          TG_MONITOR_INTERVAL_MOST_MS, "MS",
          "sample each machine so often (100 to 60000), into system/ of the run directory; 0: off"),
    WHOLE("monitor-budget", train.output.monitor_budget_mib, "64", 1, 1 << 20, "MIB",
          "disk for the samples of a machine; where it is full, old ones are made fewer"),
    SWITCH("tensorboard", extra.tensorboard,
           "write TensorBoard's event files to OUTPUT/tensorboard"),
    TEXT("prometheus", extra.prometheus, NULL, "FILE",
         "keep the job's state in this file, in Prometheus' text format", TG_OPTION_FILE),
};

const tg_option tg_distill_option_table[TG_DISTILL_OPTION_COUNT] = {
    TEXT("teacher", train.distill.teacher, NULL, "MODEL", "frozen model to learn from",
         TG_OPTION_FILE),
    ONE_OF("kd-loss", extra.kd_loss, "kl", KD_LOSSES,
           "soft logits, the teacher's decision, or pooled features"),
    REAL("kd-alpha", train.distill.objective.alpha, "0.5", 0, 1, "SHARE",
         "share of the distillation loss; 1: no labels are needed"),
    REAL("kd-temperature", train.distill.objective.temperature, "4", 0.01, 1000, "T",
         "temperature of the soft logits; the loss is multiplied by its square"),
    ONE_OF("kd-reduction", train.distill.objective.reduction, "batchmean", KD_REDUCTIONS,
           "divide the soft loss by images, or by images and classes"),
};

/* The loader's crop ranges go from a smallest share to 1, and from a ratio to its inverse. */
static tg_status resolve_crop(tg_train_settings *s)
{
    const tg_option_doubles *scale = &s->extra.scale, *ratio = &s->extra.ratio;
    if (scale->count < 1 || scale->count > 2 || (scale->count == 2 && scale->values[1] != 1))
        return tg_fail(TG_ERROR_USAGE, "--scale takes the smallest share and 1, as in 0.08 1");
    if (ratio->count < 1 || ratio->count > 2 || ratio->values[0] > 1 ||
        (ratio->count == 2 && fabs(ratio->values[0] * ratio->values[1] - 1) > 1e-3))
        return tg_fail(TG_ERROR_USAGE, "--ratio takes a ratio up to 1 and its inverse, as in 0.75 "
                                       "1.3333");
    s->train.augment.scale_min = scale->values[0];
    s->train.augment.ratio_min = ratio->values[0];
    return TG_OK;
}

/* One number stands for all three channels. */
static tg_status resolve_channels(const tg_option_doubles *list, const char *name, double out[3],
                                  bool *out_has)
{
    *out_has = list->count > 0;
    if (list->count != 0 && list->count != 1 && list->count != 3)
        return tg_fail(TG_ERROR_USAGE, "--%s takes three numbers, or one for all channels", name);
    for (size_t c = 0; c < 3 && list->count; c++)
        out[c] = list->values[list->count == 3 ? c : 0];
    return TG_OK;
}

static tg_status resolve_output(tg_train_settings *s, const char *command)
{
    char stamp[TG_CLOCK_ISO_BYTES], folder[2048];
    const char *output = s->train.output.output, *experiment = s->extra.experiment;
    struct stat st;
    tg_clock_stamp(stamp);
    if (experiment && (!*experiment || strchr(experiment, '/') || strcmp(experiment, ".") == 0 ||
                       strcmp(experiment, "..") == 0))
        return tg_fail(
            TG_ERROR_USAGE,
            "--experiment %s: it names a folder below --output, without slashes and dots",
            experiment);
    if (!output && s->train.output.resume && strcmp(s->train.output.resume, "auto") == 0)
        return tg_fail(
            TG_ERROR_USAGE,
            "--resume auto looks in --output, and none is given: a new folder would be made "
            "that holds nothing to go on from");
    if (!output)
        snprintf(folder, sizeof folder, "runs/%s-%s", command, stamp);
    int n = snprintf(s->output, sizeof s->output, "%s%s%s", output ? output : folder,
                     experiment ? "/" : "", experiment ? experiment : "");
    if (n < 0 || n >= (int)sizeof s->output)
        return tg_fail(TG_ERROR_USAGE, "--output: the path is longer than %zu bytes",
                       sizeof s->output);
    s->train.output.output = s->output;
    if (stat(s->output, &st) == 0 && !S_ISDIR(st.st_mode))
        return tg_fail(TG_ERROR_USAGE,
                       "--output %s: there is a file of that name; a folder is needed", s->output);
    return TG_OK;
}

/* "3-5" or "4" */
static tg_status resolve_trace(tg_train_settings *s)
{
    const char *text = s->extra.trace_steps;
    int64_t first, last;
    if (!text)
        return TG_OK;
    const size_t n = strcspn(text, "-");
    const char *end = text[n] ? text + n + 1 : text;
    if (!tg_number_parse_i64(text, n, &first) || !tg_number_parse_i64(end, strlen(end), &last) ||
        first < 1 || last < first)
        return tg_fail(TG_ERROR_USAGE, "--trace-steps %s: two numbers of steps, as in 10-12", text);
    s->train.output.trace_first = first;
    s->train.output.trace_last = last;
    return TG_OK;
}

/* 0, or within the monitor's range. */
static tg_status check_monitor(const tg_train_settings *s)
{
    const int64_t ms = s->train.output.monitor_interval_ms;
    if (!tg_monitor_interval_is_good(ms))
        return tg_fail(TG_ERROR_USAGE,
                       "--monitor-interval %lld: from %d to %d milliseconds, or 0 for none",
                       (long long)ms, TG_MONITOR_INTERVAL_LEAST_MS, TG_MONITOR_INTERVAL_MOST_MS);
    return TG_OK;
}

tg_status tg_train_settings_resolve(tg_train_settings *settings, const char *command, int threads,
                                    tg_cpu_level cpu_cap)
{
    tg_train_options *train = &settings->train;
    const tg_train_extra *extra = &settings->extra;
    double ignored;
    TG_TRY(tg_data_choice_share(&train->data, &ignored));
    TG_TRY(resolve_crop(settings));
    TG_TRY(resolve_trace(settings));
    TG_TRY(check_monitor(settings));
    TG_TRY(resolve_channels(&extra->mean, "mean", train->preprocess.mean,
                            &train->preprocess.has_mean));
    TG_TRY(resolve_channels(&extra->std, "std", train->preprocess.std, &train->preprocess.has_std));
    if (extra->opt_betas.count != 2)
        return tg_fail(TG_ERROR_USAGE, "--opt-betas takes two numbers, as in 0.9 0.999");
    train->recipe.beta1 = extra->opt_betas.values[0];
    train->recipe.beta2 = extra->opt_betas.values[1];
    train->preprocess.interpolation = extra->interpolation - 1;
    train->recipe.amp = train->recipe.amp && extra->amp_dtype == 0;
    train->distill.objective.kd =
        train->distill.teacher ? (tg_kd_loss)(extra->kd_loss + 1) : TG_KD_NONE;
    train->threads = threads;
    train->cpu_cap = cpu_cap;
    return resolve_output(settings, command);
}

int tg_train_workers_beside(const void *options, int threads)
{
    tg_train_options copy = *(const tg_train_options *)options;
    copy.threads = threads;
    return tg_train_options_workers(&copy);
}
