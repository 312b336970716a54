#include "cli/bench_comm_core.h"

#include "comm/cost.h"
#include "os/affinity.h"
#include "os/clock.h"
#include "os/load.h"
#include "os/usage.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

enum {
    SMALL_REPEATS = 100,
    REPEATS_LEAST = 3,
    REPEATS_MOST = 500,
    QUIET_MS = 400,
    SETTLE_MS = 20, /* until every rank has left the meeting before */
    PATIENCE = 20,  /* times as long as before is waited for asleep */
};

#define WINDOW_S 1.5
#define LOOK_LEAST_S 5e-4
/* Of each core: more than this at rest, and what packets take cannot be told from it. */
#define QUIET_SHARE 0.05

static void sleep_s(double seconds)
{
    const struct timespec rest = {.tv_sec = (time_t)seconds,
                                  .tv_nsec = (long)((seconds - floor(seconds)) * 1e9)};
    nanosleep(&rest, NULL);
}

/* One all-reduce, asleep until about when it should be done; *expected_s is how long the last one took. */
static tg_status reduce_asleep(tg_comm *comm, const tg_comm_work *work, double *expected_s)
{
    tg_comm_ticket ticket;
    tg_comm_record record;
    TG_TRY(tg_comm_begin(comm, work, &ticket));
    const int64_t begin = tg_clock_ns();
    const double patience = PATIENCE * *expected_s + 1;
    sleep_s(0.9 * *expected_s);
    while (!tg_comm_get_record(comm, ticket, &record) &&
           tg_clock_seconds(tg_clock_ns() - begin) < patience)
        sleep_s(fmax(LOOK_LEAST_S, *expected_s / 50));
    TG_TRY(tg_comm_wait(comm, ticket));
    if (tg_comm_get_record(comm, ticket, &record))
        *expected_s = tg_clock_seconds(record.done_ns - record.queued_ns);
    return TG_OK;
}

/* What a rank saw of many all-reduces of one size. */
typedef struct stretch {
    uint64_t machine;
    double seconds, cpu_ns; /* of one */
    double process_ns;      /* of all of this process */
    double busy_ns;         /* of the whole machine; NaN: not known */
    double wall_ns;
    double quiet_cores; /* before or after, whichever is more */
    int cores;
} stretch;

/* Cores in use while ranks rest. */
static tg_status look_at_rest(tg_comm *comm, double *out_cores)
{
    char here = 0, *met = malloc((size_t)comm->size);
    double busy_ns;
    if (!met)
        return tg_fail(TG_ERROR_MACHINE, "out of memory for %d ranks", comm->size);
    tg_status status = tg_comm_meet(comm, "rest", &here, 1, met);
    free(met);
    TG_TRY(status);
    sleep_s(SETTLE_MS * 1e-3);
    const tg_load begin = tg_load_read("");
    sleep_s(QUIET_MS * 1e-3);
    const tg_load end = tg_load_read("");
    *out_cores =
        tg_load_between(&begin, &end, &busy_ns) ? busy_ns / (double)(end.at_ns - begin.at_ns) : NAN;
    return TG_OK;
}

static double process_ns(void)
{
    const tg_usage usage = tg_usage_read();
    return (double)(usage.user_ns + usage.system_ns);
}

static tg_status run_stretch(tg_comm *comm, const tg_comm_work *work, int repeats,
                             double expected_s, stretch *out)
{
    double before, after, total_s = 0;
    TG_TRY(look_at_rest(comm, &before));
    const tg_load begin = tg_load_read("");
    const double process = process_ns(), cpu = (double)tg_comm_get_traffic(comm).cpu_ns;
    for (int i = 0; i < repeats; i++) {
        TG_TRY(reduce_asleep(comm, work, &expected_s));
        total_s += expected_s;
    }
    *out = (stretch){.machine = tg_machine_id(),
                     .seconds = total_s / repeats,
                     .cpu_ns = ((double)tg_comm_get_traffic(comm).cpu_ns - cpu) / repeats,
                     .process_ns = process_ns() - process};
    const tg_load end = tg_load_read("");
    out->cores = end.cores;
    out->wall_ns = (double)(end.at_ns - begin.at_ns);
    if (!tg_load_between(&begin, &end, &out->busy_ns))
        out->busy_ns = NAN;
    TG_TRY(look_at_rest(comm, &after));
    out->quiet_cores = fmax(before, after); /* NaN where neither is known */
    return TG_OK;
}

