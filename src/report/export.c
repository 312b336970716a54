#include "report/export.h"

#include "report/scalars.h"

#include <math.h>
#include <time.h>

/* Where a record of no known time stands: steps one after another from 0 on. */
typedef struct place {
    double unix_s;
    int64_t step;
} place;

static tg_status write_steps(const tg_history *h, tg_event_file *file)
{
    place at = {0};
    size_t e = 0;
    for (size_t i = 0; i < h->step_count; i++) {
        const tg_step_record *step = &h->steps[i];
        at.unix_s = isnan(step->time) ? at.unix_s + step->t_step : step->time;
        at.step = step->step;
        TG_TRY(tg_scalars_step(file, step, at.unix_s));
        const bool last = i + 1 == h->step_count;
        while (e < h->eval_count && (last || h->evals[e].epoch <= h->steps[i + 1].epoch))
            TG_TRY(tg_scalars_eval(file, &h->evals[e++], at.step, at.unix_s));
    }
    return TG_OK;
}

/* Samples carry the number of the step that had ended when they were taken. */
static tg_status write_host(const tg_history *h, const tg_system_host *host, tg_event_file *file)
{
    size_t next = 0;
    for (size_t i = 0; i < host->sample_count; i++) {
        const tg_system_sample *sample = &host->samples[i];
        while (next < h->step_count && h->steps[next].time <= sample->time)
            next++;
        TG_TRY(tg_scalars_sample(file, host->host, host->core_count, sample,
                                 next ? h->steps[next - 1].step : 0));
    }
    return TG_OK;
}

tg_status tg_export_tensorboard(const tg_history *h, const char *folder)
{
    tg_event_file file;
    if (!h->step_count)
        return tg_fail(TG_ERROR_INPUT, "%s: there is no record of a step", h->path);
    TG_TRY(tg_event_file_open(folder, (double)time(NULL), 1, &file));
    tg_status status = write_steps(h, &file);
    for (size_t i = 0; i < h->host_count && status == TG_OK; i++)
        status = write_host(h, &h->hosts[i], &file);
    tg_event_file_close(&file);
    return status;
}

static void put_cell(double value, tg_text *out)
{
    tg_text_append_char(out, ',');
    if (isfinite(value))
        tg_text_append_double(out, value);
}

static void put_row(const tg_step_record *s, const tg_eval_record *e, tg_text *out)
{
    const double cells[] = {s->loss,        s->loss_task,    s->loss_kd,    s->lr,
                            s->grad_norm,   s->images_per_s, s->t_step,     s->t_data,
                            s->t_teacher,   s->t_forward,    s->t_backward, s->t_reduce,
                            s->t_optimizer, s->t_other};
    tg_text_append_format(out, "%lld,%lld,%lld", (long long)s->step, (long long)s->epoch,
                          (long long)s->images);
    for (size_t i = 0; i < sizeof cells / sizeof cells[0]; i++)
        put_cell(cells[i], out);
    put_cell((double)s->rss_bytes, out);
    put_cell(s->time, out);
    put_cell(e ? e->val_top1 : NAN, out);
    put_cell(e ? e->val_top5 : NAN, out);
    put_cell(e ? e->val_loss : NAN, out);
    tg_text_append_char(out, '\n');
}

tg_status tg_export_csv(const tg_history *h, tg_text *out)
{
    size_t e = 0;
    if (!h->step_count)
        return tg_fail(TG_ERROR_INPUT, "%s: there is no record of a step", h->path);
    tg_text_append_string(out, "step,epoch,images,loss,loss_task,loss_kd,lr,grad_norm,images_per_s,"
                               "t_step,t_data,t_teacher,t_forward,t_backward,t_reduce,t_optimizer,"
                               "t_other,rss_bytes,time,val_top1,val_top5,val_loss\n");
    for (size_t i = 0; i < h->step_count; i++) {
        const bool last = i + 1 == h->step_count;
        const tg_eval_record *eval = NULL;
        while (e < h->eval_count && (last || h->evals[e].epoch <= h->steps[i + 1].epoch))
            eval = &h->evals[e++];
        put_row(&h->steps[i], eval, out);
    }
    return tg_text_check(out, "the table");
}
