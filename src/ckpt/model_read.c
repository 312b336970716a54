#include "ckpt/model_folder.h"
#include "ckpt/model_path.h"
#include "ckpt/config_json.h"
#include "ckpt/weights.h"

#include "base/checked.h"
#include "base/log.h"
#include "base/text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How one entry of the table gets its values. */
typedef enum source { SOURCE_FILE, SOURCE_POSITIONS, SOURCE_WIDE_HEAD, SOURCE_FRESH } source;

typedef struct plan {
    source source;
    size_t pieces;
    const tg_safetensors_entry *piece[TG_NAMING_PIECES];
    size_t file_prefix; /* positions: rows before the grid in the file, and the grid */
    tg_grid file_grid;
} plan;

typedef struct reader {
    tg_weights weights;
    const tg_model_info *info; /* wanted */
    const tg_vit_config *own;  /* of the file */
    const tg_param_table *table;
    bool fresh_head;
    plan *plans;
    tg_text faults; /* one a line */
    size_t missing, mis_shaped, unexpected;
} reader;

static void report(reader *r, size_t *count, const char *kind, const char *name, const char *detail)
{
    ++*count;
    tg_log(TG_LOG_ERROR, "%s: %s %.160s%s", r->weights.file.path, kind, name, detail);
    tg_text_append_format(&r->faults, "\n  %s %.160s%s", kind, name, detail);
}

static void report_shape(reader *r, const tg_safetensors_entry *entry, int ndim,
                         const size_t *shape)
{
    char theirs[TG_SAFETENSORS_SHAPE_BYTES], ours[TG_SAFETENSORS_SHAPE_BYTES],
        detail[2 * TG_SAFETENSORS_SHAPE_BYTES + 32];
    tg_safetensors_shape_text(entry->ndim, entry->shape, theirs);
    tg_safetensors_shape_text(ndim, shape, ours);
    snprintf(detail, sizeof detail, " %s, needed %s", theirs, ours);
    report(r, &r->mis_shaped, "mis-shaped", entry->name, detail);
}

static bool same_shape(const tg_safetensors_entry *entry, int ndim, const size_t *shape)
{
    return entry->ndim == ndim && memcmp(entry->shape, shape, (size_t)ndim * sizeof *shape) == 0;
}

static size_t square_root(size_t n)
{
    size_t root = (size_t)sqrt((double)n);
    return root * root == n ? root : 0;
}

/* The grid that `rows` holds behind `prefix` rows: the file's own image size says it, else it is a
 * square. */
static bool grid_behind(const tg_vit_config *own, size_t rows, size_t prefix, tg_grid *out)
{
    if (rows <= prefix)
        return false;
    tg_grid grid = {own->img_h / own->patch, own->img_w / own->patch};
    if (grid.h * grid.w != rows - prefix)
        grid.h = grid.w = square_root(rows - prefix);
    *out = grid;
    return grid.h > 0;
}

/* Rows before the grid: as in our table, or one for the class token where ours has none (DINOv2
 * with registers keeps it there). */
static bool find_grid(const reader *r, size_t rows, plan *out)
{
    const tg_vit_config *c = &r->info->config;
    size_t ours = c->no_embed_class ? 0 : tg_vit_prefix_tokens(c);
    bool folds = c->no_embed_class && c->class_token;
    size_t first = ours, second = folds ? 1 : ours;
    if (r->weights.kind != TG_HF_NONE)
        first = second = tg_naming_hf_prefix_rows(r->weights.kind);
    else if (r->weights.dinov2_code)
        first = second = 1;
    out->file_prefix = first;
    if (grid_behind(r->own, rows, first, &out->file_grid))
        return true;
    out->file_prefix = second;
    return grid_behind(r->own, rows, second, &out->file_grid);
}

static void plan_positions(reader *r, const tg_param *param, plan *out)
{
    const tg_safetensors_entry *entry = out->piece[0];
    size_t C = param->shape[2];
    out->source = SOURCE_POSITIONS;
    if (entry->ndim != 3 || entry->shape[0] != 1 || entry->shape[2] != C ||
        !find_grid(r, entry->shape[1], out))
        report_shape(r, entry, param->ndim, param->shape);
}

/* DINOv2's classifier reads class token and mean of the patches: [K,2C] for our [K,C]. */
static bool is_wide_head(const reader *r, const tg_param *param, const tg_safetensors_entry *entry)
{
    return (r->weights.kind == TG_HF_DINOV2 || r->weights.kind == TG_HF_DINOV2_REG) &&
           strcmp(param->name, "head.weight") == 0 && entry->ndim == 2 &&
           entry->shape[0] == param->shape[0] && entry->shape[1] == 2 * param->shape[1];
}

