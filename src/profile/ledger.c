#include "profile/ledger.h"

#include "profile/sane.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static const struct {
    const char *key, *name;
} ROWS[TG_LEDGER_ROWS] = {
    [TG_LEDGER_START] = {"start_up", "start-up"},
    [TG_LEDGER_DATA] = {"data", "waiting for photos"},
    [TG_LEDGER_TEACHER] = {"teacher", "teacher"},
    [TG_LEDGER_FORWARD] = {"forward", "forward and loss"},
    [TG_LEDGER_BACKWARD] = {"backward", "backward"},
    [TG_LEDGER_EXCHANGE] = {"exchange", "exchange, not hidden"},
    [TG_LEDGER_SLOWER] = {"slower_ranks", "waiting for slower ranks"},
    [TG_LEDGER_OPTIMIZER] = {"optimizer", "optimizer"},
    [TG_LEDGER_EVALUATION] = {"evaluation", "evaluation"},
    [TG_LEDGER_CHECKPOINT] = {"checkpoint", "checkpoints"},
    [TG_LEDGER_TUNE] = {"tune", "trying settings"},
    [TG_LEDGER_RECORDS] = {"records", "writing records"},
    [TG_LEDGER_FINISH] = {"finish", "finishing"},
    [TG_LEDGER_REPEATED] = {"repeated", "work lost and repeated"},
    [TG_LEDGER_IDLE] = {"idle", "idle between attempts"},
    [TG_LEDGER_OTHER] = {"other", "other"},
};

const char *tg_ledger_row_key(tg_ledger_row row)
{
    return ROWS[row].key;
}

const char *tg_ledger_row_name(tg_ledger_row row)
{
    return ROWS[row].name;
}

/* NaN, of a part that a file does not have, is nothing. */
static void add(tg_ledger *l, tg_ledger_row row, double seconds)
{
    l->seconds[row] += tg_sane_sum(seconds);
}

/* What is exchange of a wait in step `step`; the others' waits tell. *at: where to look first in the rows. */
static double exchange_of(const tg_history *h, int64_t step, double waited, size_t *at)
{
    while (*at < h->rank_row_count && h->rank_rows[*at].step < step)
        ++*at;
    if (*at == h->rank_row_count || h->rank_rows[*at].step != step)
        return waited;
    const tg_history_rank_row *row = &h->rank_rows[*at];
    double least = waited;
    for (size_t r = 0; r < row->ranks; r++)
        least = fmin(least, row->each[r].t_reduce);
    return fmax(least, 0);
}

static void add_steps(const tg_history *h, tg_ledger *l)
{
    size_t at = 0;
    for (size_t i = 0; i < h->step_count; i++) {
        const tg_step_record *s = &h->steps[i];
        const double exchange = exchange_of(h, s->step, tg_sane_sum(s->t_reduce), &at);
        add(l, TG_LEDGER_DATA, s->t_data);
        add(l, TG_LEDGER_TEACHER, s->t_teacher);
        add(l, TG_LEDGER_FORWARD, s->t_forward);
        add(l, TG_LEDGER_BACKWARD, s->t_backward);
        add(l, TG_LEDGER_EXCHANGE, exchange);
        add(l, TG_LEDGER_SLOWER, s->t_reduce - exchange);
        add(l, TG_LEDGER_OPTIMIZER, s->t_optimizer);
        l->other_steps_s += tg_sane_sum(s->t_other);
    }
    l->steps = (int64_t)h->step_count;
}

static void add_spans(const tg_history *h, tg_ledger *l)
{
    static const tg_ledger_row row_of[TG_SPAN_KINDS] = {[TG_SPAN_ATTEMPT] = TG_LEDGER_ROWS,
                                                        [TG_SPAN_START] = TG_LEDGER_START,
                                                        [TG_SPAN_EVALUATION] = TG_LEDGER_EVALUATION,
                                                        [TG_SPAN_CHECKPOINT] = TG_LEDGER_CHECKPOINT,
                                                        [TG_SPAN_TUNE] = TG_LEDGER_TUNE,
                                                        [TG_SPAN_RECORDS] = TG_LEDGER_RECORDS,
                                                        [TG_SPAN_FINISH] = TG_LEDGER_FINISH,
                                                        [TG_SPAN_DROPPED] = TG_LEDGER_REPEATED,
                                                        [TG_SPAN_END] = TG_LEDGER_ROWS};
    for (size_t i = 0; i < h->span_count; i++) {
        const tg_span *span = &h->spans[i];
        if (row_of[span->kind] != TG_LEDGER_ROWS)
            add(l, row_of[span->kind], span->seconds);
        if (span->kind == TG_SPAN_DROPPED)
            l->dropped += span->step;
    }
}

/* One process of the first rank. */
typedef struct attempt {
    size_t first, end; /* its spans */
    double begin, until;
    bool ended;
} attempt;

/* The attempt whose spans begin at `first`: up to the next line that begins one. */
static attempt find_attempt(const tg_history *h, size_t first)
{
    attempt a = {.first = first, .end = first + 1, .begin = NAN, .until = NAN};
    while (a.end < h->span_count && h->spans[a.end].kind != TG_SPAN_ATTEMPT)
        a.end++;
    for (size_t i = first; i < a.end; i++) {
        const tg_span *span = &h->spans[i];
        const double time = tg_sane_moment(span->time);
        a.ended |= span->kind == TG_SPAN_END;
        if (span->kind == TG_SPAN_DROPPED) /* those are an earlier attempt's */
            continue;
        a.begin = fmin(a.begin, time);
        a.until = fmax(a.until, time + tg_sane_sum(span->seconds));
    }
    return a;
}

