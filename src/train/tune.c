#include "train/tune.h"

#include "base/median.h"

#include <math.h>
#include <string.h>

#define MIB 1048576.0

/* Two larger batches in a row below this share of the best: larger ones are not looked at. */
#define DECLINE 0.95
/* The cheapest setting within this share of the fastest is repeated too: it may turn out a tie. */
#define NEAR 0.95

enum {
    FIRST_BATCH =
        4, /* a small one first, which is quick whatever the network and tells its speed */
    WHOLE_FROM = 16, /* batches from here on are multiples of WHOLE */
    WHOLE = 8,
    FINALISTS = 4,
    VALUES_MAX = 16,
    LARGEST_TRIES = 3 /* that memory refuses against the prediction */
};

typedef struct search {
    const tg_tune_plan *plan;
    const tg_tune_ops *ops;
    tg_tune_result *r;
    tg_tune_setting
        base; /* as given, but with all cores where threads are looked for: batch and workers are
                             found beside the most work, and threads go down from there */
    double ends[TG_TUNE_STAGES]; /* when each stage has to be over */
    double begin;                /* of the batches' stage */
    double overhead_s;           /* of the last trial, beside its timed steps */
    double rate;                 /* images/s, as last seen; 0: nothing is known */
} search;

const char *tg_tune_stage_name(tg_tune_stage stage)
{
    static const char *const names[TG_TUNE_STAGES] = {
        [TG_TUNE_BATCH] = "batch",   [TG_TUNE_WORKERS] = "workers", [TG_TUNE_THREADS] = "threads",
        [TG_TUNE_BUCKET] = "bucket", [TG_TUNE_COMPARE] = "compare",
    };
    return names[stage];
}

static int64_t whole(int64_t batch)
{
    return batch >= WHOLE_FROM ? batch / WHOLE * WHOLE : batch;
}

tg_status tg_tune_largest(const tg_tune_ops *ops, const tg_tune_setting *setting, int64_t most,
                          double limit_bytes, int64_t *out)
{
    tg_tune_setting at = *setting;
    int64_t fits = 0, beyond = most + 1;
    double bytes;
    while (beyond - fits > 1) {
        at.batch_size = fits + (beyond - fits) / 2;
        TG_TRY(ops->predict(ops->user, &at, &bytes));
        if (bytes <= limit_bytes)
            fits = at.batch_size;
        else
            beyond = at.batch_size;
    }
    *out = whole(fits);
    return TG_OK;
}

/* Shares of the time; a stage that is not asked for leaves its own to the others. */
static void share_time(search *s)
{
    static const double shares[TG_TUNE_STAGES] = {
        [TG_TUNE_BATCH] = 0.6,   [TG_TUNE_WORKERS] = 0.2, [TG_TUNE_THREADS] = 0.15,
        [TG_TUNE_BUCKET] = 0.15, [TG_TUNE_COMPARE] = 0.1,
    };
    double sum = 0, at = 0;
    for (int i = 0; i < TG_TUNE_STAGES; i++)
        sum += i == TG_TUNE_COMPARE || s->plan->find[i] ? shares[i] : 0;
    for (int i = 0; i < TG_TUNE_STAGES; i++) {
        at += i == TG_TUNE_COMPARE || s->plan->find[i] ? shares[i] : 0;
        s->ends[i] = s->plan->max_seconds * at / sum;
    }
}

static bool is_known(size_t row)
{
    return row != TG_TUNE_NO_ROW;
}

static bool equal(const tg_tune_setting *a, const tg_tune_setting *b)
{
    return a->batch_size == b->batch_size && a->threads == b->threads && a->workers == b->workers &&
           a->bucket_mib == b->bucket_mib;
}

static size_t find_row(const tg_tune_result *r, const tg_tune_setting *setting)
{
    for (size_t i = 0; i < r->row_count; i++)
        if (equal(&r->rows[i].setting, setting))
            return i;
    return TG_TUNE_NO_ROW;
}

/* By what is known a trial of `setting` ends in time. The first one always may begin. */
static bool affordable(const search *s, const tg_tune_setting *setting, double seconds, double end)
{
    const double now = s->ops->elapsed(s->ops->user);
    if (s->rate <= 0)
        return true;
    const double step = (double)setting->batch_size * s->plan->ranks / s->rate;
    const double timed = step > seconds ? step : seconds;
    return now + s->overhead_s + step + timed <= end;
}

