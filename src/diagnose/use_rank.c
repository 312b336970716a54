/* A rank on its machine, and the overlap model. */
#include "diagnose/use.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NEAR_BEST 1.02
/* What a second of a loader on a core costs the compute thread there, as measured (docs/OBSERVE.md): it comes back to
 * cold caches, and the others have waited for it. */
#define TURNS 1.4

static const tg_system_host *find_host(const tg_history *h)
{
    const char *name = tg_history_info_text(h, "machine.host");
    for (size_t i = 0; i < h->host_count && name; i++)
        if (strcmp(h->hosts[i].host, name) == 0)
            return &h->hosts[i];
    return h->host_count == 1 ? &h->hosts[0] : NULL;
}

/* "0-3,8" -> 5; 0 for what is none */
static double count_cores(const char *list)
{
    double count = 0;
    while (*list) {
        char *end;
        const long first = strtol(list, &end, 10);
        long last = first;
        if (end == list)
            return 0;
        if (*end == '-')
            last = strtol(end + 1, &end, 10);
        count += (double)(last - first + 1);
        list = *end == ',' ? end + 1 : end;
        if (*end && *end != ',')
            return 0;
    }
    return count;
}

/* Ranks on the first rank's host, and the cores that are this rank's alone (0: it shares them all). */
static void read_ranks(const tg_history *h, double *out_here, double *out_own)
{
    const char *machine = tg_history_info_text(h, "machine.host");
    tg_json_node each, row = {0};
    *out_here = 1;
    *out_own = 0;
    if (!h->info.root)
        return;
    const tg_json_node root = tg_json_root(&h->info);
    if (!tg_json_find(&root, "each", &each) || tg_json_node_kind(&each) != TG_JSON_ARRAY)
        return;
    double here = 0;
    for (size_t i = 0; i < tg_json_count(&each); i++) {
        const char *host = NULL, *cores = NULL;
        row = tg_json_element(&each, i);
        if (tg_json_node_kind(&row) != TG_JSON_OBJECT ||
            tg_json_get_string(&row, "host", TG_OPTIONAL, &host) < 0 ||
            tg_json_get_string(&row, "cores", TG_OPTIONAL, &cores) < 0)
            return;
        here += host && machine && strcmp(host, machine) == 0;
        if (i == 0 && cores)
            *out_own = count_cores(cores);
    }
    *out_here = fmax(1, here);
}

static double usable_cores(const tg_history *h, const tg_use_rank *use, double own)
{
    const double quota = tg_history_info_number(h, "cgroup.cpu_quota");
    double cores = tg_history_info_number(h, "cgroup.usable_cpus");
    if (!(cores > 0))
        cores = use->host ? (double)use->host->core_count : NAN;
    cores /= use->ranks_here;
    if (own > cores && own <= cores * use->ranks_here) /* ranks may share theirs */
        own = cores;
    if (own > 0)
        cores = own;
    return quota > 0 ? fmin(cores, quota / use->ranks_here) : cores;
}

static double role(const tg_use_rank *use, tg_system_role role, tg_system_of_role of)
{
    return tg_use_mean(use->host, use->steps.begin, use->steps.end, TG_SYSTEM_ROLE(role, of)) /
           use->ranks_here;
}

/* A share that rounding may have made more than one. Unknown stays so, which fmin would not let it. */
static double share(double value)
{
    return value > 1 ? 1 : value;
}

/* Seconds of a step in which some compute thread had no core, as far as loaders can have had it. */
static double taken_by_loaders(const tg_use_rank *use)
{
    const double all_run = pow(1 - use->compute_wait, use->threads);
    return fmin((1 - all_run) * use->steps.step_s, TURNS * use->loader_core_s);
}

tg_use_rank tg_use_of_rank(const tg_history *h)
{
    double own;
    tg_use_rank use = {.steps = tg_use_of_steps(h),
                       .host = find_host(h),
                       .threads = tg_history_info_number(h, "threads"),
                       .workers = tg_history_info_number(h, "workers")};
    read_ranks(h, &use.ranks_here, &own);
    use.cores = usable_cores(h, &use, own);
    const double step_s = use.steps.step_s;
    const double loader = role(&use, TG_ROLE_LOADER, TG_SYSTEM_CPU);
    use.loader_core_s = use.workers == 0 ? use.steps.data_s : loader * step_s;
    use.loader_busy = use.workers > 0 ? share(loader / use.workers) : NAN;
    use.compute_wait = share(role(&use, TG_ROLE_COMPUTE, TG_SYSTEM_WAIT) / use.threads);
    use.compute_s = step_s - use.steps.data_s;
    if (use.compute_wait > 0 && use.loader_core_s > 0 && use.workers > 0)
        use.compute_s = fmax(0.1 * use.compute_s, use.compute_s - taken_by_loaders(&use));
    use.compute_core_s =
        fmin(use.compute_s * use.threads, role(&use, TG_ROLE_COMPUTE, TG_SYSTEM_CPU) * step_s);
    return use;
}

/* Seconds by which loaders delay the step: those that find no core of their own take turns with compute threads, as
 * equals. */
static double delay(const tg_use_rank *use, double workers)
{
    const double spare = fmax(0, floor(use->cores - use->threads + 1e-6));
    const double crowd = workers - spare;
    if (crowd <= 0)
        return 0;
    const double taken = fmax(0, use->loader_core_s - spare * use->compute_s);
    const double most = fmax(1, crowd / use->threads) * use->compute_s;
    return fmin(most, TURNS * taken / fmin(crowd, use->threads));
}

double tg_use_predict(const tg_use_rank *use, double workers)
{
    const double all = (use->compute_core_s + use->loader_core_s) / use->cores;
    if (isnan(all) || !(workers >= 1))
        return NAN;
    const double compute = use->compute_s + delay(use, workers);
    return fmax(compute, fmax(all, use->loader_core_s / workers));
}

double tg_use_best_workers(const tg_use_rank *use)
{
    const double most = fmax(1, floor(use->cores));
    const double best = tg_use_predict(use, most);
    if (isnan(best))
        return 0;
    for (double w = 1; w < most; w++)
        if (tg_use_predict(use, w) <= NEAR_BEST * best)
            return w;
    return most;
}

const char *tg_use_device_name(const tg_history *history)
{
    return history->inputs & TG_INPUT_DEVICES ? "the accelerators"
                                              : "the cores that the compute threads have";
}
