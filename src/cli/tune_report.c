/* tune: what came of the trials, for people and for programs. */
#include "base/json_writer.h"
#include "cli/console.h"
#include "cli/tune.h"
#include "cli/tune_plot.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BAR_WIDTH = 20 };

static void put_setting(tg_json_writer *w, const char *key, const tg_tune_setting *s)
{
    if (key)
        tg_json_begin_object(w, key);
    tg_json_put_int(w, "batch_size", s->batch_size);
    tg_json_put_int(w, "threads", s->threads);
    tg_json_put_int(w, "workers", s->workers);
    tg_json_put_double(w, "bucket_mib", s->bucket_mib);
    if (key)
        tg_json_end_object(w);
}

void tg_tune_put_trial(const tg_tune_trial *t, tg_text *out)
{
    const double unknown = t->fits ? 0 : NAN;
    tg_json_writer w = tg_json_writer_init(out);
    tg_json_begin_object(&w, NULL);
    tg_json_put_string(&w, "stage", tg_tune_stage_name(t->stage));
    put_setting(&w, NULL, &t->setting);
    tg_json_put_bool(&w, "fits", t->fits);
    tg_json_put_double(&w, "images_per_s", t->images_per_s + unknown);
    tg_json_put_double(&w, "step_s", t->step_s + unknown);
    tg_json_put_bool(&w, "first_step", t->first_step);
    tg_json_put_int(&w, "steps", t->steps);
    tg_json_put_int(&w, "images", t->images);
    tg_json_put_double(&w, "seconds", t->seconds + unknown);
    tg_json_put_double(&w, "wait_s", t->wait_s + unknown);
    tg_json_put_double(&w, "loader_images_per_s", t->loader_images_per_s + unknown);
    tg_json_put_double(&w, "cpu_s_per_image", t->cpu_s_per_image + unknown);
    tg_json_put_double(&w, "voluntary_per_s", t->voluntary_per_s + unknown);
    tg_json_put_double(&w, "involuntary_per_s", t->involuntary_per_s + unknown);
    tg_json_put_double(&w, "run_queue", t->run_queue + unknown);
    tg_json_put_double(&w, "pressure", t->pressure + unknown);
    tg_json_put_double(&w, "predicted_bytes", t->predicted_bytes);
    tg_json_put_double(&w, "rss_bytes", t->rss_bytes + unknown);
    tg_json_end_object(&w);
    tg_text_append_char(out, '\n');
}

void tg_tune_print_arguments(const tg_tune_subject *subject, const tg_tune_setting *s, tg_text *out)
{
    if (!subject->options->recipe.global_batch_size)
        tg_text_append_format(out, "--batch-size %lld ", (long long)s->batch_size);
    tg_text_append_format(out, "--threads %d", s->threads);
    if (tg_tune_bed_photos(subject->bed))
        tg_text_append_format(out, " --workers %d", s->workers);
    if (subject->plan->ranks > 1) {
        tg_text_append_string(out, " --bucket-mib ");
        tg_text_append_double(out, s->bucket_mib);
    }
}

static bool is_known(size_t row)
{
    return row != TG_TUNE_NO_ROW;
}

/* Rate of the choice over that of the settings given; NaN: one of them is not known. */
static double gain_of(const tg_tune_result *r)
{
    if (!is_known(r->best) || !is_known(r->given) || !r->rows[r->given].fits)
        return NAN;
    return r->rows[r->best].images_per_s / r->rows[r->given].images_per_s;
}

static double measured_bytes(const tg_tune_result *r)
{
    return is_known(r->largest) ? r->rows[r->largest].last.rss_bytes : NAN;
}

static void print_value(tg_tune_stage stage, const tg_tune_row *row, tg_text *out)
{
    const tg_tune_setting *s = &row->setting;
    if (stage == TG_TUNE_BATCH)
        tg_text_append_format(out, "%lld", (long long)s->batch_size);
    else if (stage == TG_TUNE_WORKERS)
        tg_text_append_format(out, "%d", s->workers);
    else if (stage == TG_TUNE_THREADS)
        tg_text_append_format(out, "%d", s->threads);
    else
        tg_text_append_format(out, "%g MiB", s->bucket_mib);
    tg_text_append_format(out, " (%.1f images/s)", row->images_per_s);
}

