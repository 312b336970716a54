/* PreprocessingDiffers: weights that are given other pictures than those that they were made with. */
#include "diagnose/common.h"
#include "diagnose/rules.h"

#include <math.h>
#include <string.h>

enum { NORMALISATION };

static const tg_rule_limit LIMITS[] = {
    {"normalisation", 0.02, 0, 1, "difference of a mean or std from which it is another"},
};

typedef struct view {
    double mean[3], std[3], crop_pct;
    const char *interpolation, *crop_mode;
} view;

static bool read_view(const tg_history *history, const char *path, view *out)
{
    tg_json_node node;
    *out = (view){.crop_pct = NAN};
    if (!tg_common_info_object(history, path, &node))
        return false;
    return tg_json_get_doubles(&node, "mean", TG_REQUIRED, 3, out->mean) == TG_OK &&
           tg_json_get_doubles(&node, "std", TG_REQUIRED, 3, out->std) == TG_OK &&
           tg_json_get_double(&node, "crop_pct", TG_REQUIRED, &out->crop_pct) == TG_OK &&
           tg_json_get_string(&node, "interpolation", TG_REQUIRED, &out->interpolation) == TG_OK &&
           tg_json_get_string(&node, "crop_mode", TG_REQUIRED, &out->crop_mode) == TG_OK;
}

static double largest_difference(const double a[3], const double b[3])
{
    double most = 0;
    for (int i = 0; i < 3; i++)
        most = fmax(most, fabs(a[i] - b[i]));
    return most;
}

static void print_three(const double values[3], char out[TG_FINDING_VALUE])
{
    tg_finding_say(out, TG_FINDING_VALUE, "%.4g %.4g %.4g", values[0], values[1], values[2]);
}

/* The first option that differs, with both values. */
static bool find_difference(const view *used, const view *made, double limit, tg_finding *f)
{
    char old_value[TG_FINDING_VALUE], new_value[TG_FINDING_VALUE];
    const double mean = largest_difference(used->mean, made->mean);
    const double std = largest_difference(used->std, made->std);
    if (mean > limit || std > limit) {
        print_three(mean > limit ? used->mean : used->std, old_value);
        print_three(mean > limit ? made->mean : made->std, new_value);
        tg_finding_set_option(f, mean > limit ? "mean" : "std", old_value, new_value);
    } else if (strcmp(used->interpolation, made->interpolation) != 0) {
        tg_finding_set_option(f, "interpolation", used->interpolation, made->interpolation);
    } else if (fabs(used->crop_pct - made->crop_pct) > limit) {
        tg_finding_set_number(f, "crop-pct", used->crop_pct, made->crop_pct);
    } else {
        return false;
    }
    tg_finding_add_evidence(f, "largest difference of a mean", mean, "");
    tg_finding_add_evidence(f, "largest difference of a std", std, "");
    return true;
}

static tg_status report(const tg_finding *difference, tg_findings *out)
{
    tg_finding *f = tg_findings_add(out, "PreprocessingDiffers", TG_SEVERITY_WARNING);
    if (!f)
        return TG_ERROR_MACHINE;
    *f = *difference;
    f->rule = "PreprocessingDiffers";
    f->severity = strcmp(f->option, "interpolation") == 0 || strcmp(f->option, "crop-pct") == 0
                      ? TG_SEVERITY_NOTE
                      : TG_SEVERITY_WARNING;
    TG_FINDING_SAY(f->title,
                   "the job gives its photos as --%s %s to weights that were made with %s",
                   f->option, f->old_value, f->new_value);
    TG_FINDING_SAY(f->cause,
                   "an option of the job took the place of what the model it starts from says of "
                   "itself (config.json); its first layers see other numbers than they know");
    TG_FINDING_SAY(f->advice, "Leave the option out, and what is stored is taken");
    return TG_OK;
}

/* What a teacher sees comes from its own folder, and validation sees what the model folder says: these cannot differ here. */
static tg_status check(const tg_history *history, const double *limits, tg_findings *out,
                       const char **lack)
{
    view student, stored;
    tg_findings scratch = {0};
    if (!read_view(history, "preprocess.student", &student)) {
        tg_error_clear();
        *lack = "how photos became inputs (run.json, preprocess)";
        return TG_END;
    }
    if (!read_view(history, "preprocess.stored", &stored)) {
        tg_error_clear();
        return TG_OK; /* weights were made anew */
    }
    tg_finding *f = tg_findings_add(&scratch, "PreprocessingDiffers", TG_SEVERITY_WARNING);
    tg_status status = f ? TG_OK : TG_ERROR_MACHINE;
    if (f && find_difference(&student, &stored, limits[NORMALISATION], f))
        status = report(f, out);
    tg_findings_done(&scratch);
    return status;
}

const tg_rule tg_rule_preprocessing_differs = {
    .name = "PreprocessingDiffers",
    .asks = "whether weights are given other pictures than those that they were made with",
    .needs = TG_INPUT_INFO,
    .limits = LIMITS,
    .limit_count = sizeof LIMITS / sizeof *LIMITS,
    .check = check,
};
