/* plan: the table of ranks. */
#include "cli/plan.h"

#include "base/json_writer.h"
#include "base/number.h"
#include "cli/console.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { BAR_WIDTH = 20, ROUNDS = 60 };

/* A number of ranks, and what comes of it; NaN: not known. */
typedef struct row {
    int ranks;
    double memory_bytes, wire_s, step_s, exposed_s, core_s, slowest_s, efficiency, images_per_s,
        hours, cost, seen_hours;
} row;

typedef struct table {
    const tg_plan_subject *subject;
    tg_forecast_request request;
    tg_layer_range *ranges;
    tg_plan_source source;
    row rows[TG_PLAN_RANKS_MAX];
    size_t count;
} table;

/* Pictures of one step of all ranks. */
static double pictures(const tg_plan_settings *s, int ranks)
{
    return (double)(s->batch_size * s->grad_accum_steps) * ranks;
}

/* The times of one rank under which the first row takes the hours that were seen. */
static tg_status calibrate(table *t)
{
    const tg_plan_settings *s = t->subject->settings;
    const int ranks = t->rows[0].ranks;
    const double wanted =
        s->seen_hours.values[0] * 3600 / (s->images * s->epochs) * pictures(s, ranks);
    double alone = wanted;
    for (int i = 0; i < ROUNDS && alone > 0; i++) {
        tg_forecast f;
        t->request.alone = tg_plan_split_step(t->subject, alone);
        TG_TRY(tg_forecast_step(&t->request, ranks, &f));
        alone += wanted - f.step_s;
    }
    if (!(alone > 0))
        return tg_fail(TG_ERROR_USAGE,
                       "--seen-hours: a step of %.4g s on %d ranks is less than their exchange "
                       "alone takes over this link",
                       wanted, ranks);
    t->source.known = true;
    tg_number_print(t->source.origin, sizeof t->source.origin, "from the hours seen with %d rank%s",
                    ranks, ranks == 1 ? "" : "s");
    return TG_OK;
}

static tg_status check_seen(const table *t)
{
    const tg_plan_settings *s = t->subject->settings;
    if (s->seen_hours.count && s->seen_hours.count != t->count)
        return tg_fail(TG_ERROR_USAGE, "--seen-hours has %zu numbers and --ranks %zu: one each",
                       s->seen_hours.count, t->count);
    if (s->seen_hours.count && isnan(s->images))
        return tg_fail(TG_ERROR_USAGE, "--seen-hours needs --images: the pictures of an epoch");
    return TG_OK;
}

static tg_status fill_row(table *t, size_t i)
{
    const tg_plan_settings *s = t->subject->settings;
    row *r = &t->rows[i];
    tg_memory memory;
    tg_forecast f;
    TG_TRY(tg_plan_memory(t->subject, r->ranks, &memory));
    TG_TRY(tg_forecast_step(&t->request, r->ranks, &f));
    const double hosts = ceil(r->ranks / (double)s->ranks_per_host);
    r->memory_bytes = tg_memory_total(&memory);
    r->wire_s = f.wire_s;
    r->seen_hours = i < s->seen_hours.count ? s->seen_hours.values[i] : NAN;
    r->step_s = r->exposed_s = r->core_s = r->slowest_s = r->efficiency = r->images_per_s =
        r->hours = NAN;
    r->cost = NAN;
    if (!t->source.known)
        return TG_OK;
    r->step_s = f.step_s;
    r->exposed_s = f.exposed_s;
    r->core_s = f.core_s;
    r->slowest_s = f.slowest_s;
    r->efficiency = f.efficiency;
    r->images_per_s = pictures(s, r->ranks) / f.step_s;
    r->hours = s->images * s->epochs / r->images_per_s / 3600;
    r->cost = r->hours * s->price_per_hour * hosts;
    return TG_OK;
}

static tg_status fill(table *t)
{
    const tg_plan_settings *s = t->subject->settings;
    int ranks[TG_PLAN_RANKS_MAX];
    TG_TRY(tg_plan_parse_ranks(s->ranks ? s->ranks : "1", ranks, &t->count));
    for (size_t i = 0; i < t->count; i++)
        t->rows[i].ranks = ranks[i];
    TG_TRY(check_seen(t));
    TG_TRY(tg_plan_read_link(s, &t->request.link));
    TG_TRY(tg_plan_read_source(t->subject, &t->source));
    t->request.alone = t->source.alone;
    if (!t->source.known && s->seen_hours.count)
        TG_TRY(calibrate(t));
    for (size_t i = 0; i < t->count; i++)
        TG_TRY(fill_row(t, i));
    return TG_OK;
}

/* What of the speed-up between the first and the last row the ranks explain. */
typedef struct explanation {
    double seen, ranks, efficiency, by_ranks, rest;
} explanation;