/* Why a stage ended as it did; false: it did not take place. */
static bool print_reason(const tg_tune_result *r, tg_tune_stage stage, tg_text *out)
{
    const tg_tune_verdict *v = &r->verdicts[stage];
    if (!v->decided)
        return false;
    if (stage == TG_TUNE_COMPARE) {
        tg_text_append_format(
            out, "compare: what came out of that was slower, in more trials, than %s",
            r->best == r->given ? "the settings given" : "this setting of before");
        return true;
    }
    tg_text_append_format(out, "%s: ", tg_tune_stage_name(stage));
    print_value(stage, &r->rows[v->chosen], out);
    if (v->chosen == v->fastest) {
        tg_text_append_string(out, " was the fastest");
    } else {
        tg_text_append_string(out, " and ");
        print_value(stage, &r->rows[v->fastest], out);
        tg_text_append_string(out, " are a tie within the spread, and the ");
        tg_text_append_string(out, stage == TG_TUNE_BUCKET ? "nearer to the given one is taken"
                                                           : "smaller is taken");
    }
    return true;
}

/* Images of an optimizer's step. */
static double images_a_step(const tg_tune_subject *subject, const tg_tune_setting *s)
{
    return (double)s->batch_size * subject->plan->ranks *
           (double)subject->options->recipe.grad_accum_steps;
}

static double default_rate(double images)
{
    return 5e-4 * images / 512;
}

/* What another batch does to the optimisation, which is not this command's to decide. */
static void print_batch_note(const tg_tune_subject *subject, const tg_tune_setting *chosen,
                             tg_text *out)
{
    const double old = images_a_step(subject, &subject->plan->given),
                 new = images_a_step(subject, chosen), lr = subject->options->recipe.lr;
    if (subject->options->recipe.global_batch_size || old == new)
        return;
    tg_text_append_format(out, "A step of %.0f pictures in place of %.0f is another optimisation. ",
                          new, old);
    if (isnan(lr))
        tg_text_append_format(out,
                              "--lr is not given, and follows by itself (%g in place of %g);\nthe "
                              "square-root rule would be --lr %g",
                              default_rate(new), default_rate(old),
                              default_rate(old) * sqrt(new / old));
    else
        tg_text_append_format(out,
                              "--lr stays %g; the linear rule would be --lr %g,\nthe square root's "
                              "%g",
                              lr, lr * new / old, lr * sqrt(new / old));
    tg_text_append_string(out, ". --global-batch-size keeps the step as it is.\n");
}

static void put_choice(const tg_tune_subject *subject, const tg_tune_result *r, tg_json_writer *w)
{
    tg_text arguments = {0};
    const tg_tune_row *best = &r->rows[r->best];
    put_setting(w, "choice", &best->setting);
    tg_tune_print_arguments(subject, &best->setting, &arguments);
    tg_json_put_string(w, "arguments", tg_text_string(&arguments));
    tg_json_put_double(w, "images_per_s", best->images_per_s);
    tg_json_put_double(w, "spread", best->noise);
    tg_json_put_uint(w, "trials", best->trials);
    tg_text_done(&arguments);
}