static void plan_entry(reader *r, const tg_param *param, plan *out)
{
    char missing[TG_NAMING_BYTES] = "";
    if (r->fresh_head && tg_naming_is_head(param->name)) {
        out->source = SOURCE_FRESH;
        return;
    }
    out->pieces = tg_weights_find(&r->weights, &r->info->config, param->name, out->piece, missing);
    if (out->pieces == 0) {
        report(r, &r->missing, "missing", missing, "");
        return;
    }
    if (strcmp(param->name, "pos_embed") == 0) {
        plan_positions(r, param, out);
        return;
    }
    if (is_wide_head(r, param, out->piece[0])) {
        out->source = SOURCE_WIDE_HEAD;
        return;
    }
    size_t shape[TG_PARAM_MAX_DIMS];
    memcpy(shape, param->shape, sizeof shape);
    shape[0] /= out->pieces;
    for (size_t i = 0; i < out->pieces; i++)
        if (!same_shape(out->piece[i], param->ndim, shape))
            report_shape(r, out->piece[i], param->ndim, shape);
}

/* Heads of the file that are replaced or not wanted are no surprise. */
static bool is_unwanted_head(const reader *r, const char *canonical)
{
    static const char *const theirs[] = {"classifier.", "cls_classifier.",
                                         "distillation_classifier."};
    if (!r->fresh_head && r->info->config.num_classes)
        return false;
    if (r->weights.naming == TG_NAMING_TIMM)
        return tg_naming_is_head(canonical);
    for (size_t i = 0; i < 3; i++)
        if (strncmp(canonical, theirs[i], strlen(theirs[i])) == 0)
            return true;
    return false;
}

static tg_status check_fit(reader *r)
{
    for (size_t i = 0; i < r->table->count; i++)
        plan_entry(r, &r->table->items[i], &r->plans[i]);
    for (size_t i = 0; i < r->weights.file.count; i++)
        if (!r->weights.used[i] && !tg_naming_is_ignored(r->weights.names[i]) &&
            !is_unwanted_head(r, r->weights.names[i]))
            report(r, &r->unexpected, "unexpected", r->weights.file.items[i].name, "");
    if (r->missing + r->mis_shaped + r->unexpected == 0)
        return TG_OK;
    return tg_fail(TG_ERROR_INPUT,
                   "%s: the weights do not fit %s (%zu classes): %zu tensors missing, %zu of "
                   "another shape, %zu unexpected%s",
                   r->weights.file.path, r->info->config.architecture, r->info->config.num_classes,
                   r->missing, r->mis_shaped, r->unexpected, tg_text_string(&r->faults));
}

static tg_status out_of_memory(const reader *r, const char *name)
{
    return tg_fail(TG_ERROR_MACHINE, "%s: out of memory reading %s", r->weights.file.path, name);
}

static bool is_finite(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return (bits & 0x7f800000U) != 0x7f800000U;
}

static tg_status check_finite(const reader *r, const tg_safetensors_entry *entry,
                              const float *values)
{
    size_t bad = 0, first = 0;
    for (size_t i = 0; i < entry->count; i++) /* no early end: this loop is made of vectors */
        bad += !is_finite(values[i]);
    if (bad == 0)
        return TG_OK;
    while (is_finite(values[first]))
        first++;
    return tg_fail(TG_ERROR_INPUT,
                   "%s: tensor %.128s: %zu of its %zu values are not finite (the first is number "
                   "%zu); the model's weights are damaged, or its training diverged",
                   r->weights.file.path, entry->name, bad, entry->count, first);
}

static tg_status read_values(const reader *r, const tg_safetensors_entry *entry, float *out)
{
    TG_TRY(tg_safetensors_read_f32(&r->weights.file, entry, out));
    return check_finite(r, entry, out);
}

/* A tensor in a buffer of its own. */
static tg_status read_apart(const reader *r, const tg_safetensors_entry *entry, float **out)
{
    size_t bytes;
    float *values = NULL;
    if (tg_mul_size(entry->count, sizeof *values, &bytes))
        values = malloc(bytes ? bytes : 1);
    if (!values)
        return out_of_memory(r, entry->name);
    tg_status status = read_values(r, entry, values);
    if (status < 0)
        free(values);
    else
        *out = values;
    return status;
}

static void say_resampled(const reader *r, const plan *p, tg_grid to)
{
    static const char *const rules[] = {"bicubic, antialiased", "bicubic", "bicubic, offset 0.1"};
    if (p->file_grid.h != to.h || p->file_grid.w != to.w)
        tg_log_info("%s: positions resampled from %zux%zu to %zux%zu patches (%s)",
                    r->weights.file.path, p->file_grid.h, p->file_grid.w, to.h, to.w,
                    rules[tg_weights_position_rule(&r->weights, &r->info->config)]);
}

/* The class token's own position, where our table has no row for it, is added to the token: the sum
 * is what enters the first block. */
