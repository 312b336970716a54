#include "report/prometheus.h"

#include "report/prometheus_family.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Backslash, quote and line end are escaped; what is no UTF-8 is replaced. */
static void append_value(const char *value, tg_text *out)
{
    const bool utf8 = tg_text_is_utf8(value, strlen(value));
    for (; *value; value++) {
        if (*value == '\\' || *value == '"')
            tg_text_append_char(out, '\\');
        if (*value == '\n')
            tg_text_append_string(out, "\\n");
        else
            tg_text_append_char(out, utf8 || (unsigned char)*value < 0x80 ? *value : '?');
    }
}

static void append_label(const char *name, const char *value, tg_text *out)
{
    tg_text_append_format(out, "%s=\"", name);
    append_value(value, out);
    tg_text_append_char(out, '"');
}

void tg_family_put(tg_family *family, const tg_label *labels, double value)
{
    tg_text *out = family->out;
    if (isnan(value))
        return;
    if (!family->begun)
        tg_text_append_format(out, "# HELP %s %s\n# TYPE %s gauge\n", family->name, family->help,
                              family->name);
    family->begun = true;
    tg_text_append_format(out, "%s{", family->name);
    append_label("run", family->run, out);
    for (; labels && labels->name; labels++) {
        tg_text_append_char(out, ',');
        append_label(labels->name, labels->value, out);
    }
    tg_text_append_string(out, "} ");
    if (isinf(value))
        tg_text_append_string(out, value > 0 ? "+Inf" : "-Inf");
    else
        tg_text_append_double(out, value);
    tg_text_append_char(out, '\n');
}

static void put_one(const tg_live *live, tg_text *out, const char *name, const char *help,
                    double value)
{
    tg_family family = {.out = out, .run = live->path, .name = name, .help = help};
    tg_family_put(&family, NULL, value);
}

static void put_state(const tg_live *live, tg_text *out)
{
    const char *command = tg_live_info_text(live, "command");
    const char *version = tg_live_info_text(live, "version");
    const char *host = tg_live_info_text(live, "machine.host");
    const tg_label labels[] = {{"command", command ? command : ""},
                               {"version", version ? version : ""},
                               {"host", host ? host : ""},
                               {0}};
    tg_family info = {
        .out = out, .run = live->path, .name = "tagine_run_info", .help = "What runs, and where"};
    tg_family_put(&info, labels, live->info.json.root ? 1 : NAN);
    put_one(live, out, "tagine_run_running", "Whether the job runs",
            tg_live_get_state(live) == TG_LIVE_RUNS);
    put_one(live, out, "tagine_run_exit_code", "Exit code of a job that has ended",
            tg_live_info_number(live, "exit"));
    put_one(live, out, "tagine_ranks", "Processes of the job", tg_live_info_number(live, "ranks"));
    put_one(live, out, "tagine_steps_planned", "Optimizer steps of the whole run",
            tg_live_steps_planned(live));
    put_one(live, out, "tagine_time_left_seconds", "Until the last step at the pace so far",
            tg_live_get_state(live) == TG_LIVE_RUNS ? tg_live_seconds_left(live) : NAN);
}

static void put_last_step(const tg_live *live, tg_text *out)
{
    const tg_step_record *last = tg_live_last_step(live);
    if (!last)
        return;
    put_one(live, out, "tagine_step", "Optimizer steps done", (double)last->step);
    put_one(live, out, "tagine_epoch", "Epoch under way, from 1", (double)last->epoch + 1);
    put_one(live, out, "tagine_loss", "Loss of the last step", last->loss);
    put_one(live, out, "tagine_loss_task", "Its label term", last->loss_task);
    put_one(live, out, "tagine_loss_kd", "Its teacher's term", last->loss_kd);
    put_one(live, out, "tagine_learning_rate", "Learning rate of the last step", last->lr);
    put_one(live, out, "tagine_gradient_norm", "Norm of the gradient before clipping",
            last->grad_norm);
    put_one(live, out, "tagine_resident_memory_bytes", "Resident memory of the first rank",
            (double)last->rss_bytes);
    put_one(live, out, "tagine_last_step_timestamp_seconds", "When the last step ended",
            last->time);
}

