#include "cli/train_session.h"

#include "base/log.h"
#include "cli/console.h"
#include "cli/options_train.h"
#include "cli/options_train.h"
#include "cli/resume_check.h"
#include "cli/signal.h"
#include "kern/level.h"
#include "os/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* For the first rank to write why another one left. */
#define FIRST_SPEAKS_S 2.0

static tg_status write_job(const tg_invocation *invocation, const tg_train_session *s)
{
    tg_text yaml = {0};
    tg_options_print(invocation->options, &yaml);
    tg_status status = tg_text_check(&yaml, "job.yaml");
    if (status == TG_OK)
        status = tg_run_dir_write_job(&s->dir, tg_text_string(&yaml), yaml.length);
    tg_text_done(&yaml);
    return status;
}

static void describe(const tg_invocation *invocation, const tg_train_options *options,
                     tg_train_session *s)
{
    tg_dev_library(s->library);
    s->libraries[0] = (tg_run_pair){"matrix_products", s->library};
    tg_cpu_level level = tg_cpu_level_detect();
    if (options->cpu_cap < level)
        level = options->cpu_cap;
    tg_dtype dtype = options->recipe.amp && level >= TG_CPU_AVX512_BF16 ? TG_BF16 : TG_F32;
    s->kernels[0] = (tg_run_pair){"instruction_set", tg_cpu_level_name(level)};
    s->kernels[1] =
        (tg_run_pair){"attention", tg_cpu_level_name(tg_kern_attention_level(level, dtype))};
    s->kernels[2] = (tg_run_pair){"rows", tg_cpu_level_name(tg_kern_rows_level(level))};
    s->kernels[3] = (tg_run_pair){"products", tg_kern_products(level, dtype)};
    s->info.machine = s->cores->machine;
    s->info.each = s->cores->ranks;
    s->info.command = invocation->command->name;
    s->info.version = TG_PROGRAM_VERSION;
    s->info.libraries = s->libraries;
    s->info.library_count = 1;
    s->info.kernels = s->kernels;
    s->info.kernel_count = 4;
    s->info.ranks = options->comm->size;
    s->info.threads = options->threads;
    s->info.workers = tg_train_options_workers(options);
    s->info.start = s->start;
}

tg_status tg_train_session_begin(void *user)
{
    tg_train_session *s = user;
    if (s->info.start)
        return TG_OK;
    TG_TRY(tg_resume_check(&s->dir, s->invocation));
    TG_TRY(tg_run_dir_remove_failure(&s->dir));
    TG_TRY(write_job(s->invocation, s));
    tg_clock_iso(s->start);
    describe(s->invocation, s->options, s);
    tg_observer_begin(&s->observer, &((const tg_train_settings *)s->invocation->settings)->observer,
                      s->dir.path);
    return tg_run_info_write(&s->dir, &s->info);
}

tg_status tg_train_session_note_beginning(void *user)
{
    ((tg_train_session *)user)->begun = true;
    return TG_OK;
}

void tg_train_session_keep_subject(void *user, const tg_run_subject *subject)
{
    ((tg_train_session *)user)->info.subject = *subject;
}

void tg_train_session_keep_teacher(tg_train_session *s, const tg_evaluation *evaluation)
{
    s->info.teacher_score = (tg_run_teacher_score){.top1 = evaluation->top1,
                                                   .top5 = evaluation->top5,
                                                   .loss = evaluation->loss,
                                                   .images = evaluation->images};
}

void tg_train_session_keep_memory(void *user, const tg_memory_report *report)
{
    tg_train_session *s = user;
    for (int row = 0; row < TG_MEMORY_ROWS; row++)
        s->memory[row] = (tg_run_memory_row){.name = tg_memory_row_key((tg_memory_row)row),
                                             .predicted_bytes = report->predicted.bytes[row],
                                             .least_bytes = report->least.bytes[row],
                                             .most_bytes = report->most.bytes[row]};
    s->info.memory = (tg_run_memory){.rows = s->memory,
                                     .row_count = TG_MEMORY_ROWS,
                                     .predicted_bytes = report->predicted_bytes,
                                     .available_bytes = report->available_bytes,
                                     .peak_rss_bytes = report->peak_rss_bytes};
    if (s->info.start && tg_run_info_write(&s->dir, &s->info) != TG_OK)
        tg_log_warning("run.json was not completed: %s", tg_error_message());
}

