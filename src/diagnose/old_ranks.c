/* LoadBalancing, of the withdrawn tool: work that is not shared out evenly, told by what each rank does while it waits
 * for nobody (t_step - t_reduce), so that the ranks that only wait do not look busy. */
#include "diagnose/rules.h"
#include "diagnose/series.h"
#include "diagnose/use.h"

#include <math.h>
#include <stdlib.h>

enum { DIFFERENCE, PATIENCE };

static const tg_rule_limit LIMITS[] = {
    {"threshold", 0.2, 0, 1, "difference between most and least work, as a share of the most"},
    {"patience", 10, 1, 1e9, "steps to pass over, and as many again that it takes"},
};

typedef struct balance {
    double *work; /* [ranks], seconds a step */
    double *images;
    size_t ranks, steps;
    int64_t first, last;
    double step_s;
} balance;

static void add_row(const tg_history_rank_row *row, balance *b)
{
    double step = 0;
    for (size_t r = 0; r < b->ranks; r++) {
        b->work[r] += row->each[r].t_step - row->each[r].t_reduce;
        b->images[r] += (double)row->each[r].images;
        step = fmax(step, row->each[r].t_step);
    }
    b->step_s += step;
    if (b->steps++ == 0)
        b->first = row->step;
    b->last = row->step;
}

static tg_status read_balance(const tg_history *h, size_t patience, balance *out)
{
    const size_t rows = h->rank_row_count;
    *out = (balance){.ranks = (size_t)h->ranks};
    out->work = calloc(2 * out->ranks + 1, sizeof *out->work);
    if (!out->work)
        return tg_fail(TG_ERROR_MACHINE, "out of memory for ranks");
    out->images = out->work + out->ranks;
    for (size_t i = rows > TG_USE_STEPS ? rows - TG_USE_STEPS : patience; i < rows; i++)
        if (h->rank_rows[i].ranks == out->ranks)
            add_row(&h->rank_rows[i], out);
    for (size_t r = 0; r < 2 * out->ranks && out->steps; r++)
        out->work[r] /= (double)out->steps;
    out->step_s /= (double)(out->steps ? out->steps : 1);
    return TG_OK;
}

static tg_status say(const balance *b, size_t most, size_t least, tg_findings *out)
{
    double mean = 0;
    for (size_t r = 0; r < b->ranks; r++)
        mean += b->work[r] / (double)b->ranks;
    tg_finding *f = tg_findings_add(out, "LoadBalancing", TG_SEVERITY_WARNING);
    if (!f)
        return TG_ERROR_MACHINE;
    const bool photos = b->images[most] > 1.1 * b->images[least];
    TG_FINDING_SAY(f->title,
                   "Rank %zu works %.2f s of a step and rank %zu %.2f s: all wait for the "
                   "first",
                   most, b->work[most], least, b->work[least]);
    f->rank = (int)most;
    f->first_step = b->first;
    f->last_step = b->last;
    tg_finding_add_evidence(f, "most work of a rank, a step", b->work[most], "s");
    tg_finding_add_evidence(f, "mean of all ranks", mean, "s");
    tg_finding_add_evidence(f, "least work of a rank", b->work[least], "s");
    tg_finding_add_evidence(f, "photos a step of the rank with most", b->images[most], "");
    tg_finding_add_evidence(f, "photos a step of the rank with least", b->images[least], "");
    TG_FINDING_SAY(f->cause, photos ? "it gets more photos of each step than others"
                                    : "it gets as many photos and takes longer for them: slower "
                                      "cores, fewer of them, or other work beside it");
    TG_FINDING_SAY(f->advice, photos
                                  ? "Choose a batch that the number of ranks divides"
                                  : "See what its machine does besides (system/), and give every "
                                    "rank the same cores (--bind, --threads)");
    tg_finding_predict(f, b->step_s, b->step_s - (b->work[most] - mean), 0.5);
    return TG_OK;
}

static tg_status check(const tg_history *history, const double *limits, tg_findings *out,
                       const char **lack)
{
    balance b;
    size_t most = 0, least = 0;
    if (history->ranks < 2)
        return TG_OK;
    TG_TRY(read_balance(history, (size_t)limits[PATIENCE], &b));
    for (size_t r = 1; r < b.ranks; r++) {
        most = b.work[r] > b.work[most] ? r : most;
        least = b.work[r] < b.work[least] ? r : least;
    }
    tg_status status = TG_OK;
    if ((double)b.steps < limits[PATIENCE]) {
        *lack = "more steps of all ranks (ranks.jsonl)";
        status = TG_END;
    } else if (b.work[most] - b.work[least] > limits[DIFFERENCE] * b.work[most]) {
        status = say(&b, most, least, out);
    }
    free(b.work);
    return status;
}

static const char *const MEASURED[] = {"Straggler", "OtherJobs", "CgroupThrottling",
                                       "WrongAffinity", NULL};

const tg_rule tg_rule_load_balancing = {
    .name = "LoadBalancing",
    .asks = "whether some ranks have more work than others, who wait for them",
    .needs = TG_INPUT_RANKS,
    .yields_to = MEASURED,
    .limits = LIMITS,
    .limit_count = sizeof LIMITS / sizeof *LIMITS,
    .check = check,
};