void tg_tune_put_result(const tg_tune_subject *subject, const tg_tune_result *r, tg_text *out)
{
    tg_json_writer w = tg_json_writer_init(out);
    tg_json_begin_object(&w, NULL);
    if (is_known(r->best))
        put_choice(subject, r, &w);
    else
        tg_json_put_null(&w, "choice");
    put_setting(&w, "given", &subject->plan->given);
    tg_json_put_bool(&w, "given_fits", r->given_fits);
    tg_json_put_double(&w, "given_images_per_s",
                       is_known(r->given) && r->rows[r->given].fits ? r->rows[r->given].images_per_s
                                                                    : NAN);
    tg_json_put_double(&w, "gain", gain_of(r));
    tg_json_put_int(&w, "largest_batch_size", r->largest_batch_size);
    tg_json_put_double(&w, "largest_predicted_bytes", r->largest_bytes);
    tg_json_put_double(&w, "largest_rss_bytes", measured_bytes(r));
    tg_json_put_double(&w, "limit_bytes", subject->plan->limit_bytes);
    tg_json_put_double(&w, "available_bytes", subject->available_bytes);
    tg_json_put_int(&w, "ranks", subject->plan->ranks);
    tg_json_put_bool(&w, "photos", tg_tune_bed_photos(subject->bed) > 0);
    tg_json_begin_array(&w, "why");
    for (int stage = 0; stage < TG_TUNE_STAGES; stage++) {
        tg_text reason = {0};
        if (print_reason(r, (tg_tune_stage)stage, &reason))
            tg_json_put_string(&w, NULL, tg_text_string(&reason));
        tg_text_done(&reason);
    }
    tg_json_end_array(&w);
    tg_json_put_bool(&w, "short_of_time", r->short_of_time);
    tg_json_put_bool(&w, "stopped", r->stopped);
    tg_json_end_object(&w);
    tg_text_append_char(out, '\n');
}

static void print_memory(const tg_tune_subject *subject, const tg_tune_result *r, tg_text *out)
{
    tg_text_append_format(out, "%s of %s, %s, %s%d rank%s, %d core%s%s\n", subject->command,
                          tg_tune_bed_model(subject->bed),
                          tg_tune_bed_dtype(subject->bed) == TG_BF16 ? "bfloat16" : "float32",
                          tg_tune_bed_photos(subject->bed) ? "photos, " : "generated pictures, ",
                          subject->plan->ranks, subject->plan->ranks == 1 ? "" : "s",
                          subject->plan->cores, subject->plan->cores == 1 ? "" : "s",
                          subject->plan->ranks == 1 ? "" : " each");
    tg_text_append_string(out, "memory: ");
    tg_console_append_bytes(out, subject->plan->limit_bytes);
    tg_text_append_string(out, " may be used of ");
    tg_console_append_bytes(out, subject->available_bytes);
    if (!subject->plan->find[TG_TUNE_BATCH]) {
        tg_text_append_string(out, "\n\n");
        return;
    }
    tg_text_append_format(out, "; the largest batch that fits is %lld, predicted ",
                          (long long)r->largest_batch_size);
    tg_console_append_bytes(out, r->largest_bytes);
    if (is_known(r->largest)) {
        tg_text_append_string(out, ", measured ");
        tg_console_append_bytes(out, measured_bytes(r));
        tg_text_append_string(out, "\n\n");
    } else {
        tg_text_append_string(out, ", not tried\n\n");
    }
}

/* By batch, then threads, workers, bucket. */
static int compare_rows(const void *a, const void *b)
{
    const tg_tune_setting *x = &(*(const tg_tune_row *const *)a)->setting,
                          *y = &(*(const tg_tune_row *const *)b)->setting;
    const double d[] = {(double)(x->batch_size - y->batch_size), x->threads - y->threads,
                        x->workers - y->workers, x->bucket_mib - y->bucket_mib};
    for (size_t i = 0; i < TG_COUNT_OF(d); i++)
        if (d[i] != 0)
            return d[i] > 0 ? 1 : -1;
    return 0;
}

static void print_row(const tg_tune_subject *subject, const tg_tune_result *r,
                      const tg_tune_row *row, double most, tg_text *out)
{
    const bool best = is_known(r->best) && row == &r->rows[r->best];
    tg_text_append_format(out, "%c %6lld %7d", best ? '>' : ' ', (long long)row->setting.batch_size,
                          row->setting.threads);
    if (tg_tune_bed_photos(subject->bed))
        tg_text_append_format(out, " %7d", row->setting.workers);
    if (subject->plan->ranks > 1)
        tg_text_append_format(out, " %7g", row->setting.bucket_mib);
    if (!row->fits) {
        tg_text_append_string(out, "   does not fit\n");
        return;
    }
    if (row->trials == 0)
        tg_text_append_format(out, " %10s %7s %3s", "-", "-", "-");
    else
        tg_text_append_format(out, " %10.1f %5.1f %% %3zu", row->images_per_s,
                              100 * row->noise / row->images_per_s, row->trials);
    tg_text_append_format(out, " %10.0f %8.0f  ", row->last.predicted_bytes / 0x1p20,
                          row->last.rss_bytes / 0x1p20);
    if (row->trials == 0) {
        tg_text_append_string(out, "one step, for memory\n");
        return;
    }
    const int filled = (int)(BAR_WIDTH * row->images_per_s / most + 0.5);
    for (int i = 0; i < BAR_WIDTH; i++)
        tg_text_append_char(out, i < filled ? '#' : '.');
    if (&r->rows[r->given == TG_TUNE_NO_ROW ? 0 : r->given] == row && is_known(r->given))
        tg_text_append_string(out, " given");
    tg_text_append_char(out, '\n');
}

