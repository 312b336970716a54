#include "cli/options_parallel.h"

#include "base/number.h"
#include "cli/command.h"
#include "cli/console.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { PATH_BYTES = 4096 };

#define PROCESS "SLURM_PROCID"
/* Set by MPICH's launcher alone, which in a job of Slurm starts by srun: ranks then see variables of both. */
#define HYDRA "HYDI_CONTROL_FD"

/* The first meeting of all ranks, also of those that have failed already. */
#define STARTING "starting"
/* The next one where a rank has failed: nobody goes, and makes the launcher end all, before it is said. */
#define SAID "what is wrong"
/* How long such a one waits for the others. */
enum { TELLING_S = 10 };
/* For the first to say what all have found, where they cannot meet. */
enum { FIRST_SPEAKS_S = 1 };
/* After which it has not: a launcher ends the others a second after the first is gone. */
enum { FIRST_IS_SILENT_S = 3 };

/* The first bucket is small, so that reducing begins while most of backward is still to come. */
enum { FIRST_BUCKET_SHARE = 4 };

const char *const tg_reduce_dtype_names[] = {"float32", "bfloat16", NULL};
static const char *const COMM_NAMES[] = {"self", "mpi", NULL};

#define AT(field) offsetof(tg_parallel_choice, field)
const tg_option tg_parallel_option_table[TG_PARALLEL_OPTION_COUNT] = {
    {.name = "comm",
     .type = TG_OPTION_CHOICE,
     .offset = AT(comm),
     .initial = "self",
     .choices = COMM_NAMES,
     .metavar = "KIND",
     .help = "self: this process alone; mpi: the ranks that mpirun or srun started"},
    {.name = "stall-seconds",
     .type = TG_OPTION_DOUBLE,
     .offset = AT(stall_s),
     .initial = "60",
     .metavar = "S",
     .help = "give up when nothing has come from another rank for so long",
     .low = 1,
     .high = 1e6},
    {.name = "bucket-mib",
     .type = TG_OPTION_DOUBLE,
     .offset = AT(bucket_mib),
     .initial = "4",
     .metavar = "MIB",
     .help = "gradients that go to other ranks at once, as fp32; the first time a quarter of it",
     .low = 0.001,
     .high = 1e5},
    {.name = "zero",
     .type = TG_OPTION_INT,
     .offset = AT(zero),
     .initial = "0",
     .metavar = "STAGE",
     .help = "1: each rank keeps its share of the optimizer's state (ZeRO); 0: each keeps all",
     .low = 0,
     .high = 1},
    {.name = "reduce-dtype",
     .type = TG_OPTION_CHOICE,
     .offset = AT(reduce_dtype),
     .initial = "float32",
     .choices = tg_reduce_dtype_names,
     .metavar = "TYPE",
     .help = "type of gradients on their way; sums are float32 always"},
};

tg_ranks_options tg_parallel_ranks(const tg_parallel_choice *choice)
{
    const size_t bytes = (size_t)(choice->bucket_mib * 1048576);
    return (tg_ranks_options){.bucket_bytes = bytes,
                              .first_bucket_bytes = bytes / FIRST_BUCKET_SHARE,
                              .wire = choice->reduce_dtype ? TG_BF16 : TG_F32,
                              .shard = choice->zero == 1};
}

/* Ranks that a variable speaks of; 0: it is not set, or is no number. */
static int64_t ranks_of(const char *variable)
{
    const char *text = getenv(variable);
    int64_t value;
    if (text && tg_number_parse_i64(text, strlen(text), &value) && value > 0)
        return value;
    return 0;
}

tg_comm_promise tg_parallel_promise(void)
{
    static const struct {
        const char *mark, *library, *size; /* set by it; the MPI it is for; number of ranks */
    } launchers[] = {
        {"OMPI_COMM_WORLD_SIZE", "openmpi", "OMPI_COMM_WORLD_SIZE"}, /* Open MPI's mpirun */
        {HYDRA, "mpich", "PMI_SIZE"},                           /* also where srun started it */
        {"PMIX_RANK", "openmpi", "SLURM_STEP_NUM_TASKS"},       /* srun --mpi=pmix */
        {"PMI_RANK", "mpich", "PMI_SIZE"},                      /* srun --mpi=pmi2 */
        {"SLURM_STEP_NUM_TASKS", NULL, "SLURM_STEP_NUM_TASKS"}, /* srun without MPI */
    };
    for (size_t i = 0; i < TG_COUNT_OF(launchers); i++)
        if (getenv(launchers[i].mark))
            return (tg_comm_promise){.library = launchers[i].library,
                                     .variable = launchers[i].size,
                                     .size = ranks_of(launchers[i].size)};
    const int64_t before = ranks_of(PROCESS), tasks = ranks_of("SLURM_NTASKS");
    if (before > 0) /* a batch script is process 0 whatever the number of its job's tasks */
        return (tg_comm_promise){.variable = PROCESS, .size = tasks > before ? tasks : before + 1};
    return (tg_comm_promise){0};
}

int64_t tg_parallel_rank(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", PROCESS};
    const bool hydra = getenv(HYDRA) && !getenv(names[0]);
    for (size_t i = hydra ? 2 : 0; i < TG_COUNT_OF(names); i++)
        if (getenv(names[i]))
            return ranks_of(names[i]);
    return 0;
}

