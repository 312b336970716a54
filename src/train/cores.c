#include "train/cores.h"

#include "base/log.h"
#include "os/beside.h"

#include <stdlib.h>
#include <string.h>

void tg_cores_report_read(const tg_cpu_share *share, tg_cores_report *out)
{
    tg_cpu_set possible;
    *out = (tg_cores_report){.process = tg_process_self(),
                             .machine = tg_machine_id(),
                             .quota_group = share->quota_group,
                             .quota = share->quota,
                             .scheduler = share->scheduler};
    tg_affinity_get(&out->cores);
    tg_affinity_possible(&possible);
    out->possible = tg_cpu_set_count(&possible);
}

static bool share_cores(const tg_cores_report *a, const tg_cores_report *b)
{
    return a->machine == b->machine && tg_cpu_set_equal(&a->cores, &b->cores);
}

/* Ranks of the same cgroup have its quota together. */
static int quota_of_one(const tg_cores_report *all, int ranks, int rank)
{
    int members = 0;
    for (int r = 0; r < ranks; r++)
        members += all[r].machine == all[rank].machine && all[r].quota > 0 &&
                   all[r].quota_group == all[rank].quota_group;
    const int share = members ? (int)(all[rank].quota / members) : 0;
    return share > 1 ? share : 1;
}

/* Cores of the `index`-th of `sharers`. */
static void cut(int cores, int sharers, int index, int *out_first, int *out_count)
{
    const int each = cores / sharers, more = cores % sharers;
    *out_first = each * index + (index < more ? index : more);
    *out_count = each + (index < more);
}

static int threads_of(const tg_cores_report *all, int ranks, int rank, int cores)
{
    const tg_cores_report *r = &all[rank];
    int threads = cores > 1 ? cores : 1;
    if (r->threads)
        return r->threads;
    if (r->quota > 0 && quota_of_one(all, ranks, rank) < threads)
        threads = quota_of_one(all, ranks, rank);
    if (r->scheduler && r->scheduler < threads)
        threads = r->scheduler;
    return threads;
}

tg_cores_part tg_cores_divide(const tg_cores_report *all, int ranks, int rank)
{
    const int cores = tg_cpu_set_count(&all[rank].cores);
    int sharers = 0, index = 0;
    for (int r = 0; r < ranks; r++) {
        index = r == rank ? sharers : index;
        sharers += share_cores(&all[r], &all[rank]);
    }
    if (sharers < 2 || cores < 1)
        return (tg_cores_part){.count = cores, .threads = threads_of(all, ranks, rank, cores)};
    tg_cores_part part = {.divided = true, .bind = true};
    cut(cores, sharers, index, &part.first, &part.count);
    part.threads = threads_of(all, ranks, rank, part.count);
    for (int r = 0, i = 0; r < ranks; r++) {
        int first, count;
        if (!share_cores(&all[r], &all[rank]))
            continue;
        cut(cores, sharers, i++, &first, &count);
        if (count < 1 || all[r].threads > count || all[r].placed)
            part.bind = false;
    }
    return part;
}

static void take_part(const tg_cores_report *mine, const tg_cores_part *part, tg_cpu_set *out)
{
    int order[TG_CPU_SET_CPUS];
    tg_cpu_set_order("", &mine->cores, order);
    *out = (tg_cpu_set){0};
    for (int i = 0; i < part->count; i++)
        tg_cpu_set_add(out, order[part->first + i]);
}

tg_status tg_cores_share(tg_comm *comm, const tg_cores_report *mine, tg_cores_workers workers,
                         const void *user, tg_cores_place *out, tg_cores_report *out_reports)
{
    TG_TRY(tg_comm_meet(comm, "cores", mine, sizeof *mine, out_reports));
    const tg_cores_part part = tg_cores_divide(out_reports, comm->size, comm->rank);
    tg_cores_place place;
    memset(&place, 0, sizeof place);
    place.cores = mine->cores;
    place.quota = mine->quota;
    place.threads = part.threads;
    place.workers = workers ? workers(user, part.threads) : 0;
    if (part.bind) {
        tg_cpu_set cores;
        take_part(mine, &part, &cores);
        place.bound = tg_affinity_set(&cores) == TG_OK;
        if (place.bound)
            place.cores = cores;
        else
            tg_log_own_warning("%s", tg_error_message());
    }
    return tg_comm_meet(comm, "division of cores", &place, sizeof place, out);
}

