/* tagine tune train, tune distill: batch, workers, threads and buckets by measuring. */
#include "cli/tune.h"

#include "base/log.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/rank_cores.h"
#include "cli/same_options.h"
#include "cli/signal.h"
#include "cli/tune_plot.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define MIB 1048576.0

/* Of what is there, left to everything else: caches of the photos' files above all. */
#define MARGIN 0.1

#define AT(field) offsetof(tg_tune_settings, field)
static const tg_option OPTIONS[] = {
    {.name = "find",
     .type = TG_OPTION_STRING,
     .offset = AT(find),
     .initial = "batch,workers,threads,bucket",
     .metavar = "LIST",
     .help = "what to look for; all else stays as given (workers with --data, bucket with more "
             "ranks)"},
    {.name = "seconds-per-trial",
     .type = TG_OPTION_DOUBLE,
     .offset = AT(seconds_per_trial),
     .initial = "2",
     .metavar = "S",
     .help = "timed steps of a trial take so long, one at least",
     .low = 0.01,
     .high = 3600},
    {.name = "max-seconds",
     .type = TG_OPTION_DOUBLE,
     .offset = AT(max_seconds),
     .initial = "120",
     .metavar = "S",
     .help = "no trial begins that would end later",
     .low = 0.1,
     .high = 1e6},
    {.name = "memory-limit-mib",
     .type = TG_OPTION_DOUBLE,
     .offset = AT(memory_limit_mib),
     .metavar = "MIB",
     .help = "that a rank may take, at most what is there (default: that less a tenth)",
     .low = 1,
     .high = 1e9},
    {.name = "max-batch-size",
     .type = TG_OPTION_INT,
     .offset = AT(max_batch_size),
     .initial = "0",
     .metavar = "N",
     .help = "no larger batch is tried; 0: as memory and photos allow",
     .low = 0,
     .high = 1 << 20},
    {.name = "output",
     .type = TG_OPTION_STRING,
     .offset = AT(output),
     .metavar = "FILE.yaml",
     .help = "write the options with what was found, for train --config FILE.yaml",
     .flags = TG_OPTION_FILE},
    {.name = "plot",
     .type = TG_OPTION_STRING,
     .offset = AT(plot),
     .metavar = "FILE.svg",
     .help = "draw images/s against context switches and the run queue",
     .flags = TG_OPTION_FILE},
};

/* The run's own options are taken and kept, so that a run's job.yaml can be the --config. */
#define RUN_GROUP                                                                                  \
    {"Run", tg_output_option_table + 1, TG_OUTPUT_OPTION_COUNT - 1, 0},                            \
    {                                                                                              \
        "Findings", tg_observer_option_table, TG_OBSERVER_OPTION_COUNT,                            \
            offsetof(tg_train_settings, observer)                                                  \
    }
static const tg_command_group TRAIN_GROUP_LIST[] = {
    {"Tuning", OPTIONS, TG_COUNT_OF(OPTIONS), 0}, TG_TRAIN_JOB_GROUPS, RUN_GROUP};
static const tg_command_group DISTILL_GROUP_LIST[] = {
    {"Tuning", OPTIONS, TG_COUNT_OF(OPTIONS), 0}, TG_DISTILL_GROUP, TG_TRAIN_JOB_GROUPS, RUN_GROUP};

static int stop_wanted(void *user)
{
    (void)user;
    return tg_signal_stop();
}

static tg_status told(void *user, const tg_tune_trial *trial, double done)
{
    (void)user;
    char note[96];
    if (trial->fits)
        snprintf(note, sizeof note, "batch %lld, %d thread%s, %d worker%s: %.1f images/s",
                 (long long)trial->setting.batch_size, trial->setting.threads,
                 trial->setting.threads == 1 ? "" : "s", trial->setting.workers,
                 trial->setting.workers == 1 ? "" : "s", trial->images_per_s);
    else
        snprintf(note, sizeof note, "batch %lld does not fit",
                 (long long)trial->setting.batch_size);
    tg_console_progress("tuning", (uint64_t)(100 * fmin(done, 1)), 100, note);
    return TG_OK;
}

static tg_status told_as_json(void *user, const tg_tune_trial *trial, double done)
{
    tg_text line = {0};
    TG_TRY(told(user, trial, done));
    tg_tune_put_trial(trial, &line);
    tg_status status = tg_console_print(&line);
    tg_text_done(&line);
    return status;
}

/* Names of stages with commas between. */
static tg_status parse_find(const char *text, bool out[TG_TUNE_COMPARE])
{
    for (const char *at = text; *at; at += strspn(at, ",")) {
        const size_t n = strcspn(at, ",");
        int stage = 0;
        while (stage < TG_TUNE_COMPARE &&
               (strlen(tg_tune_stage_name((tg_tune_stage)stage)) != n ||
                strncmp(at, tg_tune_stage_name((tg_tune_stage)stage), n) != 0))
            stage++;
        if (stage == TG_TUNE_COMPARE)
            return tg_fail(TG_ERROR_USAGE,
                           "--find %s: a list of batch, workers, threads and bucket", text);
        out[stage] = true;
        at += n;
    }
    return TG_OK;
}

