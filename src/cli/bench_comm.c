/* tagine bench comm: how fast this job's ranks exchange, against what their link can carry. */
#include "base/json_writer.h"
#include "cli/bench_comm_core.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/options_parallel.h"
#include "comm/cost.h"
#include "os/clock.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { REPEATS_MAX = 1000 };

typedef struct comm_settings {
    tg_parallel_choice parallel;
    tg_option_doubles mib;
    double link_mbit;
    int64_t repeats;
} comm_settings;

#define AT(field) offsetof(comm_settings, field)
static const tg_option OPTIONS[] = {
    {.name = "mib",
     .type = TG_OPTION_DOUBLES,
     .offset = AT(mib),
     .initial = "0.0625,1,16",
     .metavar = "MIB...",
     .help = "sizes of what is exchanged, as fp32",
     .low = 1e-4,
     .high = 4096},
    {.name = "link-mbit",
     .type = TG_OPTION_DOUBLE,
     .offset = AT(link_mbit),
     .metavar = "MBIT",
     .help = "what a rank's link carries each way, to compare with",
     .low = 0.001,
     .high = 1e9},
    {.name = "repeats",
     .type = TG_OPTION_INT,
     .offset = AT(repeats),
     .initial = "7",
     .metavar = "N",
     .help = "times each is measured; the median counts",
     .low = 1,
     .high = REPEATS_MAX},
};

static const tg_command_group GROUPS[] = {
    {"Ranks", tg_parallel_option_table, TG_PARALLEL_OPTION_COUNT, AT(parallel)},
    {"Exchange", OPTIONS, TG_COUNT_OF(OPTIONS), 0},
};

typedef struct result {
    const char *name;
    size_t count;       /* of elements */
    double seconds;     /* median over repeats, of the slowest rank */
    double sent_bytes;  /* by this rank, in one */
    double bytes_per_s; /* on its link, each way */
} result;

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* One exchange; the slowest rank's time. */
static tg_status measure_once(tg_comm *comm, const tg_comm_work *work, double *out_s)
{
    double mine, *all = calloc((size_t)comm->size, sizeof *all);
    tg_comm_ticket ticket;
    char here = 0;
    if (!all)
        return tg_fail(TG_ERROR_MACHINE, "out of memory for %d ranks", comm->size);
    char *met = malloc((size_t)comm->size);
    tg_status status = met ? tg_comm_meet(comm, "ready", &here, 1, met)
                           : tg_fail(TG_ERROR_MACHINE, "out of memory for %d ranks", comm->size);
    int64_t begin = tg_clock_ns();
    if (status == TG_OK && work->count)
        status = tg_comm_begin(comm, work, &ticket);
    if (status == TG_OK)
        status =
            work->count ? tg_comm_wait(comm, ticket) : tg_comm_meet(comm, "latency", &here, 1, met);
    mine = tg_clock_seconds(tg_clock_ns() - begin);
    if (status == TG_OK)
        status = tg_comm_meet(comm, "times", &mine, sizeof mine, all);
    *out_s = 0;
    for (int r = 0; r < comm->size && status == TG_OK; r++)
        *out_s = fmax(*out_s, all[r]);
    free(met);
    free(all);
    return status;
}

static tg_status measure(tg_comm *comm, const comm_settings *s, const tg_comm_work *work,
                         const char *name, result *out)
{
    double times[REPEATS_MAX], unused;
    TG_TRY(measure_once(comm, work, &unused)); /* opens connections, takes memory */
    for (int64_t i = 0; i < s->repeats; i++)
        TG_TRY(measure_once(comm, work, &times[i]));
    const size_t sent = tg_comm_cost_bytes(work, comm->size, comm->rank);
    qsort(times, (size_t)s->repeats, sizeof *times, compare);
    double median = times[s->repeats / 2];
    *out = (result){.name = name,
                    .count = work->count,
                    .seconds = median,
                    .sent_bytes = (double)sent,
                    .bytes_per_s = (double)sent / median};
    return TG_OK;
}