static void note_trial(tg_tune_row *row, const tg_tune_trial *trial)
{
    row->last = *trial;
    row->fits = trial->fits;
    if (!trial->fits || row->trials == TG_TUNE_REPEATS)
        return;
    row->rates[row->trials++] = trial->images_per_s;
    row->images_per_s = tg_median(row->rates, row->trials);
    const double half = 0.5 * (row->rates[row->trials - 1] - row->rates[0]);
    const double least = (row->trials > 1 ? 1 : 3) * TG_TUNE_NOISE * row->images_per_s;
    row->noise = half > least ? half : least;
}

/* The row of `setting` with a trial more; TG_TUNE_NO_ROW where time or room for rows is short. */
static tg_status try(search *s, tg_tune_stage stage, const tg_tune_setting *setting, double seconds,
                     double end, size_t *out_row)
{
    tg_tune_result *r = s->r;
    size_t row = find_row(r, setting);
    tg_tune_trial trial = {0};
    *out_row = TG_TUNE_NO_ROW;
    if (row == TG_TUNE_NO_ROW && r->row_count == TG_TUNE_ROWS_MAX)
        return TG_OK;
    if (!affordable(s, setting, seconds, end)) {
        r->short_of_time = true;
        return TG_OK;
    }
    const double start = s->ops->elapsed(s->ops->user);
    TG_TRY(s->ops->measure(s->ops->user, setting, seconds, &trial));
    const double end_s = s->ops->elapsed(s->ops->user);
    trial.stage = stage;
    if (trial.fits && trial.rss_bytes > s->plan->limit_bytes)
        trial.fits = false;
    if (trial.fits) {
        s->rate = trial.images_per_s;
        s->overhead_s = end_s - start - trial.seconds - trial.step_s;
    }
    if (row == TG_TUNE_NO_ROW) {
        row = r->row_count++;
        r->rows[row] = (tg_tune_row){.setting = *setting, .stage = stage};
    }
    note_trial(&r->rows[row], &trial);
    *out_row = row;
    return s->ops->told ? s->ops->told(s->ops->user, &trial, end_s / s->plan->max_seconds) : TG_OK;
}

/* Rows that a stage decides between. */
typedef struct field {
    size_t rows[TG_TUNE_ROWS_MAX];
    size_t count;
} field;

static void add_row(const search *s, field *f, size_t row)
{
    if (row == TG_TUNE_NO_ROW || !s->r->rows[row].fits)
        return;
    for (size_t i = 0; i < f->count; i++)
        if (f->rows[i] == row)
            return;
    f->rows[f->count++] = row;
}

/* What a setting costs, where the rate is the same; of buckets, how far from the given size they are. */
static double cost(const search *s, tg_tune_stage stage, size_t row)
{
    const tg_tune_setting *setting = &s->r->rows[row].setting;
    switch (stage) {
    case TG_TUNE_BATCH:
        return (double)setting->batch_size;
    case TG_TUNE_WORKERS:
        return setting->workers;
    case TG_TUNE_THREADS:
        return setting->threads;
    default:
        return fabs(log2(setting->bucket_mib / s->base.bucket_mib));
    }
}

/* The fastest first. */
static void sort(const search *s, field *f)
{
    const tg_tune_row *rows = s->r->rows;
    for (size_t i = 1; i < f->count; i++)
        for (size_t j = i;
             j > 0 && rows[f->rows[j]].images_per_s > rows[f->rows[j - 1]].images_per_s; j--) {
            const size_t row = f->rows[j];
            f->rows[j] = f->rows[j - 1];
            f->rows[j - 1] = row;
        }
}

/* Leaves the fastest ones, and the cheapest that is near them. */
static void keep_finalists(const search *s, tg_tune_stage stage, field *f)
{
    const tg_tune_row *rows = s->r->rows;
    sort(s, f);
    if (f->count <= FINALISTS)
        return;
    size_t cheapest = 0;
    for (size_t i = 1; i < f->count; i++)
        if (rows[f->rows[i]].images_per_s >= NEAR * rows[f->rows[0]].images_per_s &&
            cost(s, stage, f->rows[i]) < cost(s, stage, f->rows[cheapest]))
            cheapest = i;
    if (cheapest >= FINALISTS)
        f->rows[FINALISTS - 1] = f->rows[cheapest];
    f->count = FINALISTS;
}