/* The ranks of one machine, and what they have. */
typedef struct machine {
    int first, ranks; /* lowest rank, how many */
    int cores_least, cores_most, threads_least, threads_most, workers_least, workers_most;
    int threads;        /* of all */
    int used, possible; /* cores of all together, and that could be had */
    int bound;
    double quota;     /* least; 0: none */
    double quota_all; /* of all cgroups together, where each rank has one; 0: none */
} machine;

static void widen(int value, int *least, int *most, bool first)
{
    if (first || value < *least)
        *least = value;
    if (first || value > *most)
        *most = value;
}

static bool quota_is_counted(const tg_cores_report *reports, int first, int rank)
{
    for (int r = first; r < rank; r++)
        if (reports[r].machine == reports[rank].machine &&
            reports[r].quota_group == reports[rank].quota_group)
            return true;
    return false;
}

static machine look_at(const tg_cores_report *reports, const tg_cores_place *places, int size,
                       int first)
{
    machine m = {.first = first};
    tg_cpu_set used = {0};
    bool limited = true;
    for (int r = first; r < size; r++) {
        const tg_cores_place *p = &places[r];
        const bool alone = m.ranks == 0;
        if (reports[r].machine != reports[first].machine)
            continue;
        widen(tg_cpu_set_count(&p->cores), &m.cores_least, &m.cores_most, alone);
        widen(p->threads, &m.threads_least, &m.threads_most, alone);
        widen(p->workers, &m.workers_least, &m.workers_most, alone);
        m.threads += p->threads;
        m.bound += p->bound;
        m.possible = reports[r].possible > m.possible ? reports[r].possible : m.possible;
        limited = limited && p->quota > 0;
        if (p->quota > 0 && !quota_is_counted(reports, first, r))
            m.quota_all += p->quota;
        if (p->quota > 0 && (m.quota == 0 || p->quota < m.quota))
            m.quota = p->quota;
        tg_cpu_set_join(&used, &p->cores);
        m.ranks++;
    }
    m.used = tg_cpu_set_count(&used);
    m.quota_all = limited ? m.quota_all : 0;
    return m;
}

static bool is_first_of_machine(const tg_cores_report *reports, int rank)
{
    for (int r = 0; r < rank; r++)
        if (reports[r].machine == reports[rank].machine)
            return false;
    return true;
}

/* "2 cores", "1 to 2 cores" */
static void print_range(int least, int most, const char *noun, tg_text *out)
{
    if (least < most)
        tg_text_append_format(out, "%d to ", least);
    tg_text_append_format(out, "%d %s%s", most, noun, most == 1 ? "" : "s");
}

static void print_machine(const machine *m, tg_text *out)
{
    print_range(m->ranks, m->ranks, "rank", out);
    if (m->bound == 0 && m->ranks > 1 && m->used == m->cores_most) {
        tg_text_append_string(out, " together on ");
        print_range(m->used, m->used, "core", out);
    } else {
        tg_text_append_string(out, " of ");
        print_range(m->cores_least, m->cores_most, "core", out);
        tg_text_append_string(out, m->bound ? " each, divided among them" : " each, as started");
    }
    tg_text_append_string(out, "; each with ");
    print_range(m->threads_least, m->threads_most, "compute thread", out);
    if (m->workers_most) {
        tg_text_append_string(out, ", ");
        print_range(m->workers_least, m->workers_most, "loader worker", out);
    }
    if (m->quota > 0)
        tg_text_append_format(out, "; cgroup quota %.2f cores", m->quota);
    else
        tg_text_append_string(out, "; no cgroup quota");
}

/* "a, b, c and 5 more hosts" */
enum { HOSTS_NAMED = 3 };
static void log_shape(const char *hosts, int count, const char *shape)
{
    if (count > HOSTS_NAMED)
        tg_log_info("cores: %s and %d more hosts, on each %s", hosts, count - HOSTS_NAMED, shape);
    else
        tg_log_info("cores: %s: %s%s", hosts, count > 1 ? "on each " : "", shape);
}