static tg_status read_positions(const reader *r, const tg_param *param, const plan *p,
                                float *params)
{
    const tg_vit_config *c = &r->info->config;
    const tg_param *cls = tg_param_find(r->table, "cls_token");
    size_t C = c->embed_dim, ours = c->no_embed_class ? 0 : tg_vit_prefix_tokens(c);
    tg_grid to = {c->img_h / c->patch, c->img_w / c->patch};
    float *table = NULL;
    TG_TRY(read_apart(r, p->piece[0], &table));
    size_t dropped = p->file_prefix > ours ? p->file_prefix - ours : 0;
    for (size_t i = 0; dropped && cls && i < C; i++)
        params[cls->offset + i] += table[i];
    tg_status status =
        tg_positions_resample(table + dropped * C, ours, p->file_grid, to, C,
                              tg_weights_position_rule(&r->weights, c), params + param->offset);
    say_resampled(r, p, to);
    free(table);
    return status;
}

static tg_status read_wide_head(const reader *r, const tg_param *param, const plan *p,
                                float *params)
{
    size_t K = param->shape[0], C = param->shape[1];
    float *wide = NULL;
    tg_status status = TG_OK;
    TG_TRY(read_apart(r, p->piece[0], &wide));
    for (size_t k = 0; k < K && status == TG_OK; k++) {
        memcpy(params + param->offset + k * C, wide + 2 * k * C, C * sizeof *wide);
        for (size_t c = 0; c < C; c++)
            if (wide[(2 * k + 1) * C + c] != 0)
                status = TG_ERROR_INPUT;
    }
    free(wide);
    if (status < 0)
        return tg_fail(TG_ERROR_INPUT,
                       "%s: tensor %s also reads the mean of the patches, which is not supported: "
                       "use the model for features or with a fresh head",
                       r->weights.file.path, p->piece[0]->name);
    return TG_OK;
}

static tg_status read_entry(const reader *r, size_t index, uint64_t seed, float *params)
{
    const tg_param *param = &r->table->items[index];
    const plan *p = &r->plans[index];
    switch (p->source) {
    case SOURCE_FRESH:
        tg_vit_init_tensor(&r->info->config, r->table, index, seed, params);
        return TG_OK;
    case SOURCE_POSITIONS:
        return read_positions(r, param, p, params);
    case SOURCE_WIDE_HEAD:
        return read_wide_head(r, param, p, params);
    case SOURCE_FILE:
        break;
    }
    size_t rows = param->count / p->pieces;
    for (size_t i = 0; i < p->pieces; i++)
        TG_TRY(read_values(r, p->piece[i], params + param->offset + i * rows));
    return TG_OK;
}

/* Heads are new when the counts differ or the file has none. */
static bool needs_fresh_head(reader *r, const tg_model_want *want)
{
    const tg_safetensors_entry *found[TG_NAMING_PIECES];
    char missing[TG_NAMING_BYTES];
    if (!want->fresh_head || r->info->config.num_classes == 0)
        return false;
    if (r->own->num_classes == r->info->config.num_classes &&
        tg_weights_find(&r->weights, &r->info->config, "head.weight", found, missing))
        return false;
    tg_log_info("%s: the file has %zu classes, this model %zu: the head%s new",
                r->weights.file.path, r->own->num_classes, r->info->config.num_classes,
                r->info->config.dist_token ? "s are" : " is");
    return true;
}

static tg_status read_all(reader *r, const tg_model_want *want, float *out_params)
{
    r->fresh_head = needs_fresh_head(r, want);
    memset(r->weights.used, 0, r->weights.file.count * sizeof *r->weights.used);
    r->plans = calloc(r->table->count + 1, sizeof *r->plans);
    if (!r->plans)
        return out_of_memory(r, "the plan");
    TG_TRY(check_fit(r));
    memset(out_params, 0, r->table->elements * sizeof *out_params);
    for (size_t i = 0; i < r->table->count; i++)
        TG_TRY(read_entry(r, i, want->seed, out_params));
    return TG_OK;
}

tg_status tg_model_read_weights(const char *path, const tg_model_info *info,
                                const tg_param_table *table, const tg_model_want *want,
                                float *out_params)
{
    tg_model_path place = {0};
    tg_model_info own = {0};
    reader r = {.info = info, .table = table, .own = &own.config, .weights.file.fd = -1};
    tg_status status;
    TG_TRY_GOTO(tg_model_path_find(path, &place), free_all);
    TG_TRY_GOTO(tg_config_json_read(place.folder, &own), free_all);
    TG_TRY_GOTO(tg_model_path_check_weights(&place), free_all);
    TG_TRY_GOTO(tg_weights_open(place.weights, &own, &r.weights), free_all);
    status = read_all(&r, want, out_params);
free_all:
    tg_text_done(&r.faults);
    free(r.plans);
    tg_weights_close(&r.weights);
    tg_model_info_done(&own);
    tg_model_path_done(&place);
    return status;
}