/* In turns, until each has its trials or the time is over. */
static tg_status repeat(search *s, tg_tune_stage stage, const field *f, double end)
{
    size_t ignored;
    for (size_t round = 1; round < TG_TUNE_REPEATS; round++)
        for (size_t i = 0; i < f->count; i++) {
            const tg_tune_row *row = &s->r->rows[f->rows[i]];
            if (row->fits && row->trials <= round)
                TG_TRY(try(s, stage, &row->setting, s->plan->seconds_per_trial, end, &ignored));
        }
    return TG_OK;
}

static void decide(search *s, tg_tune_stage stage, field *f)
{
    const tg_tune_row *rows = s->r->rows;
    sort(s, f);
    if (f->count == 0 || !rows[f->rows[0]].fits)
        return;
    tg_tune_verdict v = {.decided = true, .fastest = f->rows[0], .chosen = f->rows[0]};
    for (size_t i = 1; i < f->count; i++) {
        const tg_tune_row *fastest = &rows[v.fastest], *row = &rows[f->rows[i]];
        const double noise = fmax(fastest->noise, row->noise);
        if (row->fits && fastest->images_per_s - row->images_per_s <= noise &&
            cost(s, stage, f->rows[i]) < cost(s, stage, v.chosen))
            v.chosen = f->rows[i];
    }
    s->r->verdicts[stage] = v;
    s->r->best = v.chosen;
}

static tg_status run_finals(search *s, tg_tune_stage stage, field *f)
{
    keep_finalists(s, stage, f);
    TG_TRY(repeat(s, stage, f, s->ends[stage]));
    decide(s, stage, f);
    return TG_OK;
}

static tg_status try_batch(search *s, int64_t batch, double seconds, double end, field *f,
                           size_t *out_row)
{
    tg_tune_setting setting = s->base;
    setting.batch_size = batch;
    const size_t known = find_row(s->r, &setting);
    *out_row = known;
    if (known == TG_TUNE_NO_ROW)
        TG_TRY(try(s, TG_TUNE_BATCH, &setting, seconds, end, out_row));
    add_row(s, f, *out_row);
    if (f->count) { /* what is known when somebody stops the search */
        sort(s, f);
        s->r->best = f->rows[0];
    }
    return TG_OK;
}

/* The moment when `share` of the batches' time is over. */
static double batch_time(const search *s, double share)
{
    return s->begin + share * (s->ends[TG_TUNE_BATCH] - s->begin);
}

/* Powers of two, and the given batch in its place, until larger ones are slower or take too long. */
static tg_status climb(search *s, field *f)
{
    const int64_t given = s->plan->given.batch_size, largest = s->r->largest_batch_size;
    const double end = batch_time(s, 0.45);
    double top = 0;
    int slower = 0;
    size_t row;
    int64_t batch = largest < FIRST_BATCH ? 1 : FIRST_BATCH;
    if (is_known(s->r->best)) /* the second time */
        batch = s->r->rows[s->r->best].setting.batch_size;
    for (; batch <= largest && slower < 2; batch *= 2) {
        if (given > batch / 2 && given < batch)
            TG_TRY(try_batch(s, given, s->plan->seconds_per_trial, end, f, &row));
        TG_TRY(try_batch(s, batch, s->plan->seconds_per_trial, end, f, &row));
        if (row == TG_TUNE_NO_ROW || !s->r->rows[row].fits)
            break;
        const double rate = s->r->rows[row].images_per_s;
        top = fmax(top, rate);
        slower = rate < DECLINE * top ? slower + 1 : 0;
    }
    return TG_OK;
}

/* One trial of the largest batch that fits by prediction; what memory refuses makes it smaller. */
static tg_status verify_largest(search *s, field *f)
{
    const double end = batch_time(s, 0.75);
    double limit = s->plan->limit_bytes;
    size_t row;
    for (int i = 0; i < LARGEST_TRIES && s->r->largest_batch_size > 0; i++) {
        TG_TRY(try_batch(s, s->r->largest_batch_size, 0, end, f, &row));
        s->r->largest = row;
        if (row == TG_TUNE_NO_ROW || s->r->rows[row].fits)
            break;
        const tg_tune_trial *t = &s->r->rows[row].last;
        limit *= t->rss_bytes > limit ? limit / t->rss_bytes : 0.8;
        s->r->largest = TG_TUNE_NO_ROW;
        TG_TRY(tg_tune_largest(s->ops, &s->base, s->r->largest_batch_size - 1, limit,
                               &s->r->largest_batch_size));
    }
    tg_tune_setting at = s->base;
    at.batch_size = s->r->largest_batch_size;
    return s->ops->predict(s->ops->user, &at, &s->r->largest_bytes);
}

