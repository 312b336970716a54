/* What was set differently, and on what it ran. */
#include "report/compare_parts.h"

#include "base/number.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Where records go and what is said, and when a run stops: no step takes longer for them. */
static const char *const NO_TIME[] = {"output",
                                      "resume",
                                      "experiment",
                                      "json",
                                      "quiet",
                                      "verbose",
                                      "epochs",
                                      "steps",
                                      "eval-interval",
                                      "checkpoint-hist",
                                      "seed",
                                      "max-bad-share",
                                      "strict",
                                      "tensorboard",
                                      "prometheus",
                                      "trace-steps",
                                      "monitor-budget",
                                      "lr",
                                      "weight-decay",
                                      "sched",
                                      "warmup-epochs",
                                      "warmup-lr",
                                      "min-lr",
                                      "opt-eps",
                                      "opt-betas",
                                      "smoothing",
                                      "kd-alpha",
                                      "kd-temperature",
                                      "checkpoint-steps"};
/* Not even worth a line. */
static const char *const NOTHING[] = {"output", "resume", "experiment", "json", "quiet", "verbose"};

static bool is_in(const char *const *names, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}
#define IS_IN(names, name) is_in(names, sizeof(names) / sizeof((names)[0]), name)

bool tg_compare_same_value(const char *a, const char *b)
{
    double x, y;
    if (strcmp(a, b) == 0)
        return true;
    return tg_number_parse_double(a, strlen(a), &x) && tg_number_parse_double(b, strlen(b), &y) &&
           x == y;
}

void tg_compare_effective(const tg_history *history, const char *option, char out[64])
{
    const char *text = tg_history_option(history, option);
    const double number = tg_history_info_number(history, option); /* "workers", "threads" */
    const bool counted = strcmp(option, "workers") == 0 || strcmp(option, "threads") == 0;
    if (counted && !isnan(number) && (!text || strcmp(text, "auto") == 0))
        snprintf(out, 64, "%.0f", number);
    else
        snprintf(out, 64, "%s", text ? text : "-");
}

/* A value as it is shown: a list in one line. */
static void value_of(const tg_history *history, const tg_yaml_node *node, char out[64])
{
    size_t at = 0;
    if (node->kind == TG_YAML_SCALAR) {
        tg_compare_effective(history, node->key, out);
        return;
    }
    snprintf(out, 64, "-");
    for (const tg_yaml_node *n = node->first; n && at < 60; n = n->next) {
        const int wrote =
            snprintf(out + at, 64 - at, "%s%s", at ? " " : "", n->text ? n->text : "-");
        at += wrote > 0 ? (size_t)wrote : 0;
    }
}

static tg_status add(tg_comparison *c, const char *name, const char *a, const char *b, bool option)
{
    if (tg_compare_same_value(a, b))
        return TG_OK;
    tg_compare_setting *settings = tg_compare_more(c->settings, c->setting_count, sizeof *settings);
    if (!settings)
        return TG_ERROR_MACHINE;
    c->settings = settings;
    tg_compare_setting *s = &settings[c->setting_count++];
    *s = (tg_compare_setting){.option = option, .time = !IS_IN(NO_TIME, name)};
    snprintf(s->name, sizeof s->name, "%s", name);
    snprintf(s->a, sizeof s->a, "%s", a);
    snprintf(s->b, sizeof s->b, "%s", b);
    return TG_OK;
}

static tg_status add_option(tg_comparison *c, const tg_history *a, const tg_history *b,
                            const tg_yaml_node *in_a, const tg_yaml_node *in_b)
{
    char value_a[64] = "-", value_b[64] = "-";
    const char *name = in_a ? in_a->key : in_b->key;
    if (IS_IN(NOTHING, name))
        return TG_OK;
    if (in_a)
        value_of(a, in_a, value_a);
    if (in_b)
        value_of(b, in_b, value_b);
    return add(c, name, value_a, value_b, true);
}

static tg_status add_options(tg_comparison *c, const tg_history *a, const tg_history *b)
{
    if (!a->options.root || !b->options.root)
        return TG_OK;
    for (const tg_yaml_node *n = a->options.root->first; n; n = n->next)
        TG_TRY(add_option(c, a, b, n, tg_yaml_find(b->options.root, n->key)));
    for (const tg_yaml_node *n = b->options.root->first; n; n = n->next)
        if (!tg_yaml_find(a->options.root, n->key))
            TG_TRY(add_option(c, a, b, NULL, n));
    return TG_OK;
}

static void info_of(const tg_history *history, const char *path, char out[64])
{
    const char *text = tg_history_info_text(history, path);
    const double number = tg_history_info_number(history, path);
    if (text)
        snprintf(out, 64, "%s", text);
    else if (!isnan(number))
        tg_number_print(out, 64, "%.10g", number);
    else
        snprintf(out, 64, "-");
}

/* The count that an option of that name says already is left out. */
static tg_status add_info(tg_comparison *c, const tg_history *a, const tg_history *b)
{
    static const char *const PATHS[][2] = {
        {"version", "version"},
        {"machine.host", "host"},
        {"machine.cpu", "processor"},
        {"machine.memory_bytes", "memory"},
        {"cgroup.usable_cpus", "usable cores"},
        {"cgroup.memory_limit_bytes", "memory limit"},
        {"kernels.instruction_set", "instruction set"},
        {"ranks", "ranks"},
        {"data.train_images", "training photos"},
    };
    for (size_t i = 0; i < sizeof PATHS / sizeof PATHS[0]; i++) {
        char value_a[64], value_b[64];
        info_of(a, PATHS[i][0], value_a);
        info_of(b, PATHS[i][0], value_b);
        if (strcmp(value_a, "-") == 0 || strcmp(value_b, "-") == 0)
            continue;
        TG_TRY(add(c, PATHS[i][1], value_a, value_b, false));
    }
    return TG_OK;
}

tg_status tg_compare_settings(const tg_history *a, const tg_history *b, tg_comparison *c)
{
    TG_TRY(add_options(c, a, b));
    return add_info(c, a, b);
}