static explanation explain(const table *t)
{
    const row *a = &t->rows[0], *b = &t->rows[t->count - 1];
    explanation e = {.seen = a->seen_hours / b->seen_hours,
                     .ranks = (double)b->ranks / a->ranks,
                     .efficiency = b->efficiency / a->efficiency};
    e.by_ranks = e.ranks * e.efficiency;
    e.rest = e.seen / e.by_ranks;
    return e;
}

static void put_row(const table *t, const row *r, tg_text *out)
{
    tg_json_writer w = tg_json_writer_init(out);
    const tg_plan_settings *s = t->subject->settings;
    tg_json_begin_object(&w, NULL);
    tg_json_put_int(&w, "ranks", r->ranks);
    tg_json_put_double(&w, "batch_size", (double)s->batch_size * r->ranks);
    tg_json_put_double(&w, "memory_bytes", r->memory_bytes);
    tg_json_put_double(&w, "wire_s", r->wire_s);
    tg_json_put_double(&w, "step_s", r->step_s);
    tg_json_put_double(&w, "exposed_s", r->exposed_s);
    tg_json_put_double(&w, "core_s", r->core_s);
    tg_json_put_double(&w, "slowest_s", r->slowest_s);
    tg_json_put_double(&w, "efficiency", r->efficiency);
    tg_json_put_double(&w, "images_per_s", r->images_per_s);
    tg_json_put_double(&w, "hours", r->hours);
    tg_json_put_double(&w, "cost", r->cost);
    tg_json_put_double(&w, "seen_hours", r->seen_hours);
    tg_json_end_object(&w);
    tg_text_append_char(out, '\n');
}

static void put_explanation(const table *t, tg_text *out)
{
    const explanation e = explain(t);
    tg_json_writer w = tg_json_writer_init(out);
    tg_json_begin_object(&w, NULL);
    tg_json_put_double(&w, "speedup_seen", e.seen);
    tg_json_put_double(&w, "speedup_of_ranks", e.by_ranks);
    tg_json_put_double(&w, "speedup_of_rest", e.rest);
    tg_json_end_object(&w);
    tg_text_append_char(out, '\n');
}

static void append_bar(tg_text *out, double share)
{
    const int full = (int)lround(fmin(fmax(share, 0), 1) * BAR_WIDTH);
    for (int i = 0; i < BAR_WIDTH; i++)
        tg_text_append_char(out, i < full ? '#' : '.');
}

static void append_core(const tg_link *link, tg_text *out)
{
    tg_text_append_format(out, "of a core %.4g us a message and %.4g ns a KiB, ",
                          link->message_s * 1e6, link->core_byte_s * 1024e9);
    if (link->spare_core)
        tg_text_append_string(out, "a core that does not compute\n\n");
    else if (link->ranks_per_core > 1)
        tg_text_append_format(out, "taken from the computing of %d ranks on one\n\n",
                              link->ranks_per_core);
    else
        tg_text_append_string(out, "taken from computing\n\n");
}

static void append_assumptions(const table *t, tg_text *out)
{
    const tg_plan_settings *s = t->subject->settings;
    const tg_link *link = &t->request.link;
    const tg_layer_range *last = &t->ranges[t->request.range_count - 1];
    const double bytes = (double)(last->offset + last->count) * 4;
    tg_text_append_format(out, "\n%lld picture%s a rank", (long long)s->batch_size,
                          s->batch_size == 1 ? "" : "s");
    if (s->grad_accum_steps > 1)
        tg_text_append_format(out, ", %lld times a step", (long long)s->grad_accum_steps);
    if (t->source.known) {
        const tg_step_seconds *a = &t->request.alone;
        tg_text_append_format(out, "; a step of one rank takes %.4g s, %s",
                              a->optimizer + a->other +
                                  (double)s->grad_accum_steps *
                                      (a->teacher + a->forward + a->backward),
                              t->source.origin);
    }
    tg_text_append_string(out, "\ngradients of ");
    tg_console_append_bytes(out, bytes);
    tg_text_append_format(out, " in buckets of %.4g MiB, as %s, %s%s\n", s->parallel.bucket_mib,
                          tg_reduce_dtype_names[s->parallel.reduce_dtype],
                          link->method == TG_EXCHANGE_RING ? "passed on in a ring"
                                                           : "everyone to everyone",
                          s->parallel.zero ? ", state in shares (ZeRO stage 1)" : "");
    tg_text_append_format(
        out, "%d rank%s a host, link of a host %.4g Gbit/s each way, latency %.4g us\n",
        link->ranks_per_host, link->ranks_per_host == 1 ? "" : "s", link->bytes_per_s * 8e-9,
        link->latency_s * 1e6);
    append_core(link, out);
}