static tg_status find_batch(search *s)
{
    field f = {0};
    size_t row;
    add_row(s, &f, s->r->best);
    TG_TRY(climb(s, &f));
    if (s->r->largest == TG_TUNE_NO_ROW)
        TG_TRY(verify_largest(s, &f));
    if (f.count) {
        const int64_t best = s->r->rows[f.rows[0]].setting.batch_size;
        const int64_t between[] = {whole(best * 3 / 4), whole(best * 3 / 2)};
        for (size_t i = 0; i < 2; i++)
            if (best >= WHOLE && between[i] <= s->r->largest_batch_size)
                TG_TRY(try_batch(s, between[i], s->plan->seconds_per_trial, batch_time(s, 0.85), &f,
                                 &row));
    }
    return run_finals(s, TG_TUNE_BATCH, &f);
}

typedef struct values {
    double at[VALUES_MAX];
    size_t count;
} values;

static void add_value(values *v, double value, double least, double most)
{
    if (value < least || value > most || v->count == VALUES_MAX)
        return;
    for (size_t i = 0; i < v->count; i++)
        if (v->at[i] == value)
            return;
    v->at[v->count++] = value;
}

static values values_of(const search *s, tg_tune_stage stage, const tg_tune_setting *now)
{
    const int C = s->plan->cores;
    const int64_t most = C > 2 ? C : 2;
    values v = {0};
    if (stage == TG_TUNE_WORKERS) {
        add_value(&v, now->workers + 1, 1, (double)most);
        for (int64_t n = 1; n <= most && n <= 64; n *= 2)
            add_value(&v, (double)n, 1, (double)most);
        add_value(&v, now->workers - 1, 1, (double)most);
    } else if (stage == TG_TUNE_THREADS) {
        const int some[] = {C, C - 1, C - now->workers, 3 * C / 4, C / 2, C / 4};
        for (size_t i = 0; i < sizeof some / sizeof *some; i++)
            add_value(&v, some[i], 1, C);
    } else {
        static const double mib[] = {1, 4, 16, 64};
        for (size_t i = 0; i < sizeof mib / sizeof *mib; i++)
            add_value(&v, mib[i], 0, INFINITY);
    }
    return v;
}

static void set_value(tg_tune_stage stage, double value, tg_tune_setting *setting)
{
    if (stage == TG_TUNE_WORKERS)
        setting->workers = (int)value;
    else if (stage == TG_TUNE_THREADS)
        setting->threads = (int)value;
    else
        setting->bucket_mib = value;
}

/* Of workers, threads or bucket, with all else as it is now. */
static tg_status find_value(search *s, tg_tune_stage stage)
{
    const tg_tune_setting now = s->r->rows[s->r->best].setting;
    const values v = values_of(s, stage, &now);
    field f = {0};
    size_t row;
    double bytes;
    add_row(s, &f, s->r->best);
    for (size_t i = 0; i < v.count; i++) {
        tg_tune_setting setting = now;
        set_value(stage, v.at[i], &setting);
        TG_TRY(s->ops->predict(s->ops->user, &setting, &bytes));
        if (bytes > s->plan->limit_bytes || equal(&setting, &now))
            continue;
        TG_TRY(try(s, stage, &setting, s->plan->seconds_per_trial, s->ends[stage], &row));
        add_row(s, &f, row);
    }
    return run_finals(s, stage, &f);
}