static void print(const tg_invocation *invocation, const tg_comm *comm, const result *r,
                  tg_text *out)
{
    const comm_settings *s = invocation->settings;
    double share = r->count ? r->bytes_per_s * 8e-6 / s->link_mbit : NAN;
    if (invocation->common->json) {
        tg_json_writer w = tg_json_writer_init(out);
        tg_json_begin_object(&w, NULL);
        tg_json_put_string(&w, "collective", r->name);
        tg_json_put_int(&w, "ranks", comm->size);
        tg_json_put_uint(&w, "bytes", r->count * sizeof(float));
        tg_json_put_string(&w, "reduce_dtype", tg_reduce_dtype_names[s->parallel.reduce_dtype]);
        tg_json_put_double(&w, "seconds", r->seconds);
        tg_json_put_double(&w, "sent_bytes", r->sent_bytes);
        tg_json_put_double(&w, "link_bytes_per_s", r->count ? r->bytes_per_s : NAN);
        tg_json_put_double(&w, "link_share", share);
        tg_json_end_object(&w);
        tg_text_append_char(out, '\n');
        return;
    }
    tg_text_append_format(out, "  %-15s", r->name);
    if (!r->count) {
        tg_text_append_format(out, "%12s  %12.1f us\n", "", 1e6 * r->seconds);
        return;
    }
    tg_text_append_format(out, "%8.2f MiB  %12.2f ms  %10.1f Mbit/s each way",
                          (double)r->count * 4 / 1048576, 1e3 * r->seconds, 8e-6 * r->bytes_per_s);
    if (!isnan(share))
        tg_text_append_format(out, "  %5.1f %% of the link", 100 * share);
    tg_text_append_char(out, '\n');
}

static void put_core(const comm_settings *s, const tg_comm *comm, const tg_comm_core *c,
                     tg_text *out)
{
    tg_json_writer w = tg_json_writer_init(out);
    tg_json_begin_object(&w, NULL);
    tg_json_put_string(&w, "collective", "core");
    tg_json_put_int(&w, "ranks", comm->size);
    tg_json_put_uint(&w, "bytes", c->count * sizeof(float));
    tg_json_put_string(&w, "reduce_dtype", tg_reduce_dtype_names[s->parallel.reduce_dtype]);
    tg_json_put_double(&w, "seconds", c->seconds);
    tg_json_put_double(&w, "sent_bytes", c->sent_bytes);
    tg_json_put_uint(&w, "messages", c->messages);
    tg_json_put_double(&w, "cpu_ns", c->cpu_ns);
    tg_json_put_double(&w, "cpu_ns_per_kib", 1024 * c->cpu_ns_per_byte);
    tg_json_put_double(&w, "cpu_ns_per_message", c->cpu_ns_per_message);
    tg_json_put_double(&w, "packets_ns", c->packets_ns);
    tg_json_put_double(&w, "packets_ns_per_kib", 1024 * c->packets_ns_per_byte);
    tg_json_put_double(&w, "quiet_cores", c->quiet_cores);
    tg_json_end_object(&w);
    tg_text_append_char(out, '\n');
}

static void append_core(const tg_comm_core *c, tg_text *out)
{
    tg_text_append_format(out,
                          "\ncore time of a rank in an all-reduce of %.2f MiB (%.2f ms), while it "
                          "does not wait\n"
                          "  %-15s%12.2f ms  %10.0f ns a KiB sent, %.1f us a message\n",
                          (double)c->count * 4 / 1048576, 1e3 * c->seconds, "its thread",
                          1e-6 * c->cpu_ns, 1024 * c->cpu_ns_per_byte,
                          1e-3 * c->cpu_ns_per_message);
    if (isnan(c->packets_ns))
        tg_text_append_format(out, "  %-15s%12s     (%.2f cores are in use without it)\n",
                              "packets", "unknown", c->quiet_cores);
    else
        tg_text_append_format(out, "  %-15s%12.2f ms  %10.0f ns a KiB sent, by the kernel\n",
                              "packets", 1e-6 * c->packets_ns, 1024 * c->packets_ns_per_byte);
}

static tg_status measure_core(const tg_invocation *invocation, tg_comm *comm, float *data,
                              size_t count, tg_text *out)
{
    const comm_settings *s = invocation->settings;
    const tg_comm_work work = {.kind = TG_COMM_ALL_REDUCE,
                               .what = "core time",
                               .data = data,
                               .count = count,
                               .wire = tg_parallel_ranks(&s->parallel).wire};
    tg_comm_core core;
    TG_TRY(tg_comm_core_measure(comm, &work, &core));
    if (invocation->common->json)
        put_core(s, comm, &core, out);
    else
        append_core(&core, out);
    return TG_OK;
}

