#include "profile/exchange.h"

#include "profile/sane.h"

#include <math.h>
#include <string.h>

static void add_rows(const tg_history *h, tg_exchange *x)
{
    for (size_t i = 0; i < h->rank_row_count; i++) {
        const tg_history_rank_row *row = &h->rank_rows[i];
        if (row->ranks != x->ranks)
            continue;
        double least = INFINITY, waited = 0;
        for (size_t r = 0; r < row->ranks; r++) {
            const double wait = tg_sane_sum(row->each[r].t_reduce);
            waited += wait / (double)row->ranks;
            least = fmin(least, wait);
            x->step_s += tg_sane_sum(row->each[r].t_step) / (double)row->ranks;
        }
        x->waited_s += waited;
        x->exposed_s += least;
        x->steps++;
    }
    x->step_s /= (double)x->steps;
    x->waited_s /= (double)x->steps;
    x->exposed_s /= (double)x->steps;
    x->slower_s = x->waited_s - x->exposed_s;
}

/* Mean own work of a rank. */
static double own_work(const tg_history *h, const tg_exchange *x, size_t rank)
{
    double sum = 0;
    for (size_t i = 0; i < h->rank_row_count; i++)
        if (h->rank_rows[i].ranks == x->ranks)
            sum += tg_sane_sum(h->rank_rows[i].each[rank].t_step -
                               h->rank_rows[i].each[rank].t_reduce);
    return sum / (double)x->steps;
}

static void find_slowest(const tg_history *h, tg_exchange *x)
{
    double sum = 0;
    x->slowest_s = -INFINITY;
    for (size_t r = 0; r < x->ranks; r++) {
        const double own = own_work(h, x, r);
        sum += own;
        if (!(own > x->slowest_s))
            continue;
        x->slowest_s = own;
        x->slowest_rank = (int)r;
    }
    x->others_s = (sum - x->slowest_s) / (double)(x->ranks - 1);
}

static void add_operations(const tg_history *h, tg_exchange *x)
{
    size_t files = 0;
    double seconds = 0, bytes = 0;
    for (size_t r = 0; r < h->operation_ranks; r++) {
        const tg_operations *file = &h->operations[r];
        if (file->steps <= 0)
            continue;
        files++;
        for (size_t i = 0; i < file->count; i++) {
            if (strcmp(file->each[i].phase, "exchange") != 0)
                continue;
            seconds += tg_sane_sum(file->each[i].seconds) / (double)file->steps;
            bytes += file->each[i].bytes / (double)file->steps;
        }
    }
    if (!files || !(seconds > 0))
        return;
    x->exchange_s = seconds / (double)files;
    x->bytes = bytes / (double)files;
    x->hidden = fmax(0, fmin(1, 1 - x->exposed_s / x->exchange_s));
}

tg_exchange tg_exchange_of(const tg_history *history)
{
    tg_exchange x = {.exchange_s = NAN, .bytes = NAN, .hidden = NAN, .slowest_rank = -1};
    if (history->rank_row_count)
        x.ranks = history->rank_rows[history->rank_row_count - 1].ranks;
    if (x.ranks < 2) {
        x.ranks = 0;
        x.step_s = x.waited_s = x.exposed_s = x.slower_s = x.slowest_s = x.others_s = NAN;
        return x;
    }
    add_rows(history, &x);
    find_slowest(history, &x);
    add_operations(history, &x);
    return x;
}
