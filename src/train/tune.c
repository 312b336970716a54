#include "train/tune_field.h"

#include <math.h>

#define MIB 1048576.0

/* Two larger batches in a row below this share of the best: larger ones are not looked at. */
#define DECLINE 0.95

enum {
    FIRST_BATCH = 4, /* small: quick whatever the network, and tells its speed */
    WHOLE_FROM = 16, /* batches from here on are multiples of WHOLE */
    WHOLE = 8,
    VALUES_MAX = 16,
    LARGEST_TRIES = 3 /* that memory refuses against the prediction */
};

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
static void share_time(tg_tune_hunt *h)
{
    static const double shares[TG_TUNE_STAGES] = {
        [TG_TUNE_BATCH] = 0.6,   [TG_TUNE_WORKERS] = 0.2, [TG_TUNE_THREADS] = 0.15,
        [TG_TUNE_BUCKET] = 0.15, [TG_TUNE_COMPARE] = 0.1,
    };
    double sum = 0, at = 0;
    for (int i = 0; i < TG_TUNE_STAGES; i++)
        sum += i == TG_TUNE_COMPARE || h->plan->find[i] ? shares[i] : 0;
    for (int i = 0; i < TG_TUNE_STAGES; i++) {
        at += i == TG_TUNE_COMPARE || h->plan->find[i] ? shares[i] : 0;
        h->ends[i] = h->plan->max_seconds * at / sum;
    }
}

/* A trial of a batch, unless it has had one; the fastest of the field is the best for now. */
static tg_status try_batch(tg_tune_hunt *h, int64_t batch, double seconds, double end,
                           tg_tune_field *f, size_t *out_row)
{
    tg_tune_setting setting = h->base;
    setting.batch_size = batch;
    const size_t known = tg_tune_find_row(h->r, &setting);
    *out_row = known;
    if (known == TG_TUNE_NO_ROW || (h->r->rows[known].fits && h->r->rows[known].trials == 0))
        TG_TRY(tg_tune_try(h, TG_TUNE_BATCH, &setting, seconds, end, out_row));
    tg_tune_add(h, f, *out_row);
    if (f->count) { /* what is known when somebody stops the search */
        tg_tune_sort(h, f);
        h->r->best = f->rows[0];
    }
    return TG_OK;
}

/* The moment when `share` of the batches' time is over. */
static double batch_time(const tg_tune_hunt *h, double share)
{
    return h->begin + share * (h->ends[TG_TUNE_BATCH] - h->begin);
}

/* Powers of two, and the given batch in its place, until larger ones are slower or take too long. */
static tg_status climb(tg_tune_hunt *h, tg_tune_field *f)
{
    const int64_t given = h->plan->given.batch_size, largest = h->r->largest_batch_size;
    const double end = batch_time(h, 0.45);
    double top = 0;
    int slower = 0;
    size_t row;
    int64_t batch = largest < FIRST_BATCH ? 1 : FIRST_BATCH;
    if (tg_tune_is_known(h->r->best)) /* the second time */
        batch = h->r->rows[h->r->best].setting.batch_size;
    for (; batch <= largest && slower < 2; batch *= 2) {
        if (given > batch / 2 && given < batch)
            TG_TRY(try_batch(h, given, h->plan->seconds_per_trial, end, f, &row));
        TG_TRY(try_batch(h, batch, h->plan->seconds_per_trial, end, f, &row));
        if (row == TG_TUNE_NO_ROW || !h->r->rows[row].fits)
            break;
        const double rate = h->r->rows[row].images_per_s;
        top = fmax(top, rate);
        slower = rate < DECLINE * top ? slower + 1 : 0;
    }
    if (batch > largest)
        TG_TRY(try_batch(h, largest, h->plan->seconds_per_trial, end, f, &row));
    return TG_OK;
}

/* A step with the largest batch that fits by prediction, if it ends in time; what memory refuses makes it smaller. */
static tg_status verify_largest(tg_tune_hunt *h, double end)
{
    tg_tune_setting at = h->base;
    double limit = h->plan->limit_bytes;
    for (int i = 0; i < LARGEST_TRIES && h->r->largest_batch_size > 0; i++) {
        at.batch_size = h->r->largest_batch_size;
        size_t row = tg_tune_find_row(h->r, &at);
        if (row == TG_TUNE_NO_ROW)
            TG_TRY(tg_tune_try(h, TG_TUNE_BATCH, &at, -1, end, &row));
        h->r->largest = row;
        if (row == TG_TUNE_NO_ROW || h->r->rows[row].fits)
            break;
        const tg_tune_trial *t = &h->r->rows[row].last;
        limit *= t->rss_bytes > limit ? limit / t->rss_bytes : 0.8;
        h->r->largest = TG_TUNE_NO_ROW;
        TG_TRY(tg_tune_largest(h->ops, &h->base, h->r->largest_batch_size - 1, limit,
                               &h->r->largest_batch_size));
    }
    at.batch_size = h->r->largest_batch_size;
    return h->ops->predict(h->ops->user, &at, &h->r->largest_bytes);
}