static void log_machines(const tg_comm *comm, const tg_cores_report *reports,
                         const tg_cores_place *places, bool *told)
{
    for (int first = 0; first < comm->size; first++) {
        tg_text hosts = {0}, shape = {0}, other = {0};
        int count = 0;
        if (told[first] || !is_first_of_machine(reports, first))
            continue;
        const machine m = look_at(reports, places, comm->size, first);
        print_machine(&m, &shape);
        for (int r = first; r < comm->size; r++) {
            if (told[r] || !is_first_of_machine(reports, r))
                continue;
            const machine n = look_at(reports, places, comm->size, r);
            tg_text_clear(&other);
            print_machine(&n, &other);
            if (strcmp(tg_text_string(&other), tg_text_string(&shape)) != 0)
                continue;
            told[r] = true;
            if (count++ < HOSTS_NAMED)
                tg_text_append_format(&hosts, "%s%s", count > 1 ? ", " : "", tg_comm_host(comm, r));
        }
        log_shape(tg_text_string(&hosts), count, tg_text_string(&shape));
        tg_text_done(&hosts);
        tg_text_done(&shape);
        tg_text_done(&other);
    }
}

/* True when something was said. */
static bool warn(const machine *m, const char *host, const char *advice)
{
    const int free_cores = m->possible - m->used;
    const bool quota_used = m->quota_all > 0 && m->quota_all < m->used + 1;
    if (free_cores >= m->ranks && !quota_used && advice) {
        tg_log_warning(
            "%s: %d rank%s run%s on %d of %d cores, and the others stay idle: the launcher "
            "bound them. Start with %s: then the cores are divided among the ranks",
            host, m->ranks, m->ranks == 1 ? "" : "s", m->ranks == 1 ? "s" : "", m->used,
            m->possible, advice);
        return true;
    }
    const int least = m->used / m->ranks > 1 ? m->used / m->ranks : 1;
    if (m->ranks > m->used)
        tg_log_warning("%s: %d ranks share %d core%s; more ranks than cores only make one another "
                       "wait",
                       host, m->ranks, m->used, m->used == 1 ? "" : "s");
    else if (m->threads > m->used)
        tg_log_warning(
            "%s: %d ranks have %d compute threads together, on %d core%s: that is far slower "
            "than --threads %d",
            host, m->ranks, m->threads, m->used, m->used == 1 ? "" : "s", least);
    else if (m->quota_all > 0 && m->threads > m->quota_all)
        tg_log_warning(
            "%s: %d compute threads together under a cgroup quota of %.2f cores: they are "
            "held back now and then, and all ranks wait",
            host, m->threads, m->quota_all);
    else
        return false;
    return true;
}

/* Processes of other jobs on this rank's machine. */
static void log_beside(const tg_comm *comm, const tg_cores_report *reports)
{
    const tg_cores_report *self = &reports[comm->rank];
    tg_cpu_set shared;
    tg_process *own = calloc((size_t)comm->size, sizeof *own);
    for (int r = 0; own && r < comm->size; r++)
        own[r] = reports[r].process;
    int count = own && self->process.machine
                    ? tg_process_count_beside(own, comm->size, &self->cores, &shared)
                    : 0;
    free(own);
    if (count > 0)
        tg_log_info(
            "cores: %s: %d process%s of other jobs may run on %d of these %d cores; jobs do "
            "not divide cores among them. taskset, mpirun --cpu-set or the batch system "
            "keep them apart",
            tg_comm_host(comm, comm->rank), count, count == 1 ? "" : "es",
            tg_cpu_set_count(&shared), tg_cpu_set_count(&self->cores));
}

enum { WARNINGS = 4 };

void tg_cores_log(const tg_comm *comm, const tg_cores_report *reports, const tg_cores_place *places,
                  const char *advice)
{
    bool *told = calloc((size_t)comm->size, sizeof *told);
    int warned = 0;
    if (!told)
        return;
    log_machines(comm, reports, places, told);
    free(told);
    log_beside(comm, reports);
    for (int r = 0; r < comm->size && warned < WARNINGS; r++) {
        if (!is_first_of_machine(reports, r))
            continue;
        const machine m = look_at(reports, places, comm->size, r);
        warned += warn(&m, tg_comm_host(comm, r), advice);
    }
}