/* Of one all-reduce, a rank's part, on the machine of `own`; NaN: not known. */
static double packets_of(const stretch *all, int ranks, const stretch *own, int repeats)
{
    double processes = 0;
    int here = 0;
    for (int r = 0; r < ranks; r++)
        if (all[r].machine == own->machine) {
            processes += all[r].process_ns;
            here++;
        }
    if (!own->machine || isnan(own->busy_ns) || isnan(own->quiet_cores) ||
        own->quiet_cores > QUIET_SHARE * own->cores)
        return NAN;
    const double besides = own->busy_ns - own->quiet_cores * own->wall_ns - processes;
    return fmax(0, besides) / here / repeats;
}

/* Fills means over ranks of the large stretch into *out, and the thread's time of a small one. */
static tg_status put_together(tg_comm *comm, const stretch *small, const stretch *large,
                              int repeats, tg_comm_core *out, double *out_small_ns)
{
    struct {
        stretch small, large;
    } mine = {*small, *large}, *all = calloc((size_t)comm->size, sizeof *all);
    stretch *larges = calloc((size_t)comm->size, sizeof *larges);
    tg_status status = all && larges
                           ? tg_comm_meet(comm, "core time", &mine, sizeof mine, all)
                           : tg_fail(TG_ERROR_MACHINE, "out of memory for %d ranks", comm->size);
    *out_small_ns = 0;
    for (int r = 0; r < comm->size && status == TG_OK; r++) {
        larges[r] = all[r].large;
        *out_small_ns += all[r].small.cpu_ns / comm->size;
        out->cpu_ns += all[r].large.cpu_ns / comm->size;
        out->seconds = fmax(out->seconds, all[r].large.seconds);
    }
    if (status == TG_OK)
        out->packets_ns = packets_of(larges, comm->size, large, repeats);
    free(larges);
    free(all);
    return status;
}

/* The same on every rank: from what the slowest took. */
static tg_status choose_repeats(tg_comm *comm, const tg_comm_work *work, double *out_expected_s,
                                int *out)
{
    double mine = LOOK_LEAST_S, *all = calloc((size_t)comm->size, sizeof *all);
    if (!all)
        return tg_fail(TG_ERROR_MACHINE, "out of memory for %d ranks", comm->size);
    tg_status status = reduce_asleep(comm, work, &mine);
    if (status == TG_OK)
        status = tg_comm_meet(comm, "repeats", &mine, sizeof mine, all);
    *out_expected_s = 0;
    for (int r = 0; r < comm->size && status == TG_OK; r++)
        *out_expected_s = fmax(*out_expected_s, all[r]);
    free(all);
    *out =
        (int)fmin(fmax(ceil(WINDOW_S / fmax(*out_expected_s, 1e-6)), REPEATS_LEAST), REPEATS_MOST);
    return status;
}

tg_status tg_comm_core_measure(tg_comm *comm, const tg_comm_work *largest, tg_comm_core *out)
{
    tg_comm_work least = *largest;
    stretch small, large;
    double expected_s, small_ns;
    int repeats;
    least.count = (size_t)comm->size * TG_COMM_GRAIN;
    if (least.count > largest->count)
        least.count = largest->count;
    TG_TRY(choose_repeats(comm, &least, &expected_s, &repeats));
    TG_TRY(run_stretch(comm, &least, SMALL_REPEATS, expected_s, &small));
    TG_TRY(choose_repeats(comm, largest, &expected_s, &repeats));
    TG_TRY(run_stretch(comm, largest, repeats, expected_s, &large));
    *out = (tg_comm_core){.count = largest->count,
                          .messages = tg_comm_cost_messages(largest, comm->size),
                          .sent_bytes = (double)tg_comm_cost_bytes(largest, comm->size, comm->rank),
                          .quiet_cores = large.quiet_cores};
    TG_TRY(put_together(comm, &small, &large, repeats, out, &small_ns));
    const double bytes = fmax(out->sent_bytes, 1);
    out->cpu_ns_per_message = small_ns / (double)tg_comm_cost_messages(&least, comm->size);
    out->cpu_ns_per_byte =
        fmax(0, out->cpu_ns - (double)out->messages * out->cpu_ns_per_message) / bytes;
    out->packets_ns_per_byte = out->packets_ns / bytes;
    return TG_OK;
}