static tg_status measure_all(const tg_invocation *invocation, tg_comm *comm, float *data,
                             tg_text *out)
{
    const comm_settings *s = invocation->settings;
    static const struct {
        tg_comm_kind kind;
        const char *name;
    } kinds[] = {{TG_COMM_ALL_REDUCE, "all-reduce"},
                 {TG_COMM_REDUCE_SCATTER, "reduce-scatter"},
                 {TG_COMM_ALL_GATHER, "all-gather"}};
    const tg_dtype wire = tg_parallel_ranks(&s->parallel).wire;
    result r;
    tg_comm_work work = {.what = "bench", .data = data, .wire = wire};
    TG_TRY(measure(comm, s, &work, "meeting", &r));
    print(invocation, comm, &r, out);
    for (size_t k = 0; k < TG_COUNT_OF(kinds); k++)
        for (size_t i = 0; i < s->mib.count; i++) {
            work.kind = kinds[k].kind;
            work.count = (size_t)ceil(s->mib.values[i] * 262144);
            TG_TRY(measure(comm, s, &work, kinds[k].name, &r));
            print(invocation, comm, &r, out);
        }
    return TG_OK;
}

static tg_status run_ranks(const tg_invocation *invocation, tg_comm *comm)
{
    const comm_settings *s = invocation->settings;
    double largest = 0;
    tg_text text = {0};
    for (size_t i = 0; i < s->mib.count; i++)
        largest = fmax(largest, s->mib.values[i]);
    size_t bytes = (size_t)ceil(largest * 262144) * sizeof(float);
    float *data = aligned_alloc(64, (bytes + 63) & ~(size_t)63);
    tg_status status =
        data ? TG_OK : tg_fail(TG_ERROR_MACHINE, "out of memory: %zu bytes to exchange", bytes);
    TG_TRY_GOTO(tg_comm_agree(comm, "memory", status), free_all);
    memset(data, 0, bytes);
    if (!invocation->common->json)
        tg_text_append_format(&text, "%d ranks, %s\n\n", comm->size, comm->library);
    TG_TRY_GOTO(measure_all(invocation, comm, data, &text), free_all);
    TG_TRY_GOTO(measure_core(invocation, comm, data, bytes / sizeof(float), &text), free_all);
    if (comm->rank == 0)
        status = tg_console_print(&text);
free_all:
    tg_comm_quiet(comm);
    free(data);
    tg_text_done(&text);
    return status;
}

static tg_status run(const tg_invocation *invocation)
{
    const comm_settings *s = invocation->settings;
    tg_comm *comm;
    TG_TRY(tg_parallel_open(&s->parallel, &comm));
    tg_status status =
        comm->size > 1 ? run_ranks(invocation, comm)
                       : tg_fail(TG_ERROR_USAGE, "there is one rank, and nobody to exchange "
                                                 "with: mpirun -np 2 tagine bench comm --comm mpi");
    tg_parallel_close(comm, status);
    return status;
}

static const tg_command_note EXAMPLES[] = {
    {"mpirun -n 2 tagine bench comm --comm mpi --mib 1 --repeats 3",
     "How fast two ranks on this machine exchange 1 MiB"},
    {0},
};

const tg_command tg_command_bench_comm = {
    .name = "bench comm",
    .arguments = "",
    .summary = "Measure how fast the ranks of a job exchange",
    .description =
        "Started under mpirun or srun with --comm mpi, measures the latency of a meeting and the\n"
        "bandwidth of each collective that training uses, on a rank's link each way: the bytes a\n"
        "rank sends (and receives) over the time of the slowest. Then what an all-reduce takes of\n"
        "a rank's core while the rank does something else: the thread that moves messages, and "
        "the\n"
        "kernel's handling of packets, which can be told on a machine that does nothing besides.\n"
        "\n"
        "With --json, one object a line: {\"collective\", \"ranks\", \"bytes\", \"seconds\",\n"
        "\"link_bytes_per_s\", \"link_share\", ...}; the last one, \"core\", has the core time in\n"
        "nanoseconds (packets null: not known). `plan --bench-comm` reads them.",
    .examples = EXAMPLES,
    .see_also = "train",
    .groups = GROUPS,
    .group_count = TG_COUNT_OF(GROUPS),
    .settings_bytes = sizeof(comm_settings),
    .run = run,
};