static void put_ledger(const tg_live *live, tg_text *out)
{
    tg_live_ledger ledger;
    tg_live_get_ledger(live, 60, &ledger);
    const bool known = ledger.seconds > 0;
    tg_family phases = {.out = out,
                        .run = live->path,
                        .name = "tagine_step_phase_seconds",
                        .help = "Seconds of a step that a phase takes, mean of the last minute"};
    tg_family shares = {.out = out,
                        .run = live->path,
                        .name = "tagine_wall_time_ratio",
                        .help = "What the last minute went to; adds up to 1"};
    put_one(live, out, "tagine_images_per_second", "Over the last minute", ledger.images_per_s);
    put_one(live, out, "tagine_step_seconds", "Seconds a step, mean of the last minute",
            ledger.step_s);
    for (int p = 0; p < TG_LIVE_PHASES && ledger.steps; p++) {
        const tg_label labels[] = {{"phase", tg_live_phase_name((tg_live_phase)p)}, {0}};
        tg_family_put(&phases, labels, ledger.phases[p] * ledger.seconds / (double)ledger.steps);
    }
    for (int p = 0; p < TG_LIVE_PHASES + 4 && known; p++) {
        static const char *const REST[] = {"evaluation", "checkpoint", "start", "else"};
        const double rest[] = {ledger.evaluation, ledger.checkpoint, ledger.start, ledger.rest};
        const bool phase = p < TG_LIVE_PHASES;
        const tg_label labels[] = {
            {"part", phase ? tg_live_phase_name((tg_live_phase)p) : REST[p - TG_LIVE_PHASES]}, {0}};
        tg_family_put(&shares, labels, phase ? ledger.phases[p] : rest[p - TG_LIVE_PHASES]);
    }
}

static void put_evaluation(const tg_live *live, tg_text *out)
{
    if (!live->eval_count)
        return;
    put_one(live, out, "tagine_validation_top1_ratio", "Top-1 of the last evaluation",
            live->eval.val_top1 / 100);
    put_one(live, out, "tagine_validation_top5_ratio", "Top-5 of the last evaluation",
            live->eval.val_top5 / 100);
    put_one(live, out, "tagine_validation_loss", "Cross-entropy of the last evaluation",
            live->eval.val_loss);
    put_one(live, out, "tagine_validation_best_top1_ratio", "Top-1 of the best evaluation",
            live->best.val_top1 / 100);
}

static void put_ranks(const tg_live *live, tg_text *out)
{
    tg_family family = {.out = out,
                        .run = live->path,
                        .name = "tagine_rank_phase_seconds",
                        .help = "Seconds of a step that a phase takes on a rank, mean of the last "
                                "16 steps"};
    for (size_t r = 0; r < live->rank_count && live->rank_rows; r++)
        for (int p = 0; p < TG_LIVE_PHASES; p++) {
            char rank[24];
            snprintf(rank, sizeof rank, "%zu", r);
            const tg_label labels[] = {
                {"rank", rank}, {"phase", tg_live_phase_name((tg_live_phase)p)}, {0}};
            tg_family_put(&family, labels, live->ranks[r].phases[p]);
        }
}

static void put_findings(const tg_live *live, tg_text *out)
{
    tg_family family = {.out = out,
                        .run = live->path,
                        .name = "tagine_finding",
                        .help = "What diagnosis has found; 1 for each"};
    for (size_t i = 0; i < live->finding_count && i < TG_LIVE_FINDINGS; i++) {
        const tg_live_finding *finding = &live->findings[i];
        bool again = false; /* of one rule and severity there may be several */
        for (size_t k = 0; k < i; k++)
            again = again || (strcmp(live->findings[k].rule, finding->rule) == 0 &&
                              strcmp(live->findings[k].severity, finding->severity) == 0);
        const tg_label labels[] = {{"rule", finding->rule}, {"severity", finding->severity}, {0}};
        tg_family_put(&family, labels, again ? NAN : 1);
    }
}

void tg_prometheus_print(const tg_live *live, tg_text *out)
{
    put_state(live, out);
    put_last_step(live, out);
    put_ledger(live, out);
    put_evaluation(live, out);
    put_ranks(live, out);
    put_findings(live, out);
    tg_prometheus_print_machines(live, out);
}

/* Its own kind of writing aside: the temporary's name must not end as the target's, which a collector looks for. */
static tg_status replace_file(const char *path, const tg_text *text)
{
    char aside[4096];
    tg_status status = TG_OK;
    if (snprintf(aside, sizeof aside, "%s.new", path) >= (int)sizeof aside)
        return tg_fail(TG_ERROR_USAGE, "%s: the path is too long", path);
    const int fd = open(aside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0)
        return tg_fail(TG_ERROR_MACHINE, "cannot write %s: %s", aside, strerrordesc_np(errno));
    const ssize_t n = write(fd, tg_text_string(text), text->length);
    if (n != (ssize_t)text->length)
        status = tg_fail(TG_ERROR_MACHINE, "cannot write %s: %s", aside,
                         strerrordesc_np(n < 0 ? errno : ENOSPC));
    close(fd);
    if (status == TG_OK && rename(aside, path) < 0)
        status = tg_fail(TG_ERROR_MACHINE, "cannot rename %s to %s: %s", aside, path,
                         strerrordesc_np(errno));
    if (status < 0)
        unlink(aside);
    return status;
}

tg_status tg_prometheus_write(const tg_live *live, const char *path)
{
    tg_text text = {0};
    tg_prometheus_print(live, &text);
    tg_status status = tg_text_check(&text, path);
    if (status == TG_OK)
        status = replace_file(path, &text);
    tg_text_done(&text);
    return status;
}