/* Steps are told from those of other attempts by their numbers, which no clock can confuse: an attempt goes on behind
 * the number that it began with, and what it did beyond the number of a later one was dropped. */
static void add_step_moments(const tg_history *h, attempt *a)
{
    const int64_t first = h->spans[a->first].step;
    int64_t last = INT64_MAX;
    for (size_t i = a->end; i < h->span_count; i++)
        if (h->spans[i].kind == TG_SPAN_ATTEMPT && h->spans[i].step < last)
            last = h->spans[i].step;
    for (size_t i = 0; i < h->step_count; i++)
        if (h->steps[i].step > first && h->steps[i].step <= last)
            a->until = fmax(a->until, tg_sane_moment(h->steps[i].time));
}

/* What the next attempt dropped this one had done. */
static void add_dropped_moments(const tg_history *h, const attempt *next, attempt *a)
{
    for (size_t i = next->first; i < next->end; i++) {
        const tg_span *span = &h->spans[i];
        if (span->kind != TG_SPAN_DROPPED)
            continue;
        const double time = tg_sane_moment(span->time), begin = isnan(time) ? a->until : time;
        a->until = fmax(a->until, fmin(begin + tg_sane_sum(span->seconds), next->begin));
    }
}

/* The last moment before `before` at which a sample shows the job on the first machine that has samples; NaN: none. */
static double last_sample(const tg_history *h, double after, double before)
{
    double last = NAN;
    for (size_t i = 0; i < h->host_count; i++)
        for (size_t k = 0; k < h->hosts[i].sample_count; k++) {
            const double time = h->hosts[i].samples[k].time;
            if (time > after && time < before)
                last = fmax(last, time);
        }
    return last;
}

/* The time between two attempts. */
static void add_gap(const tg_history *h, const attempt *a, const attempt *next, tg_ledger *l)
{
    const double gap = fmax(next->begin - a->until, 0); /* a clock that was set back: nothing */
    double begun = 0;
    if (!a->ended)
        begun = last_sample(h, a->until, next->begin) - a->until;
    if (isnan(begun))
        begun = 0;
    l->total_s += tg_sane_sum(gap);
    l->killed += !a->ended;
    add(l, TG_LEDGER_REPEATED, begun);
    add(l, TG_LEDGER_IDLE, gap - begun);
}

static void add_attempts(const tg_history *h, tg_ledger *l)
{
    attempt a = {0};
    for (size_t i = 0; i < h->span_count; i = a.end) {
        a = find_attempt(h, i);
        add_step_moments(h, &a);
        if (a.end < h->span_count) {
            const attempt next = find_attempt(h, a.end);
            add_dropped_moments(h, &next, &a);
            add_gap(h, &a, &next, l);
        }
        l->total_s += tg_sane_sum(a.until - a.begin);
        l->begin = fmin(l->begin, a.begin);
        l->end = a.until;
        l->ended = a.ended;
        l->attempts++;
    }
}

/* Steps of a program that wrote no moments, before one that does went on with the run and dropped some of them. */
static double timeless_steps(const tg_history *h)
{
    double seconds = 0;
    const attempt first = find_attempt(h, 0);
    for (size_t i = 0; i < first.end; i++)
        if (h->spans[i].kind == TG_SPAN_DROPPED)
            seconds += tg_sane_sum(h->spans[i].seconds);
    for (size_t i = 0; i < h->step_count; i++)
        if (isnan(h->steps[i].time))
            seconds += tg_sane_sum(h->steps[i].t_step);
    return seconds;
}

/* "2026-01-31T10:00:00.000Z" in seconds since 1970; NaN when it is none. */
static double parse_moment(const char *text)
{
    struct tm utc = {0};
    int ms;
    if (!text || sscanf(text, "%d-%d-%dT%d:%d:%d.%3dZ", &utc.tm_year, &utc.tm_mon, &utc.tm_mday,
                        &utc.tm_hour, &utc.tm_min, &utc.tm_sec, &ms) != 7)
        return NAN;
    utc.tm_year -= 1900;
    utc.tm_mon--;
    return (double)timegm(&utc) + ms / 1e3;
}

static void count_without_spans(const tg_history *h, double known, tg_ledger *l)
{
    l->begin = parse_moment(tg_history_info_text(h, "start"));
    l->end = parse_moment(tg_history_info_text(h, "end"));
    l->ended = !isnan(l->end);
    l->attempts = 1;
    l->total_s = fmax(known, tg_sane_seconds(l->end - l->begin)); /* NaN leaves the other */
    if (!h->step_count)                                           /* it came no further */
        l->seconds[TG_LEDGER_START] = l->total_s;
}

/* All rows but "other". */
static double sum_rows(const tg_ledger *l)
{
    double sum = 0;
    for (int row = 0; row < TG_LEDGER_OTHER; row++)
        sum += l->seconds[row];
    return sum;
}

void tg_ledger_make(const tg_history *history, tg_ledger *out)
{
    tg_ledger l = {.begin = NAN, .end = NAN};
    add_steps(history, &l);
    add_spans(history, &l);
    if (history->span_count) {
        add_attempts(history, &l);
        l.total_s += timeless_steps(history);
    }
    if (!history->span_count)
        count_without_spans(history, sum_rows(&l) + l.other_steps_s, &l);
    const double known = sum_rows(&l);
    l.seconds[TG_LEDGER_OTHER] = fmax(l.total_s - known, 0);
    l.total_s = known + l.seconds[TG_LEDGER_OTHER];
    l.missing = (TG_INPUT_SPANS | TG_INPUT_STEPS) & ~history->inputs;
    if (history->ranks > 1)
        l.missing |= TG_INPUT_RANKS & ~history->inputs;
    *out = l;
}
