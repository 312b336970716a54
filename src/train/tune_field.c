#include "train/tune_field.h"

#include "base/median.h"

#include <math.h>

/* The cheapest setting within this share of the fastest is repeated too: it may turn out a tie. */
#define NEAR 0.95

enum { FINALISTS = 4 };

bool tg_tune_equal(const tg_tune_setting *a, const tg_tune_setting *b)
{
    return a->batch_size == b->batch_size && a->threads == b->threads && a->workers == b->workers &&
           a->bucket_mib == b->bucket_mib;
}

size_t tg_tune_find_row(const tg_tune_result *r, const tg_tune_setting *setting)
{
    for (size_t i = 0; i < r->row_count; i++)
        if (tg_tune_equal(&r->rows[i].setting, setting))
            return i;
    return TG_TUNE_NO_ROW;
}

/* By what is known a trial of `setting` ends in time. The first one always may begin. */
static bool affordable(const tg_tune_hunt *h, const tg_tune_setting *setting, double seconds,
                       double end)
{
    const double now = h->ops->elapsed(h->ops->user);
    if (h->rate <= 0)
        return true;
    const double step = (double)setting->batch_size * h->plan->ranks / h->rate;
    const double timed = seconds < 0 ? 0 : fmax(step, seconds);
    return now + h->overhead_s + step + timed <= end;
}

static void note_trial(tg_tune_row *row, const tg_tune_trial *trial)
{
    row->last = *trial;
    row->fits = trial->fits;
    if (!trial->fits || trial->first_step || row->trials == TG_TUNE_REPEATS)
        return;
    row->rates[row->trials++] = trial->images_per_s;
    row->images_per_s = tg_median(row->rates, row->trials);
    const double half = 0.5 * (row->rates[row->trials - 1] - row->rates[0]);
    const double least = (row->trials > 1 ? 1 : 3) * TG_TUNE_NOISE * row->images_per_s;
    row->noise = half > least ? half : least;
}

tg_status tg_tune_try(tg_tune_hunt *h, tg_tune_stage stage, const tg_tune_setting *setting,
                      double seconds, double end, size_t *out_row)
{
    tg_tune_result *r = h->r;
    size_t row = tg_tune_find_row(r, setting);
    tg_tune_trial trial = {0};
    *out_row = TG_TUNE_NO_ROW;
    if (row == TG_TUNE_NO_ROW && r->row_count == TG_TUNE_ROWS_MAX)
        return TG_OK;
    if (!affordable(h, setting, seconds, end)) {
        r->short_of_time = true;
        return TG_OK;
    }
    const double start = h->ops->elapsed(h->ops->user);
    TG_TRY(h->ops->measure(h->ops->user, setting, seconds, &trial));
    const double end_s = h->ops->elapsed(h->ops->user);
    trial.stage = stage;
    trial.first_step = seconds < 0;
    if (trial.fits && trial.rss_bytes > h->plan->limit_bytes)
        trial.fits = false;
    if (trial.fits && seconds >= 0) {
        h->rate = trial.images_per_s;
        h->overhead_s = end_s - start - trial.seconds - trial.step_s;
    }
    if (row == TG_TUNE_NO_ROW) {
        row = r->row_count++;
        r->rows[row] = (tg_tune_row){.setting = *setting, .stage = stage};
    }
    note_trial(&r->rows[row], &trial);
    *out_row = row;
    return h->ops->told ? h->ops->told(h->ops->user, &trial, end_s / h->plan->max_seconds) : TG_OK;
}

void tg_tune_add(const tg_tune_hunt *h, tg_tune_field *f, size_t row)
{
    if (row == TG_TUNE_NO_ROW || !h->r->rows[row].fits || h->r->rows[row].trials == 0)
        return;
    for (size_t i = 0; i < f->count; i++)
        if (f->rows[i] == row)
            return;
    f->rows[f->count++] = row;
}

/* What a setting costs, where the rate is the same; of buckets, how far from the given size they are. */
static double cost(const tg_tune_hunt *h, tg_tune_stage stage, size_t row)
{
    const tg_tune_setting *setting = &h->r->rows[row].setting;
    switch (stage) {
    case TG_TUNE_BATCH:
        return (double)setting->batch_size;
    case TG_TUNE_WORKERS:
        return setting->workers;
    case TG_TUNE_THREADS:
        return setting->threads;
    default:
        return fabs(log2(setting->bucket_mib / h->base.bucket_mib));
    }
}

bool tg_tune_tie(const tg_tune_row *fastest, const tg_tune_row *row)
{
    const double noise =
        fmin(fmax(fastest->noise, row->noise), TG_TUNE_TIE * fastest->images_per_s);
    return fastest->images_per_s - row->images_per_s <= noise;
}

void tg_tune_sort(const tg_tune_hunt *h, tg_tune_field *f)
{
    const tg_tune_row *rows = h->r->rows;
    for (size_t i = 1; i < f->count; i++)
        for (size_t j = i;
             j > 0 && rows[f->rows[j]].images_per_s > rows[f->rows[j - 1]].images_per_s; j--) {
            const size_t row = f->rows[j];
            f->rows[j] = f->rows[j - 1];
            f->rows[j - 1] = row;
        }
}

/* Leaves the fastest ones, and the cheapest that is near them. */
static void keep_finalists(const tg_tune_hunt *h, tg_tune_stage stage, tg_tune_field *f)
{
    const tg_tune_row *rows = h->r->rows;
    tg_tune_sort(h, f);
    if (f->count <= FINALISTS)
        return;
    size_t cheapest = 0;
    for (size_t i = 1; i < f->count; i++)
        if (rows[f->rows[i]].images_per_s >= NEAR * rows[f->rows[0]].images_per_s &&
            cost(h, stage, f->rows[i]) < cost(h, stage, f->rows[cheapest]))
            cheapest = i;
    if (cheapest >= FINALISTS)
        f->rows[FINALISTS - 1] = f->rows[cheapest];
    f->count = FINALISTS;
}

tg_status tg_tune_repeat(tg_tune_hunt *h, tg_tune_stage stage, const tg_tune_field *f, double end)
{
    size_t ignored;
    for (size_t round = 1; round < TG_TUNE_REPEATS; round++)
        for (size_t i = 0; i < f->count; i++) {
            const tg_tune_row *row = &h->r->rows[f->rows[i]];
            if (row->fits && row->trials <= round)
                TG_TRY(tg_tune_try(h, stage, &row->setting, h->plan->seconds_per_trial, end,
                                   &ignored));
        }
    return TG_OK;
}

static void choose(tg_tune_hunt *h, tg_tune_stage stage, tg_tune_field *f)
{
    const tg_tune_row *rows = h->r->rows;
    tg_tune_sort(h, f);
    if (f->count == 0 || !rows[f->rows[0]].fits)
        return;
    tg_tune_verdict v = {.decided = true, .fastest = f->rows[0], .chosen = f->rows[0]};
    for (size_t i = 1; i < f->count; i++) {
        const tg_tune_row *fastest = &rows[v.fastest], *row = &rows[f->rows[i]];
        if (row->fits && tg_tune_tie(fastest, row) &&
            cost(h, stage, f->rows[i]) < cost(h, stage, v.chosen))
            v.chosen = f->rows[i];
    }
    h->r->verdicts[stage] = v;
    h->r->best = v.chosen;
}

tg_status tg_tune_decide(tg_tune_hunt *h, tg_tune_stage stage, tg_tune_field *f)
{
    keep_finalists(h, stage, f);
    TG_TRY(tg_tune_repeat(h, stage, f, h->ends[stage]));
    choose(h, stage, f);
    return TG_OK;
}