/* The given setting, where there is one that fits, has as many trials as the best. */
static tg_status compare(search *s)
{
    const double end = s->ends[TG_TUNE_COMPARE];
    field f = {0};
    size_t row = find_row(s->r, &s->plan->given);
    if (row == TG_TUNE_NO_ROW && s->r->given_fits)
        TG_TRY(try(s, TG_TUNE_COMPARE, &s->plan->given, s->plan->seconds_per_trial, end, &row));
    s->r->given = row;
    if (row == TG_TUNE_NO_ROW || row == s->r->best || s->r->best == TG_TUNE_NO_ROW)
        return TG_OK;
    add_row(s, &f, s->r->best);
    add_row(s, &f, row);
    TG_TRY(repeat(s, TG_TUNE_COMPARE, &f, end));
    const tg_tune_row *given = &s->r->rows[row], *best = &s->r->rows[s->r->best];
    if (f.count == 2 &&
        given->images_per_s - best->images_per_s > fmax(given->noise, best->noise)) {
        s->r->verdicts[TG_TUNE_COMPARE] =
            (tg_tune_verdict){.decided = true, .fastest = row, .chosen = row};
        s->r->best = row;
    }
    return TG_OK;
}

/* What fits at all. */
static tg_status look_at_memory(search *s)
{
    const tg_tune_plan *p = s->plan;
    tg_tune_setting least = s->base;
    double bytes;
    TG_TRY(s->ops->predict(s->ops->user, &p->given, &s->r->given_bytes));
    s->r->given_fits = s->r->given_bytes <= p->limit_bytes;
    TG_TRY(tg_tune_largest(s->ops, &s->base, p->most_batch_size, p->limit_bytes,
                           &s->r->largest_batch_size));
    if (!p->find[TG_TUNE_BATCH] && !s->r->given_fits && s->r->largest_batch_size > 0)
        return tg_fail(TG_ERROR_MACHINE,
                       "a batch of %lld needs %.0f MiB, and %.0f MiB may be used: the largest that "
                       "fits is %lld",
                       (long long)p->given.batch_size, s->r->given_bytes / MIB,
                       p->limit_bytes / MIB, (long long)s->r->largest_batch_size);
    if (s->r->largest_batch_size > 0)
        return TG_OK;
    least.batch_size = 1;
    TG_TRY(s->ops->predict(s->ops->user, &least, &bytes));
    return tg_fail(TG_ERROR_MACHINE,
                   "one picture at a time needs %.0f MiB already, and %.0f MiB may be used: a "
                   "smaller --model or --img-size needs less, --amp halves activations, --zero 1 "
                   "with more ranks divides the optimizer's state (tagine plan shows the parts)",
                   bytes / MIB, p->limit_bytes / MIB);
}

/* Batches that waited for photos all look alike: with more workers they are looked at again. */
static tg_status find_batch_again(search *s)
{
    if (s->r->rows[s->r->best].setting.workers <= s->base.workers || !s->plan->find[TG_TUNE_BATCH])
        return TG_OK;
    s->base.workers = s->r->rows[s->r->best].setting.workers;
    s->begin = s->ops->elapsed(s->ops->user);
    s->ends[TG_TUNE_BATCH] = 0.5 * (s->ends[TG_TUNE_WORKERS] + s->ends[TG_TUNE_THREADS]);
    return find_batch(s);
}

static tg_status run(search *s)
{
    field only = {0};
    size_t row;
    TG_TRY(look_at_memory(s));
    if (s->plan->find[TG_TUNE_BATCH]) {
        TG_TRY(find_batch(s));
    } else {
        TG_TRY(try_batch(s, s->plan->given.batch_size, s->plan->seconds_per_trial, INFINITY, &only,
                         &row));
    }
    for (int stage = TG_TUNE_WORKERS; stage < TG_TUNE_COMPARE && is_known(s->r->best); stage++) {
        if (s->plan->find[stage])
            TG_TRY(find_value(s, (tg_tune_stage)stage));
        if (stage == TG_TUNE_WORKERS)
            TG_TRY(find_batch_again(s));
    }
    return compare(s);
}

tg_status tg_tune_search(const tg_tune_plan *plan, const tg_tune_ops *ops, tg_tune_result *out)
{
    search s = {.plan = plan, .ops = ops, .r = out, .base = plan->given};
    *out = (tg_tune_result){
        .best = TG_TUNE_NO_ROW, .given = TG_TUNE_NO_ROW, .largest = TG_TUNE_NO_ROW};
    if (plan->find[TG_TUNE_THREADS])
        s.base.threads = plan->cores;
    share_time(&s);
    tg_status status = run(&s);
    out->stopped = status == TG_ERROR_STOPPED;
    if (out->stopped)
        out->given = find_row(out, &plan->given);
    return status;
}
