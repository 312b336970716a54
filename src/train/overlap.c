#include "train/overlap.h"

#include "os/clock.h"

enum { PICTURE_WIDTH = 64, PICTURE_ROWS = 16 };

static bool is_bucket(const tg_comm_record *r)
{
    return r->kind == TG_COMM_ALL_REDUCE || r->kind == TG_COMM_REDUCE_SCATTER;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* What of [begin, end) lies inside backward. */
static int64_t inside(const tg_overlap_step *step, int64_t begin, int64_t end)
{
    return most(0, least(end, step->backward_end_ns) - most(begin, step->backward_begin_ns));
}

/* Buckets are posted in order, so that what is covered so far ends at one moment. */
tg_overlap tg_overlap_of(const tg_overlap_step *step)
{
    tg_overlap o = {0};
    int64_t first = 0, covered = 0, busy = 0, hidden = 0;
    for (size_t i = 0; i < step->count; i++) {
        const tg_comm_record *r = &step->records[i];
        if (!is_bucket(r))
            continue;
        if (!o.buckets++)
            first = covered = r->begun_ns;
        const int64_t begin = most(covered, r->begun_ns);
        covered = most(covered, r->done_ns);
        busy += covered - least(begin, covered);
        hidden += inside(step, begin, covered);
    }
    if (!o.buckets)
        return o;
    o.exchange_s = tg_clock_seconds(busy);
    o.hidden_s = tg_clock_seconds(hidden);
    o.before_end_s = tg_clock_seconds(step->backward_end_ns - first);
    o.behind_s = tg_clock_seconds(covered - step->backward_end_ns);
    return o;
}

void tg_overlap_tell(const tg_overlap_step *step, double exposed_s, double cpu_s, tg_text *out)
{
    const tg_overlap o = tg_overlap_of(step);
    tg_text_append_format(out,
                          "exchange %.1f ms, %.1f %% of it inside backward; first bucket out %.1f "
                          "ms before backward's end, last back %.1f ms after it; waited %.1f ms; "
                          "its thread took %.1f ms of a core",
                          1e3 * o.exchange_s,
                          o.exchange_s > 0 ? 100 * o.hidden_s / o.exchange_s : 0.0,
                          1e3 * o.before_end_s, 1e3 * o.behind_s, 1e3 * exposed_s, 1e3 * cpu_s);
}

/* The time that a picture is of. */
typedef struct frame {
    int64_t begin, end;
} frame;

static int column(const frame *f, int64_t ns)
{
    const int64_t at = (ns - f->begin) * PICTURE_WIDTH / most(1, f->end - f->begin);
    return (int)least(most(at, 0), PICTURE_WIDTH);
}

/* Blanks, then `quiet` from queued to begun, then `busy`, one column at least. */
static void draw_bar(const frame *f, int64_t queued, int64_t begun, int64_t done, tg_text *out)
{
    const int from = (int)least(column(f, queued), PICTURE_WIDTH - 1);
    const int on = (int)least(column(f, begun), PICTURE_WIDTH - 1);
    const int to = (int)most(column(f, done), on + 1);
    for (int c = 0; c < to; c++)
        tg_text_append_char(out, c < from ? ' ' : c < on ? '.' : '#');
}

static double ms_after(const frame *f, int64_t ns)
{
    return 1e3 * tg_clock_seconds(ns - f->begin);
}

static void draw_bucket(const frame *f, const tg_comm_record *r, size_t number, tg_text *out)
{
    tg_text_append_format(out, "  bucket %-4zu %6.2f MiB %8.1f %8.1f  |", number,
                          (double)r->bytes / 1048576, ms_after(f, r->begun_ns),
                          ms_after(f, r->done_ns));
    draw_bar(f, r->queued_ns, r->begun_ns, r->done_ns, out);
    tg_text_append_char(out, '\n');
}

static bool is_left_out(size_t number, size_t buckets)
{
    return buckets > PICTURE_ROWS && number >= PICTURE_ROWS / 2 &&
           number < buckets - PICTURE_ROWS / 2;
}

void tg_overlap_draw(const tg_overlap_step *step, tg_text *out)
{
    frame f = {step->backward_begin_ns, step->backward_end_ns};
    size_t buckets = 0, number = 0;
    for (size_t i = 0; i < step->count; i++)
        if (is_bucket(&step->records[i])) {
            f.end = most(f.end, step->records[i].done_ns);
            buckets++;
        }
    tg_text_append_format(out, "  %-22s %8s %8s\n  %-22s %8.1f %8.1f  |", "", "from ms", "to ms",
                          "backward", 0.0, ms_after(&f, step->backward_end_ns));
    draw_bar(&f, step->backward_begin_ns, step->backward_begin_ns, step->backward_end_ns, out);
    tg_text_append_char(out, '\n');
    for (size_t i = 0; i < step->count; i++) {
        if (!is_bucket(&step->records[i]))
            continue;
        if (!is_left_out(number, buckets))
            draw_bucket(&f, &step->records[i], number, out);
        else if (!is_left_out(number + 1, buckets))
            tg_text_append_format(out, "  ... %zu more\n", buckets - PICTURE_ROWS);
        number++;
    }
}
