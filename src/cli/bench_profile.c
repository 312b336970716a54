#include "cli/bench_profile.h"

#include "base/number.h"
#include "os/clock.h"

#include <math.h>

enum { SHAPE_BYTES = 96 };

/* What both outputs show of one row; NaN where a figure has no meaning. */
typedef struct row {
    const char *name;
    char shape[SHAPE_BYTES];
    double calls, seconds; /* a step */
    double share, flops_per_s, bytes_per_s;
} row;

static void print_shape(const tg_trace_key *key, char out[SHAPE_BYTES])
{
    size_t length = 0;
    out[0] = 0;
    for (int i = 0; i < TG_TRACE_DIMENSIONS && key->shape[i]; i++)
        length += (size_t)tg_number_print(out + length, SHAPE_BYTES - length, "%s%zu", i ? "x" : "",
                                          key->shape[i]);
}

static row operation_row(const tg_bench_profile *profile, const tg_trace_totals *operation)
{
    const double seconds = tg_clock_seconds(operation->ns), steps = (double)profile->steps;
    row r = {.name = operation->key.name,
             .calls = (double)operation->calls / steps,
             .seconds = seconds / steps,
             .share = seconds / profile->seconds,
             .flops_per_s = operation->flops > 0 ? operation->flops / seconds : NAN,
             .bytes_per_s = operation->bytes > 0 ? operation->bytes / seconds : NAN};
    print_shape(&operation->key, r.shape);
    return r;
}

/* What the operations leave of the steps. */
static row other_row(const tg_bench_profile *profile)
{
    double left = profile->seconds;
    for (size_t i = 0; i < profile->operation_count; i++)
        left -= tg_clock_seconds(profile->operations[i].ns);
    return (row){.name = "other",
                 .calls = NAN,
                 .seconds = left / (double)profile->steps,
                 .share = left / profile->seconds,
                 .flops_per_s = NAN,
                 .bytes_per_s = NAN};
}

static void append_number(tg_text *text, int width, int digits, double value)
{
    if (isnan(value))
        tg_text_append_format(text, "  %*s", width, "");
    else
        tg_text_append_format(text, "  %*.*f", width, digits, value);
}

static void append_row(tg_text *text, const row *r, double peak_flops_per_s)
{
    tg_text_append_format(text, "  %-24s %-18s", r->name, r->shape);
    append_number(text, 6, 0, r->calls);
    append_number(text, 9, 2, 1e3 * r->seconds);
    append_number(text, 8, 3, 1e3 * r->seconds / r->calls);
    append_number(text, 7, 1, 100 * r->share);
    append_number(text, 8, 1, 1e-9 * r->flops_per_s);
    append_number(text, 6, 1, 100 * r->flops_per_s / peak_flops_per_s);
    append_number(text, 6, 1, 1e-9 * r->bytes_per_s);
    while (text->length && text->data[text->length - 1] == ' ')
        text->data[--text->length] = 0;
    tg_text_append_char(text, '\n');
}

void tg_bench_profile_append(tg_text *text, const tg_bench_profile *profile,
                             double peak_flops_per_s)
{
    if (!profile->steps)
        return;
    tg_text_append_format(text, "\n  %-24s %-18s  %6s  %9s  %8s  %7s  %8s  %6s  %6s\n", "operation",
                          "shape", "calls", "ms a step", "ms each", "% step", "GFLOP/s", "% peak",
                          "GB/s");
    for (size_t i = 0; i < profile->operation_count; i++) {
        const row r = operation_row(profile, &profile->operations[i]);
        append_row(text, &r, peak_flops_per_s);
    }
    const row other = other_row(profile);
    append_row(text, &other, peak_flops_per_s);
    const row step = {.name = "step, every call timed",
                      .calls = NAN,
                      .seconds = profile->seconds / (double)profile->steps,
                      .share = 1,
                      .flops_per_s = NAN,
                      .bytes_per_s = NAN};
    append_row(text, &step, peak_flops_per_s);
}

static void put_row(tg_json_writer *writer, const row *r, double peak_flops_per_s)
{
    tg_json_begin_object(writer, NULL);
    tg_json_put_string(writer, "operation", r->name);
    tg_json_put_string(writer, "shape", r->shape);
    tg_json_put_double(writer, "calls", r->calls);
    tg_json_put_double(writer, "step_s", r->seconds);
    tg_json_put_double(writer, "call_s", r->seconds / r->calls);
    tg_json_put_double(writer, "share", r->share);
    tg_json_put_double(writer, "flops_per_s", r->flops_per_s);
    tg_json_put_double(writer, "peak_share", r->flops_per_s / peak_flops_per_s);
    tg_json_put_double(writer, "bytes_per_s", r->bytes_per_s);
    tg_json_end_object(writer);
}

void tg_bench_profile_put(tg_json_writer *writer, const tg_bench_profile *profile,
                          double peak_flops_per_s)
{
    if (!profile->steps)
        return;
    tg_json_put_int(writer, "profile_steps", profile->steps);
    tg_json_put_double(writer, "profile_step_s", profile->seconds / (double)profile->steps);
    tg_json_begin_array(writer, "operations");
    for (size_t i = 0; i < profile->operation_count; i++) {
        const row r = operation_row(profile, &profile->operations[i]);
        put_row(writer, &r, peak_flops_per_s);
    }
    const row other = other_row(profile);
    put_row(writer, &other, peak_flops_per_s);
    tg_json_end_array(writer);
}