static void append_row(const table *t, const row *r, tg_text *out)
{
    tg_text memory = {0};
    tg_console_append_bytes(&memory, r->memory_bytes);
    tg_text_append_format(out, "%7d %9.0f %11s", r->ranks, pictures(t->subject->settings, r->ranks),
                          tg_text_string(&memory));
    tg_text_done(&memory);
    if (!t->source.known) {
        tg_text_append_format(out, " %10.4g\n", r->wire_s);
        return;
    }
    tg_text_append_format(out, " %10.4g %7.1f %% %6.1f %%", r->step_s,
                          100 * r->exposed_s / r->step_s, 100 * r->core_s / r->step_s);
    if (t->request.spread > 0)
        tg_text_append_format(out, " %7.1f %%", 100 * r->slowest_s / r->step_s);
    tg_text_append_format(out, "  %5.1f %% ", 100 * r->efficiency);
    append_bar(out, r->efficiency);
    tg_text_append_format(out, r->images_per_s < 1e5 ? " %10.5g" : " %10.0f", r->images_per_s);
    if (!isnan(r->hours))
        tg_text_append_format(out, " %9.4g", r->hours);
    if (!isnan(r->cost))
        tg_text_append_format(out, " %9.5g", r->cost);
    if (!isnan(r->seen_hours))
        tg_text_append_format(out, " %9.4g", r->seen_hours);
    tg_text_append_char(out, '\n');
}

static void append_head(const table *t, tg_text *out)
{
    const row *r = &t->rows[0];
    tg_text_append_format(out, "%7s %9s %11s", "ranks", "batch", "memory each");
    if (!t->source.known) {
        tg_text_append_format(out, " %10s\n", "wire s");
        return;
    }
    tg_text_append_format(out, " %10s %9s %8s", "step s", "exposed", "core");
    if (t->request.spread > 0)
        tg_text_append_format(out, " %9s", "slowest");
    tg_text_append_format(out, "  %-28s %10s", "efficiency", "images/s");
    if (!isnan(r->hours))
        tg_text_append_format(out, " %9s", "hours");
    if (!isnan(r->cost))
        tg_text_append_format(out, " %9s", "cost");
    if (!isnan(r->seen_hours))
        tg_text_append_format(out, " %9s", "seen");
    tg_text_append_char(out, '\n');
}

static void append_explanation(const table *t, tg_text *out)
{
    const explanation e = explain(t);
    const row *a = &t->rows[0], *b = &t->rows[t->count - 1];
    tg_text_append_format(out,
                          "\nseen: %.4g h on %d ranks, %.4g h on %d: %.1f times as fast\n"
                          "  %5.2f times by ranks: %.4g times as many, at %.1f %% of the "
                          "efficiency\n"
                          "  %5.2f times by all else: what each rank does itself, faster "
                          "(software, device, batch)\n",
                          a->seen_hours, a->ranks, b->seen_hours, b->ranks, e.seen, e.by_ranks,
                          e.ranks, 100 * e.efficiency, e.rest);
}

static void append_table(const table *t, tg_text *out)
{
    append_assumptions(t, out);
    append_head(t, out);
    for (size_t i = 0; i < t->count; i++)
        append_row(t, &t->rows[i], out);
    if (t->subject->settings->seen_hours.count)
        append_explanation(t, out);
    if (!t->source.known)
        tg_text_append_string(out, "\nwire s: the link is busy so long in a step. --measure, --run "
                                   "RUN or --step-seconds S adds\nstep times and efficiency\n");
}

static void put_table(const table *t, tg_text *out)
{
    for (size_t i = 0; i < t->count; i++)
        put_row(t, &t->rows[i], out);
    if (t->subject->settings->seen_hours.count)
        put_explanation(t, out);
}

tg_status tg_plan_forecast(const tg_plan_subject *subject, tg_text *out)
{
    const tg_plan_settings *s = subject->settings;
    table *t = calloc(1, sizeof *t);
    if (!t)
        return tg_fail(TG_ERROR_MACHINE, "out of memory for the table of ranks");
    t->subject = subject;
    t->request = (tg_forecast_request){.accumulation = s->grad_accum_steps,
                                       .exchange = tg_parallel_ranks(&s->parallel),
                                       .narrow = subject->dtype == TG_BF16,
                                       .spread = s->spread * 0.01};
    tg_status status =
        tg_forecast_ranges(&subject->student, 0, &t->ranges, &t->request.range_count);
    t->request.ranges = t->ranges;
    if (status == TG_OK)
        status = fill(t);
    if (status == TG_OK)
        (subject->invocation->common->json ? put_table : append_table)(t, out);
    free(t->ranges);
    free(t);
    return status;
}