/* What cannot be looked for is left out, and said where somebody may miss it. */
static tg_status choose_stages(const tg_tune_settings *s, const tg_tune_bed *bed, int ranks,
                               tg_tune_plan *plan)
{
    TG_TRY(parse_find(s->find, plan->find));
    if (plan->find[TG_TUNE_WORKERS] && !tg_tune_bed_photos(bed))
        tg_log_info("without --data pictures are generated in memory: the loader is left out, and "
                    "its workers are not looked for");
    if (plan->find[TG_TUNE_BATCH] && s->train.train.recipe.global_batch_size)
        tg_log_info("--global-batch-size stays as it is, and the batch of a rank with it");
    plan->find[TG_TUNE_WORKERS] &= tg_tune_bed_photos(bed) > 0;
    plan->find[TG_TUNE_BATCH] &= s->train.train.recipe.global_batch_size == 0;
    plan->find[TG_TUNE_BUCKET] &= ranks > 1;
    return TG_OK;
}

static tg_status make_plan(const tg_tune_settings *s, tg_tune_bed *bed, const tg_comm *comm,
                           double *out_available, tg_tune_plan *out)
{
    tg_cpu_share share;
    tg_invocation_share(&share);
    *out = (tg_tune_plan){.given = tg_tune_bed_given(bed),
                          .most_batch_size = s->max_batch_size ? s->max_batch_size : 1 << 20,
                          .ranks = comm->size,
                          .seconds_per_trial = s->seconds_per_trial,
                          .max_seconds = s->max_seconds};
    out->cores = comm->size > 1 ? out->given.threads : share.cpus;
    const int64_t photos = tg_tune_bed_most(bed);
    if (photos > 0 && photos < out->most_batch_size)
        out->most_batch_size = photos;
    TG_TRY(tg_tune_bed_available(bed, out_available));
    out->limit_bytes = *out_available * (1 - MARGIN);
    if (!isnan(s->memory_limit_mib))
        out->limit_bytes = fmin(s->memory_limit_mib * MIB, *out_available);
    return choose_stages(s, bed, comm->size, out);
}

static tg_status write_plot(const tg_tune_subject *subject, const tg_tune_result *result,
                            const char *path)
{
    tg_tune_plot plot;
    tg_text title = {0};
    tg_tune_plot_make(result, &plot);
    tg_text_append_format(&title, "tagine tune %s: %s, %d rank%s, %d cores", subject->command,
                          tg_tune_bed_model(subject->bed), subject->plan->ranks,
                          subject->plan->ranks == 1 ? "" : "s", subject->plan->cores);
    tg_status status = tg_tune_plot_write(&plot, tg_text_string(&title), path);
    tg_text_done(&title);
    return status;
}

/* The table and the files, from the first rank. */
static tg_status tell(const tg_tune_subject *subject, const tg_tune_result *result)
{
    const tg_tune_settings *s = subject->invocation->settings;
    tg_text text = {0};
    if (subject->invocation->common->json)
        tg_tune_put_result(subject, result, &text);
    else
        tg_tune_print_result(subject, result, &text);
    tg_status status = tg_console_print(&text);
    tg_text_done(&text);
    const bool from_file =
        tg_options_source(subject->invocation->options, "output") == TG_OPTION_FROM_FILE;
    if (status == TG_OK && s->plot && result->best != TG_TUNE_NO_ROW)
        status = write_plot(subject, result, s->plot);
    if (status < 0 || !s->output || from_file || result->best == TG_TUNE_NO_ROW)
        return status;
    const tg_tune_row *best = &result->rows[result->best];
    return tg_tune_write_yaml(subject, &best->setting, best->images_per_s, s->output);
}

static tg_status search(const tg_invocation *invocation, const tg_train_options *options,
                        tg_tune_bed *bed)
{
    const bool first = options->comm->rank == 0;
    tg_tune_plan plan;
    tg_tune_result result;
    tg_tune_subject subject = {.invocation = invocation,
                               .options = options,
                               .bed = bed,
                               .plan = &plan,
                               .command = strchr(invocation->command->name, ' ') + 1};
    TG_TRY(make_plan(invocation->settings, bed, options->comm, &subject.available_bytes, &plan));
    tg_tune_ops ops = tg_tune_bed_ops(bed);
    if (first)
        ops.told = invocation->common->json ? told_as_json : told;
    tg_status status = tg_tune_search(&plan, &ops, &result);
    tg_console_progress_end();
    if (status < 0 && status != TG_ERROR_STOPPED)
        return status;
    if (first)
        TG_TRY(tell(&subject, &result));
    return status;
}