void tg_train_session_show(tg_train_session *s, int64_t step)
{
    const tg_train_settings *settings = s->invocation->settings;
    const double now = tg_clock_unix(tg_clock_ns());
    if (!s->showing && step > 0) {
        s->showing = true;
        s->events = settings->extra.tensorboard ? tg_run_dir_path(&s->dir, "tensorboard") : NULL;
        tg_dashboards_open(s->dir.path, s->events, settings->extra.prometheus, step, now,
                           &s->dashboards);
    }
    if (s->showing)
        tg_dashboards_look(&s->dashboards, now, false);
}

/* How it ended is shown, too. */
static void end_showing(tg_train_session *s)
{
    if (!s->showing)
        return;
    tg_dashboards_look(&s->dashboards, tg_clock_unix(tg_clock_ns()), true);
    tg_dashboards_close(&s->dashboards);
    free(s->events);
}

void tg_train_session_keep_workers(void *user, int count)
{
    tg_train_session *s = user;
    s->info.workers = count;
    if (s->info.start && tg_run_info_write(&s->dir, &s->info) != TG_OK)
        tg_log_warning("run.json was not completed: %s", tg_error_message());
}

static bool has(const char *folder, const char *name)
{
    char *path = tg_path_join(folder, name);
    bool there = path && tg_file_exists(path);
    free(path);
    return there;
}

/* Where an earlier run left its records they stay as they are until this one is known to begin. */
static tg_status open_session(const char *path, const tg_comm *comm, tg_train_session *s)
{
    TG_TRY(tg_run_dir_open(path, &s->dir));
    s->opened = true;
    TG_TRY(tg_run_log_open(&s->dir, 0, &s->log));
    s->logging = true;
    tg_console_attach(&s->log);
    tg_log_info("run: %s", path);
    tg_rank_cores_log(s->cores, comm);
    return has(path, "run.json") || has(path, "model") ? TG_OK : tg_train_session_begin(s);
}

/* Ranks other than the first keep a log; what is said to people is the first's to say. */
static tg_status join_session(const char *path, int rank, tg_train_session *s)
{
    TG_TRY(tg_run_dir_join(path, &s->dir));
    s->opened = true;
    TG_TRY(tg_run_log_open(&s->dir, rank, &s->log));
    s->logging = true;
    tg_console_attach(&s->log);
    return TG_OK;
}

tg_status tg_train_session_open(tg_train_session *s, const char *path)
{
    tg_comm *comm = s->options->comm;
    s->rank = comm->rank;
    tg_status status = comm->rank == 0 ? open_session(path, comm, s) : TG_OK;
    TG_TRY(tg_comm_follow(comm, "the run's directory", status));
    status = comm->rank == 0 ? TG_OK : join_session(path, comm->rank, s);
    TG_TRY(tg_comm_agree(comm, "logs", status));
    s->begun =
        s->info.start != NULL; /* in a new folder the first rank has begun the records already */
    return tg_comm_take_first(comm, "records", &s->begun, sizeof s->begun);
}

/* Where the first rank cannot, one of the others writes how the run ended. Who does says it, too. */
static void stand_in_for_first(tg_train_session *s, tg_status status, const char *reason)
{
    char end[TG_CLOCK_ISO_BYTES];
    tg_text lines = {0};
    tg_run_log_last(&s->log, &lines);
    tg_clock_iso(end);
    tg_status written = tg_run_dir_add_failure(&s->dir, reason, tg_text_string(&lines));
    if (written >= 0)
        tg_console_settle(written == TG_OK);
    if (written == TG_OK)
        written = tg_run_info_complete(&s->dir, end, tg_status_exit_code(status), reason);
    if (written < 0)
        tg_log_own_warning("how the run ended was not written: %s", tg_error_message());
    tg_text_done(&lines);
}

/* Stays until the first rank has written how the run ended, because a launcher may end all of them as soon as one
 * is gone. Whether it has. */
