#include "train/options.h"

#include "base/log.h"
#include "base/number.h"
#include "monitor/monitor.h"
#include "os/file.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <string.h>
#include <strings.h>

tg_train_options tg_train_options_default(void)
{
    return (tg_train_options){
        .model = {.model = "vit_tiny_patch16_224", .reg_tokens = -1, .num_classes = -1},
        .data = {.train_split = "train", .val_split = "val", .workers = -1, .max_bad_share = 0.1},
        .augment = {.scale_min = 0.08,
                    .ratio_min = 0.75,
                    .hflip = 0.5,
                    .smoothing = 0.1,
                    .mixup_prob = 1,
                    .mixup_switch_prob = 0.5},
        .preprocess = {.crop_pct = NAN, .interpolation = -1},
        .recipe = {.epochs = 300,
                   .batch_size = 128,
                   .grad_accum_steps = 1,
                   .lr = NAN,
                   .warmup_lr = 1e-6,
                   .warmup_epochs = 5,
                   .weight_decay = 0.05,
                   .beta1 = 0.9,
                   .beta2 = 0.999,
                   .eps = 1e-8,
                   .layer_decay = 1,
                   .model_ema_decay = 0.9998,
                   .seed = 42},
        .distill = {.objective = {.kd = TG_KD_NONE, .alpha = 0.5, .temperature = 4}},
        .output = {.checkpoint_hist = 1,
                   .eval_interval = 1,
                   .trace = true,
                   .trace_outliers = TG_TRACE_OUTLIERS,
                   .trace_budget_mib = TG_TRACE_BUDGET_MIB,
                   .monitor_interval_ms = TG_MONITOR_INTERVAL_MS,
                   .monitor_budget_mib = TG_MONITOR_BUDGET_MIB},
        .threads = 1,
        .cpu_cap = TG_CPU_LEVEL_COUNT,
    };
}

int tg_train_options_workers(const tg_train_options *options)
{
    if (options->data.workers >= 0)
        return (int)options->data.workers;
    int half = options->threads / 2;
    return half < 1 ? 1 : half > 8 ? 8 : half;
}

/* "0", "-0.1", "10%", "0,1", "nan": meant as a share, whatever it is. */
static bool looks_like_share(const char *text)
{
    return text[strspn(text, "0123456789+-.,%eE")] == '\0' || strcasecmp(text, "nan") == 0 ||
           strcasecmp(text, "inf") == 0;
}

static bool has_folder(const char *root, const char *name)
{
    char path[4096];
    return root && snprintf(path, sizeof path, "%s/%s", root, name) < (int)sizeof path &&
           tg_file_exists(path);
}

bool tg_data_choice_lacks(const tg_data_choice *choice, const char *names,
                          char out[TG_SPLIT_NAME_BYTES])
{
    for (const char *at = names; *at; at += strspn(at, "+")) {
        size_t n = strcspn(at, "+");
        snprintf(out, TG_SPLIT_NAME_BYTES, "%.*s", (int)n, at);
        at += n;
        if (!has_folder(choice->data, out))
            return true;
    }
    return false;
}

tg_status tg_data_choice_share(const tg_data_choice *choice, double *out)
{
    const char *text = choice->val_split;
    char ignored[TG_SPLIT_NAME_BYTES];
    double share;
    *out = 0;
    if (!text || !*text)
        return TG_OK;
    if (tg_number_parse_double(text, strlen(text), &share) && share > 0 && share < 1)
        *out = share;
    else if (looks_like_share(text) && tg_data_choice_lacks(choice, text, ignored))
        return tg_fail(
            TG_ERROR_USAGE,
            "--val-split %s: a share is a number between 0 and 1, like 0.1, and no folder "
            "has that name; --val-split none trains without validation",
            text);
    return TG_OK;
}

tg_status tg_data_choice_train_split(const tg_data_choice *choice, const char **out)
{
    const char *split = choice->train_split ? choice->train_split : "train";
    const bool usual = strcmp(split, "train") == 0;
    char missing[TG_SPLIT_NAME_BYTES];
    if (!tg_file_exists(choice->data))
        return tg_fail(TG_ERROR_INPUT, "--data %s: there is no such folder", choice->data);
    bool lacks = tg_data_choice_lacks(choice, split, missing);
    if (lacks && usual && has_folder(choice->data, "val"))
        return tg_fail(
            TG_ERROR_INPUT,
            "--data %s: it has a folder \"val\", and none called \"train\" to go with it",
            choice->data);
    if (lacks && !usual)
        return tg_fail(TG_ERROR_INPUT, "--train-split %s: %s has no folder \"%s\"", split,
                       choice->data, missing);
    *out = lacks || !*split ? NULL : split;
    return TG_OK;
}

/* `path` with links followed as far as it is there; false when it is too long. */
static bool resolve(const char *path, char out[PATH_MAX])
{
    char cwd[PATH_MAX] = "", full[PATH_MAX], head[PATH_MAX], real[PATH_MAX];
    if (*path != '/' && !getcwd(cwd, sizeof cwd))
        return false;
    if (snprintf(full, sizeof full, "%s/%s", cwd, path) >= (int)sizeof full)
        return false;
    memcpy(head, full, sizeof head);
    size_t n = strlen(head);
    while (!realpath(head, real)) { /* "/" at the latest is there */
        while (n > 1 && head[n - 1] != '/')
            n--;
        while (n > 1 && head[n - 1] == '/')
            n--;
        head[n] = '\0';
    }
    const char *rest = full + n + strspn(full + n, "/");
    return snprintf(out, PATH_MAX, "%s%s%s", real, *rest ? "/" : "", rest) < PATH_MAX;
}

static bool lies_in(const char *path, const char *folder)
{
    char real[PATH_MAX];
    if (!realpath(folder, real))
        return false;
    size_t n = strlen(real);
    return strncmp(path, real, n) == 0 && (path[n] == '/' || path[n] == '\0');
}

tg_status tg_data_choice_check_output(const tg_data_choice *choice, const char *output)
{
    char path[PATH_MAX], split[PATH_MAX];
    const char *const lists[] = {choice->train_split ? choice->train_split : "train",
                                 choice->val_split ? choice->val_split : "val"};
    const char *train;
    double share;
    if (!resolve(output, path) || !lies_in(path, choice->data))
        return TG_OK;
    TG_TRY(tg_data_choice_train_split(choice, &train));
    TG_TRY(tg_data_choice_share(choice, &share));
    bool inside = !train;
    for (size_t i = 0; i < (share > 0 ? 1 : 2) && !inside; i++)
        for (const char *at = lists[i]; *at && !inside; at += strspn(at, "+")) {
            size_t n = strcspn(at, "+");
            inside = snprintf(split, sizeof split, "%s/%.*s", choice->data, (int)n, at) <
                         (int)sizeof split &&
                     lies_in(path, split);
            at += n;
        }
    if (inside)
        return tg_fail(
            TG_ERROR_USAGE,
            "--output %s lies among the photos of --data %s, and would be a class of the "
            "next training; give another",
            output, choice->data);
    tg_log_warning("--output %s lies in --data %s, beside the photos", output, choice->data);
    return TG_OK;
}

tg_network_shape tg_model_choice_shape(const tg_model_choice *choice)
{
    return (tg_network_shape){.img_size = choice->img_size,
                              .patch_size = choice->patch_size,
                              .embed_dim = choice->embed_dim,
                              .depth = choice->depth,
                              .num_heads = choice->num_heads,
                              .reg_tokens = choice->reg_tokens,
                              .global_pool = choice->global_pool,
                              .num_classes = choice->num_classes,
                              .drop_path = choice->drop_path};
}