/* Every rank with its cores. */
static tg_status run_rank(const tg_invocation *invocation, tg_train_settings *s, tg_comm *comm)
{
    tg_rank_cores cores = {0};
    tg_tune_bed *bed;
    s->train.comm = comm;
    s->train.ranks = tg_parallel_ranks(&s->parallel);
    s->train.stall_s = s->parallel.stall_s;
    tg_console_open(invocation->common->quiet, invocation->common->verbose);
    TG_TRY(tg_comm_agree(comm, "the same options", tg_same_options(comm, invocation->options)));
    TG_TRY(tg_rank_cores_open(invocation, comm, tg_train_workers_beside, &s->train, &cores));
    if (comm->rank == 0)
        tg_rank_cores_log(&cores, comm);
    s->train.threads = cores.threads;
    tg_rank_cores_close(&cores);
    TG_TRY(tg_tune_bed_open(&s->train, stop_wanted, NULL, &bed));
    tg_status status = search(invocation, &s->train, bed);
    tg_tune_bed_close(bed);
    return status;
}

/* Before anything takes time. */
static tg_status check_output(const tg_invocation *invocation, const tg_tune_settings *s)
{
    struct stat st;
    if (!s->output)
        return TG_OK;
    if (tg_options_source(invocation->options, "output") == TG_OPTION_FROM_FILE) {
        tg_log_info("the settings file's output, %s, is a run's, and stays as it is", s->output);
        return TG_OK;
    }
    if (stat(s->output, &st) == 0 && S_ISDIR(st.st_mode))
        return tg_fail(TG_ERROR_USAGE,
                       "--output %s: there is a folder of that name; a settings file is written, "
                       "as in --output %s.yaml",
                       s->output, s->output);
    return TG_OK;
}

static tg_status run(const tg_invocation *invocation)
{
    const tg_tune_settings *s = invocation->settings;
    tg_train_settings train = s->train;
    tg_comm *comm;
    train.train.output.resume = NULL; /* nothing is gone on with */
    TG_TRY(check_output(invocation, s));
    TG_TRY(tg_train_settings_resolve(&train, "tune", tg_invocation_threads(invocation),
                                     (tg_cpu_level)invocation->common->cpu_isa));
    if (train.train.model.initial_checkpoint &&
        tg_options_source(invocation->options, "model") == TG_OPTION_FROM_DEFAULT)
        train.train.model.model = NULL; /* a default asks for nothing */
    TG_TRY(tg_parallel_open(&train.parallel, &comm));
    tg_status status = run_rank(invocation, &train, comm);
    tg_parallel_close(comm, status);
    return status;
}

static tg_status run_distill(const tg_invocation *invocation)
{
    if (!((const tg_tune_settings *)invocation->settings)->train.train.distill.teacher)
        return tg_fail(TG_ERROR_USAGE, "--teacher is missing: the model folder to learn from");
    return run(invocation);
}

#define DESCRIPTION                                                                                \
    "Takes the options of the job, and finds what makes its steps fastest here: first the "        \
    "largest\nbatch that memory allows (predicted for each size as plan does, then tried), then "  \
    "the fastest\nbatch, loader workers, compute threads, and with several ranks the size of "     \
    "buckets. Trials are\nsteps of the very job, on its photos (--data) or on generated ones; "    \
    "nothing is trained or\nwritten but --output.\n\n"                                             \
    "Each setting is tried once, and the best of each kind again in turns; the median counts, "    \
    "half\nthe distance of its trials is the spread. Rates within the spread are a tie, which "    \
    "the "                                                                                         \
    "smaller\nsetting wins. SIGINT and SIGTERM end the trials; what is known is printed.\n\n"      \
    "--json: a line for each trial, then one with the choice."

static const tg_command_note TRAIN_EXAMPLES[] = {
    {"tagine tune train --data photos --img-size 32 --patch-size 8 --embed-dim 96 --depth 4 "
     "--max-seconds 6 --seconds-per-trial 0.2 --output tuned.yaml",
     "The fastest settings for a small network, kept in a file"},
    {"tagine train --config tuned.yaml --epochs 1 --output runs/fast", "Train with them"},
    {0},
};

const tg_command tg_command_tune_train = {
    .name = "tune train",
    .arguments = "",
    .summary = "Find the fastest batch, workers, threads and buckets of train",
    .description = DESCRIPTION,
    .examples = TRAIN_EXAMPLES,
    .see_also = "train, plan, bench train, bench loader",
    .groups = TRAIN_GROUP_LIST,
    .group_count = TG_COUNT_OF(TRAIN_GROUP_LIST),
    .settings_bytes = sizeof(tg_tune_settings),
    .run = run,
};

static const tg_command_note DISTILL_EXAMPLES[] = {
    {"tagine tune distill --teacher runs/teacher --img-size 32 --patch-size 8 --embed-dim 48 "
     "--depth 2 --max-batch-size 64 --max-seconds 4 --seconds-per-trial 0.2",
     "A student's batch and threads, without photos"},
    {0},
};

const tg_command tg_command_tune_distill = {
    .name = "tune distill",
    .arguments = "",
    .summary = "Find the fastest batch, workers, threads and buckets of distill",
    .description = DESCRIPTION,
    .examples = DISTILL_EXAMPLES,
    .see_also = "distill, plan, bench distill, bench loader",
    .groups = DISTILL_GROUP_LIST,
    .group_count = TG_COUNT_OF(DISTILL_GROUP_LIST),
    .settings_bytes = sizeof(tg_tune_settings),
    .run = run_distill,
};