static bool await_first(const tg_train_session *s)
{
    char *failure = tg_run_dir_path(&s->dir, "failure");
    bool written = failure && tg_file_await(failure, FIRST_SPEAKS_S);
    free(failure);
    return written;
}

/* Tells the others what ended this rank. */
static void leave_first(tg_train_session *s, tg_status status, const char *reason)
{
    char whose[TG_ERROR_BYTES + TG_COMM_HOST_BYTES + 32];
    tg_comm *comm = s->options->comm;
    tg_comm_leave(comm, reason);
    snprintf(whose, sizeof whose, "rank %d on %s: %s", comm->rank, tg_comm_host(comm, comm->rank),
             reason);
    if (s->begun && !await_first(s))
        stand_in_for_first(s, status, whose);
}

/* The end of another rank than the first is in its log; where the first one is gone, it is the run's failure. */
static void leave_word(tg_train_session *s, tg_status status, const char *reason)
{
    tg_comm *comm = s->options->comm;
    tg_run_log_line(&s->log, status == TG_ERROR_STOPPED ? TG_LOG_INFO : TG_LOG_ERROR, reason);
    if (s->begun && status == TG_ERROR_PEER && tg_comm_lost(comm, 0))
        stand_in_for_first(s, status, reason);
    (void)tg_fail(status, "%s", reason);
    if (status == TG_ERROR_STOPPED || tg_comm_agreed(comm))
        return; /* all end together */
    if (status != TG_ERROR_PEER)
        leave_first(s, status, reason);
    else if (s->begun && !tg_comm_lost(comm, 0))
        (void)await_first(s);
}

/* run.json, and `failure` when it failed. */
static void write_end(tg_train_session *s, tg_status status, const char *reason)
{
    char end[TG_CLOCK_ISO_BYTES];
    tg_clock_iso(end);
    s->info.end = end;
    s->info.exit_code =
        status == TG_ERROR_STOPPED ? tg_signal_exit_code() : tg_status_exit_code(status);
    s->info.failure = status < 0 ? reason : NULL;
    if (tg_run_info_write(&s->dir, &s->info) != TG_OK)
        tg_log_warning("run.json was not completed: %s", tg_error_message());
    if (status >= 0 || status == TG_ERROR_STOPPED)
        return;
    tg_text lines = {0};
    tg_run_log_last(&s->log, &lines);
    if (tg_run_dir_write_failure(&s->dir, reason, tg_text_string(&lines)) != TG_OK)
        tg_log_warning("the reason was not written: %s", tg_error_message());
    tg_text_done(&lines);
}

/* Why it ended and, where others are to blame and something was saved, how to go on. What all have agreed on stays as
 * it is, by which tg_comm_agreed knows it. */
static void give_reason(const tg_train_session *s, tg_status status, char out[TG_ERROR_BYTES])
{
    const char *advice = "";
    if (status == TG_ERROR_PEER && s->opened && !tg_comm_agreed(s->options->comm) &&
        has(s->options->output.output, "checkpoints/last"))
        advice = ". The last checkpoint is whole: start again with --resume auto";
    const size_t room = TG_ERROR_BYTES - 1 - strlen(advice);
    snprintf(out, TG_ERROR_BYTES, "%.*s%s", (int)room, tg_error_message(), advice);
}

void tg_train_session_close(tg_train_session *s, tg_status status)
{
    char reason[TG_ERROR_BYTES];
    give_reason(s, status, reason);
    if (s->opened && s->info.start)
        write_end(s, status, reason);
    end_showing(s);
    tg_observer_end(&s->observer);
    if (s->opened && s->logging && s->rank > 0 && status < 0)
        leave_word(s, status, reason);
    tg_wall_close(&s->wall);
    tg_console_attach(NULL);
    if (s->logging)
        tg_run_log_close(&s->log);
    if (s->opened)
        tg_run_dir_close(&s->dir);
    if (status < 0)
        (void)tg_fail(status, "%s", reason);
}

tg_status tg_train_session_present(void *user)
{
    return tg_run_dir_check(&((tg_train_session *)user)->dir);
}