static tg_status find_batch(tg_tune_hunt *h)
{
    tg_tune_field f = {0};
    size_t row;
    tg_tune_add(h, &f, h->r->best);
    TG_TRY(climb(h, &f));
    if (h->r->largest == TG_TUNE_NO_ROW)
        TG_TRY(verify_largest(h, batch_time(h, 0.75)));
    if (h->r->largest != TG_TUNE_NO_ROW && f.count) /* for its speed, if there is time for it */
        TG_TRY(try_batch(h, h->r->largest_batch_size, h->plan->seconds_per_trial,
                         batch_time(h, 0.6), &f, &row));
    if (f.count) {
        const int64_t best = h->r->rows[f.rows[0]].setting.batch_size;
        const int64_t between[] = {whole(best * 3 / 4), whole(best * 3 / 2)};
        for (size_t i = 0; i < 2; i++)
            if (best >= WHOLE && between[i] <= h->r->largest_batch_size)
                TG_TRY(try_batch(h, between[i], h->plan->seconds_per_trial, batch_time(h, 0.7), &f,
                                 &row));
    }
    return tg_tune_decide(h, TG_TUNE_BATCH, &f);
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

static values values_of(const tg_tune_hunt *h, tg_tune_stage stage, const tg_tune_setting *now)
{
    const int C = h->plan->cores;
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
static tg_status find_value(tg_tune_hunt *h, tg_tune_stage stage)
{
    const tg_tune_setting now = h->r->rows[h->r->best].setting;
    const values v = values_of(h, stage, &now);
    tg_tune_field f = {0};
    size_t row;
    double bytes;
    tg_tune_add(h, &f, h->r->best);
    for (size_t i = 0; i < v.count; i++) {
        tg_tune_setting setting = now;
        set_value(stage, v.at[i], &setting);
        TG_TRY(h->ops->predict(h->ops->user, &setting, &bytes));
        if (bytes > h->plan->limit_bytes || tg_tune_equal(&setting, &now))
            continue;
        TG_TRY(tg_tune_try(h, stage, &setting, h->plan->seconds_per_trial, h->ends[stage], &row));
        tg_tune_add(h, &f, row);
    }
    return tg_tune_decide(h, stage, &f);
}

/* The fastest row by all trials that there are. */
static size_t fastest_row(const tg_tune_hunt *h)
{
    tg_tune_field all = {0};
    for (size_t i = 0; i < h->r->row_count; i++)
        tg_tune_add(h, &all, i);
    tg_tune_sort(h, &all);
    return all.count ? all.rows[0] : TG_TUNE_NO_ROW;
}

/* By all trials that there are now the fastest may be another one; the given one instead, where it ties with that. */
static void change_mind(tg_tune_hunt *h)
{
    size_t row = fastest_row(h);
    if (row == TG_TUNE_NO_ROW || tg_tune_tie(&h->r->rows[row], &h->r->rows[h->r->best]))
        return;
    const size_t given = h->r->given;
    if (tg_tune_is_known(given) && h->r->rows[given].fits &&
        tg_tune_tie(&h->r->rows[row], &h->r->rows[given]))
        row = given;
    h->r->verdicts[TG_TUNE_COMPARE] =
        (tg_tune_verdict){.decided = true, .fastest = row, .chosen = row};
    h->r->best = row;
}

/* What the stages took beside the settings given and whatever looks faster by now: a setting that was decided on with
 * few trials, for lack of time, has more behind it then. */
static tg_status compare(tg_tune_hunt *h)
{
    const double end = h->ends[TG_TUNE_COMPARE];
    tg_tune_field f = {0};
    size_t given = tg_tune_find_row(h->r, &h->plan->given);
    if (given == TG_TUNE_NO_ROW && h->r->given_fits)
        TG_TRY(tg_tune_try(h, TG_TUNE_COMPARE, &h->plan->given, h->plan->seconds_per_trial, end,
                           &given));
    h->r->given = given;
    tg_tune_add(h, &f, h->r->best);
    tg_tune_add(h, &f, given);
    tg_tune_add(h, &f, fastest_row(h));
    if (f.count > 1)
        TG_TRY(tg_tune_repeat(h, TG_TUNE_COMPARE, &f, end));
    if (h->plan->find[TG_TUNE_BATCH] && h->r->largest == TG_TUNE_NO_ROW)
        TG_TRY(verify_largest(h, end));
    if (h->r->best != TG_TUNE_NO_ROW)
        change_mind(h);
    return TG_OK;
}

/* What fits at all. */
static tg_status look_at_memory(tg_tune_hunt *h)
{
    const tg_tune_plan *p = h->plan;
    tg_tune_setting least = h->base;
    double bytes;
    TG_TRY(h->ops->predict(h->ops->user, &p->given, &h->r->given_bytes));
    h->r->given_fits = h->r->given_bytes <= p->limit_bytes;
    TG_TRY(tg_tune_largest(h->ops, &h->base, p->most_batch_size, p->limit_bytes,
                           &h->r->largest_batch_size));
    least.batch_size = h->r->largest_batch_size > 0 ? h->r->largest_batch_size : 1;
    TG_TRY(h->ops->predict(h->ops->user, &least, &bytes));
    h->r->largest_bytes = bytes;
    if (!p->find[TG_TUNE_BATCH] && !h->r->given_fits && h->r->largest_batch_size > 0)
        return tg_fail(TG_ERROR_MACHINE,
                       "a batch of %lld needs %.0f MiB, and %.0f MiB may be used: the largest that "
                       "fits is %lld",
                       (long long)p->given.batch_size, h->r->given_bytes / MIB,
                       p->limit_bytes / MIB, (long long)h->r->largest_batch_size);
    if (h->r->largest_batch_size > 0)
        return TG_OK;
    return tg_fail(TG_ERROR_MACHINE,
                   "one picture at a time needs %.0f MiB already, and %.0f MiB may be used: a "
                   "smaller --model or --img-size needs less, --amp halves activations, --zero 1 "
                   "with more ranks divides the optimizer's state (tagine plan shows the parts)",
                   bytes / MIB, p->limit_bytes / MIB);
}

/* Batches that waited for photos all look alike: with more workers they are looked at again. */
static tg_status find_batch_again(tg_tune_hunt *h)
{
    if (h->r->rows[h->r->best].setting.workers <= h->base.workers || !h->plan->find[TG_TUNE_BATCH])
        return TG_OK;
    h->base.workers = h->r->rows[h->r->best].setting.workers;
    h->begin = h->ops->elapsed(h->ops->user);
    h->ends[TG_TUNE_BATCH] = 0.5 * (h->ends[TG_TUNE_WORKERS] + h->ends[TG_TUNE_THREADS]);
    return find_batch(h);
}

static tg_status run(tg_tune_hunt *h)
{
    tg_tune_field only = {0};
    size_t row;
    TG_TRY(look_at_memory(h));
    if (h->plan->find[TG_TUNE_BATCH]) {
        TG_TRY(find_batch(h));
    } else {
        TG_TRY(try_batch(h, h->plan->given.batch_size, h->plan->seconds_per_trial, INFINITY, &only,
                         &row));
    }
    for (int stage = TG_TUNE_WORKERS; stage < TG_TUNE_COMPARE && tg_tune_is_known(h->r->best);
         stage++) {
        if (h->plan->find[stage])
            TG_TRY(find_value(h, (tg_tune_stage)stage));
        if (stage == TG_TUNE_WORKERS)
            TG_TRY(find_batch_again(h));
    }
    return compare(h);
}

tg_status tg_tune_search(const tg_tune_plan *plan, const tg_tune_ops *ops, tg_tune_result *out)
{
    tg_tune_hunt h = {.plan = plan, .ops = ops, .r = out, .base = plan->given};
    *out = (tg_tune_result){
        .best = TG_TUNE_NO_ROW, .given = TG_TUNE_NO_ROW, .largest = TG_TUNE_NO_ROW};
    if (plan->find[TG_TUNE_THREADS])
        h.base.threads = plan->cores;
    share_time(&h);
    tg_status status = run(&h);
    out->stopped = status == TG_ERROR_STOPPED;
    if (out->stopped)
        out->given = tg_tune_find_row(out, &plan->given);
    return status;
}
