#include "report/live_parts.h"

#include "os/file.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LOG_BYTES (UINT64_C(256) << 10)
/* Of ranks, means over about so many steps. */
#define RANK_STEPS 16

static void forget_steps(tg_live *live)
{
    live->step_count = live->eval_count = 0;
    live->loss = live->rate = live->top1 = (tg_series){0};
}

static void take_step(tg_live *live, const tg_step_record *step)
{
    live->steps[live->step_count++ % TG_LIVE_STEPS] = *step;
    tg_series_add(&live->loss, step->loss);
    tg_series_add(&live->rate, step->images_per_s);
    if (live->visit.step)
        live->visit.step(live->visit.user, step);
}

static void take_eval(tg_live *live, const tg_eval_record *eval)
{
    if (!live->eval_count || eval->val_top1 > live->best.val_top1)
        live->best = *eval;
    live->eval = *eval;
    live->eval_count++;
    tg_series_add(&live->top1, eval->val_top1);
    if (live->visit.eval)
        live->visit.eval(live->visit.user, eval);
}

static void take_record(void *user, const tg_step_record *step, const tg_eval_record *eval)
{
    if (step)
        take_step(user, step);
    if (eval)
        take_eval(user, eval);
}

static tg_status metrics_line(void *user, const char *line, size_t length)
{
    if (!line)
        forget_steps(user);
    else
        (void)tg_metrics_take(line, length, take_record, user);
    return TG_OK;
}

static void take_rank(tg_live_rank *rank, const tg_rank_step *step, double weight)
{
    const double phases[TG_LIVE_PHASES] = {step->t_data,     step->t_teacher, step->t_forward,
                                           step->t_backward, step->t_reduce,  step->t_optimizer,
                                           step->t_other};
    for (int p = 0; p < TG_LIVE_PHASES; p++)
        rank->phases[p] += weight * (phases[p] - rank->phases[p]);
    rank->t_step += weight * (step->t_step - rank->t_step);
}

/* Another number of ranks (a resumed run) begins anew; without memory for it nothing is said of ranks. */
static void take_ranks(void *user, int64_t step, const tg_rank_step *each, size_t ranks)
{
    tg_live *live = user;
    (void)step;
    if (ranks != live->rank_count) {
        free(live->ranks);
        live->ranks = calloc(ranks + 1, sizeof *live->ranks);
        live->rank_count = live->ranks ? ranks : 0;
        live->rank_rows = 0;
    }
    live->rank_rows++;
    const double weight =
        1.0 / (double)(live->rank_rows < RANK_STEPS ? live->rank_rows : RANK_STEPS);
    for (size_t r = 0; r < live->rank_count; r++)
        take_rank(&live->ranks[r], &each[r], weight);
}

static tg_status ranks_line(void *user, const char *line, size_t length)
{
    tg_live *live = user;
    if (!line)
        live->rank_rows = 0;
    else
        (void)tg_rank_steps_take(line, length, take_ranks, live);
    return TG_OK;
}

static void take_span(void *user, const tg_span *span)
{
    tg_live *live = user;
    live->spans[live->span_count++ % TG_LIVE_SPANS] = *span;
    if (span->kind != TG_SPAN_ATTEMPT)
        return;
    live->attempt = span->attempt;
    live->attempt_begin = span->time;
    live->attempt_step = span->step;
}

static tg_status spans_line(void *user, const char *line, size_t length)
{
    tg_live *live = user;
    if (!line)
        live->span_count = 0;
    else
        (void)tg_spans_take(line, length, take_span, live);
    return TG_OK;
}

/* "2026-03-09T14:05:07.123Z warning a photo ..." */
static tg_status log_line(void *user, const char *line, size_t length)
{
    tg_live *live = user;
    const char *level = line ? memchr(line, ' ', length) : NULL;
    if (!line)
        live->warning_count = 0;
    if (!level || (strncmp(level, " warning ", 9) != 0 && strncmp(level, " error ", 7) != 0))
        return TG_OK;
    char *to = live->warnings[live->warning_count++ % TG_LIVE_WARNINGS];
    const size_t n = length - 1 < TG_LIVE_TEXT - 1 ? length - 1 : TG_LIVE_TEXT - 1;
    memcpy(to, line, n);
    to[n] = '\0';
    return TG_OK;
}

static tg_status open_files(tg_live *live)
{
    const char *path = live->path;
    TG_TRY(tg_tail_open(path, "metrics.jsonl", TG_LIVE_METRICS_BYTES, &live->metrics));
    TG_TRY(tg_tail_open(path, "ranks.jsonl", LOG_BYTES, &live->ranks_file));
    TG_TRY(tg_tail_open(path, "spans.jsonl", 0, &live->spans_file));
    return tg_tail_open(path, "log/rank-0.log", LOG_BYTES, &live->log);
}

/* Before a job's first record there are but its folders. */
static bool is_run(const char *path)
{
    static const char *const NAMES[] = {"run.json", "metrics.jsonl", "lock", "system"};
    bool found = false;
    for (size_t i = 0; i < sizeof NAMES / sizeof NAMES[0] && !found; i++) {
        char *file = tg_path_join(path, NAMES[i]);
        found = file && tg_file_exists(file);
        free(file);
    }
    return found;
}

tg_status tg_live_open(const char *path, const tg_live_visit *visit, tg_live *out)
{
    if (!tg_file_exists(path))
        return tg_fail(TG_ERROR_INPUT, "%s: %s", path, strerrordesc_np(ENOENT));
    if (!is_run(path))
        return tg_fail(TG_ERROR_INPUT, "%s: no run directory: neither run.json nor records", path);
    *out = (tg_live){
        .attempt_begin = NAN, .info.name = "run.json", .findings_file.name = "findings.json"};
    if (visit)
        out->visit = *visit;
    out->path = strdup(path);
    tg_status status = out->path ? open_files(out) : tg_fail(TG_ERROR_MACHINE, "out of memory");
    if (status < 0)
        tg_live_close(out);
    return status;
}

void tg_live_close(tg_live *live)
{
    tg_tail_close(&live->metrics);
    tg_tail_close(&live->ranks_file);
    tg_tail_close(&live->spans_file);
    tg_tail_close(&live->log);
    tg_live_close_hosts(live);
    tg_live_close_documents(live);
    free(live->ranks);
    free(live->path);
    *live = (tg_live){0};
}

static tg_status look_at(tg_tail *tail, tg_lines_visit visit, tg_live *live, bool *io_news)
{
    bool news;
    TG_TRY(tg_tail_read(tail, visit, live, &news));
    *io_news = *io_news || news;
    return TG_OK;
}

tg_status tg_live_look(tg_live *live, double now, bool *out_news)
{
    bool news = false;
    live->now = now;
    TG_TRY(tg_live_look_at_documents(live, &news)); /* first: what comes next may need it */
    TG_TRY(look_at(&live->spans_file, spans_line, live, &news));
    TG_TRY(look_at(&live->metrics, metrics_line, live, &news));
    TG_TRY(look_at(&live->ranks_file, ranks_line, live, &news));
    TG_TRY(look_at(&live->log, log_line, live, &news));
    TG_TRY(tg_live_look_at_hosts(live, &news));
    if (news)
        live->heard_at = now;
    if (out_news)
        *out_news = news;
    return TG_OK;
}