const char *tg_parallel_unbound(void)
{
    if (getenv("SLURM_STEP_NUM_TASKS") && !getenv("OMPI_COMM_WORLD_SIZE") && !getenv(HYDRA))
        return "srun --cpus-per-task=N";
    if (getenv("OMPI_COMM_WORLD_SIZE"))
        return "mpirun --bind-to none (or --map-by slot:PE=N for N cores each)";
    return getenv("PMI_RANK") ? "mpirun -bind-to none" : NULL;
}

/* Where this program lies, and where it was installed to. */
static void module_folders(char own[PATH_BYTES], char installed[PATH_BYTES])
{
    ssize_t n = readlink("/proc/self/exe", own, PATH_BYTES - 1);
    own[n > 0 ? n : 0] = '\0';
    char *slash = strrchr(own, '/');
    if (slash)
        *slash = '\0';
    snprintf(installed, PATH_BYTES, "%.4000s/" TG_MODULE_FOLDER, own);
}

static tg_status join(const tg_comm_promise *promise, double stall_s, tg_comm **out)
{
    char own[PATH_BYTES], installed[PATH_BYTES], host[TG_COMM_HOST_BYTES] = "";
    const char *folders[] = {own, installed, NULL};
    module_folders(own, installed);
    gethostname(host, sizeof host - 1);
    const tg_comm_choice opening = {
        .promise = *promise, .folders = folders, .host = host, .stall_s = stall_s};
    return tg_comm_open_mpi(&opening, out);
}

static void name_itself(void)
{
    char host[TG_COMM_HOST_BYTES] = "";
    gethostname(host, sizeof host - 1);
    tg_console_set_rank((int)tg_parallel_rank(), host);
}

/* When all ranks before this one are lost, this one speaks. */
static void stand_in(tg_comm *comm)
{
    for (int r = 0; r < comm->rank; r++)
        if (!tg_comm_lost(comm, r))
            return;
    tg_console_speak();
}

/* A launcher ends all when one is gone: until the first has spoken, those that leave it to that one stay.
 * False: a signal came meanwhile, the first is gone. */
static bool let_first_speak(int seconds)
{
    return tg_parallel_rank() == 0 || nanosleep(&(struct timespec){.tv_sec = seconds}, NULL) == 0;
}

/* One of several processes that cannot find one another. All of them have this to say, but where only later
 * ones know. */
static tg_status refuse(const tg_comm_promise *promise, const char *remedy)
{
    name_itself();
    if (strcmp(promise->variable, PROCESS) == 0)
        tg_console_speak();
    else
        (void)let_first_speak(FIRST_SPEAKS_S);
    return tg_fail(TG_ERROR_USAGE,
                   "a launcher started %lld processes (%s), and each would do the whole work "
                   "alone: %s",
                   (long long)promise->size, promise->variable, remedy);
}

tg_status tg_parallel_open(const tg_parallel_choice *choice, tg_comm **out)
{
    const tg_comm_promise promise = tg_parallel_promise();
    tg_comm *comm;
    if (promise.size > 1 && choice->comm == TG_COMM_NAME_SELF)
        return refuse(&promise, "add --comm mpi, or start one");
    if (promise.size > 1 && !promise.library)
        return refuse(&promise, "--comm mpi needs to be told of the others; start them as "
                                "'srun --mpi=pmix tagine ...' or with mpirun");
    if (choice->comm == TG_COMM_NAME_SELF) {
        *out = tg_comm_self();
        return TG_OK;
    }
    TG_TRY(join(&promise, choice->stall_s, &comm));
    tg_status status = tg_comm_agree(comm, STARTING, TG_OK);
    tg_console_set_rank(comm->rank, tg_comm_host(comm, comm->rank));
    if (status < 0) {
        char reason[TG_ERROR_BYTES];
        snprintf(reason, sizeof reason, "%s", tg_error_message());
        stand_in(comm);
        tg_console_error(reason);
        (void)!tg_comm_agree(comm, SAID, TG_OK);
        (void)tg_fail(status, "%s", reason);
        tg_comm_close(comm);
        return status;
    }
    *out = comm;
    return TG_OK;
}

tg_status tg_parallel_tell_failure(tg_status status, bool mpi)
{
    char reason[TG_ERROR_BYTES];
    const tg_comm_promise promise = tg_parallel_promise();
    tg_comm *comm;
    if (tg_console_has_rank() || promise.size < 2 || status == TG_ERROR_STOPPED)
        return status;
    snprintf(reason, sizeof reason, "%s", tg_error_message());
    if (mpi && promise.library && join(&promise, TELLING_S, &comm) == TG_OK) {
        tg_fail(status, "%s", reason);
        tg_console_set_rank(comm->rank, tg_comm_host(comm, comm->rank));
        if (tg_comm_agree(comm, STARTING, status) == TG_ERROR_PEER)
            stand_in(comm);
        tg_console_error(reason);
        (void)!tg_comm_agree(comm, SAID, TG_OK);
        tg_comm_close(comm);
    } else { /* nobody knows whether the first says it too; when it has, the launcher ends the others */
        name_itself();
        if (let_first_speak(FIRST_IS_SILENT_S))
            tg_console_speak();
    }
    return tg_fail(status, "%s", reason);
}

void tg_parallel_close(tg_comm *comm, tg_status status)
{
    if (status == TG_ERROR_PEER)
        stand_in(comm);
    if (status < 0 && comm->size > 1 && !tg_console_reader_left())
        tg_console_error(tg_error_message());
    if (status < 0 && status != TG_ERROR_STOPPED && !tg_comm_agreed(comm))
        tg_comm_leave(comm, tg_error_message());
    tg_comm_close(comm);
}