static void print_table(const tg_tune_subject *subject, const tg_tune_result *r, tg_text *out)
{
    const tg_tune_row *rows[TG_TUNE_ROWS_MAX];
    double most = 1e-9;
    for (size_t i = 0; i < r->row_count; i++) {
        rows[i] = &r->rows[i];
        most = fmax(most, rows[i]->images_per_s);
    }
    qsort(rows, r->row_count, sizeof *rows, compare_rows);
    tg_text_append_string(out, "   batch threads");
    if (tg_tune_bed_photos(subject->bed))
        tg_text_append_string(out, " workers");
    if (subject->plan->ranks > 1)
        tg_text_append_string(out, "  bucket");
    tg_text_append_string(out, "   images/s  spread  of  predicted MiB now\n");
    for (size_t i = 0; i < r->row_count; i++)
        print_row(subject, r, rows[i], most, out);
    tg_text_append_char(out, '\n');
}

static void print_gain(const tg_tune_subject *subject, const tg_tune_result *r, tg_text *out)
{
    const double gain = gain_of(r);
    if (r->best == r->given)
        tg_text_append_string(out, "These are the settings given.\n");
    else if (!isnan(gain)) {
        const tg_tune_row *best = &r->rows[r->best], *given = &r->rows[r->given];
        const bool tie =
            fabs(gain - 1) <= TG_TUNE_TIE &&
            fabs(best->images_per_s - given->images_per_s) <= fmax(best->noise, given->noise);
        tg_text_append_format(out, "%.2f times the %.1f images/s of the settings given (", gain,
                              given->images_per_s);
        tg_tune_print_arguments(subject, &subject->plan->given, out);
        tg_text_append_string(out, tie ? "): a tie within the spread.\n" : ").\n");
    } else {
        tg_text_append_string(out, "The settings given (");
        tg_tune_print_arguments(subject, &subject->plan->given, out);
        tg_text_append_string(out, r->given_fits ? ") were not measured.\n"
                                                 : ") do not fit into memory.\n");
    }
}

void tg_tune_print_result(const tg_tune_subject *subject, const tg_tune_result *r, tg_text *out)
{
    print_memory(subject, r, out);
    print_table(subject, r, out);
    if (!is_known(r->best)) {
        tg_text_append_string(out, "Nothing was measured; --max-seconds gives more time.\n");
        return;
    }
    tg_text_append_string(out, "    ");
    tg_tune_print_arguments(subject, &r->rows[r->best].setting, out);
    tg_text_append_string(out, "\n\n");
    print_gain(subject, r, out);
    for (int stage = 0; stage < TG_TUNE_STAGES; stage++) {
        const size_t before = out->length;
        if (print_reason(r, (tg_tune_stage)stage, out) && out->length > before)
            tg_text_append_string(out, ".\n");
    }
    print_batch_note(subject, &r->rows[r->best].setting, out);
    tg_tune_plot plot;
    tg_tune_plot_make(r, &plot);
    if (plot.count > 1)
        tg_text_append_char(out, '\n');
    tg_tune_plot_print(&plot, out);
    if (r->short_of_time)
        tg_text_append_string(out,
                              "Some settings had to be left out: --max-seconds gives more time.\n");
    if (r->stopped)
        tg_text_append_string(out, "The search was stopped: this is what was known by then.\n");
}
