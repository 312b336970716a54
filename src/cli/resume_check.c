#include "cli/resume_check.h"

#include "base/log.h"
#include "os/document.h"
#include "os/file.h"

#include <stdlib.h>
#include <string.h>

enum { JOB_MAX_BYTES = 4 << 20 };

static bool is_in(const char *const *names, size_t count, const char *key, size_t n)
{
    for (size_t i = 0; i < count; i++)
        if (strlen(names[i]) == n && memcmp(names[i], key, n) == 0)
            return true;
    return false;
}

/* The line behind "KEY:" in a printed job, of *out_n bytes; NULL where the key is unset or absent. */
static const char *value_of(const char *job, const char *key, size_t n, size_t *out_n)
{
    for (const char *line = job; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        if (strncmp(line, key, n) != 0 || line[n] != ':' || line[n + 1] != ' ')
            continue;
        *out_n = strcspn(line + n + 2, "\n");
        return line + n + 2;
    }
    *out_n = 0;
    return NULL;
}

static tg_status compare_key(const char *old, const char *now, const char *key, size_t n)
{
    static const char *const OTHER_TRAINING[] = {"teacher", "kd-loss"};
    static const char *const FREE[] = {"resume",
                                       "output",
                                       "experiment",
                                       "threads",
                                       "cpu-isa",
                                       "workers",
                                       "json",
                                       "quiet",
                                       "verbose",
                                       "epochs",
                                       "steps",
                                       "eval-interval",
                                       "checkpoint-hist",
                                       "checkpoint-steps",
                                       "strict",
                                       "max-bad-share",
                                       "trace",
                                       "trace-steps",
                                       "trace-outliers",
                                       "trace-budget",
                                       "monitor-interval",
                                       "monitor-budget",
                                       "tensorboard",
                                       "prometheus",
                                       "diagnose-interval",
                                       "diagnose-limits",
                                       "on-finding"};
    size_t n_old, n_now;
    const char *a = value_of(old, key, n, &n_old), *b = value_of(now, key, n, &n_now);
    if (is_in(FREE, TG_COUNT_OF(FREE), key, n) ||
        (n_old == n_now && (!n_old || memcmp(a, b, n_old) == 0)))
        return TG_OK;
    if (!a)
        a = "not set", n_old = strlen(a);
    if (!b)
        b = "not set", n_now = strlen(b);
    if (is_in(OTHER_TRAINING, TG_COUNT_OF(OTHER_TRAINING), key, n))
        return tg_fail(
            TG_ERROR_USAGE,
            "resume: --%.*s was %.*s and is now %.*s, which makes another training; start a "
            "new run with --initial-checkpoint",
            (int)n, key, (int)n_old, a, (int)n_now, b);
    tg_log_warning("resume: --%.*s was %.*s and is now %.*s", (int)n, key, (int)n_old, a,
                   (int)n_now, b);
    return TG_OK;
}

/* Every key of the printed options, set ("key: value") or not ("# key:"). */
static tg_status compare_jobs(const char *old, const char *now)
{
    for (const char *line = now; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        const char *key = line + (strncmp(line, "# ", 2) == 0 ? 2 : 0);
        TG_TRY(compare_key(old, now, key, strcspn(key, ":\n")));
    }
    return TG_OK;
}

static tg_status compare_command(const char *path, const char *now)
{
    tg_json json;
    if (!tg_file_exists(path))
        return TG_OK;
    TG_TRY(tg_json_read(path, &json));
    const char *then = NULL;
    tg_json_node root = tg_json_root(&json);
    tg_status status = tg_json_get_string(&root, "command", TG_OPTIONAL, &then);
    if (status == TG_OK && then && strcmp(then, now) != 0)
        status =
            tg_fail(TG_ERROR_USAGE,
                    "resume: the run is one of tagine %s, and cannot go on as tagine %s; start a "
                    "new one with --initial-checkpoint",
                    then, now);
    tg_json_done(&json);
    return status;
}

static tg_status compare_options(const char *path, const tg_options *options)
{
    char *bytes;
    size_t length;
    tg_text now = {0};
    if (!tg_file_exists(path))
        return TG_OK;
    TG_TRY(tg_file_read(path, JOB_MAX_BYTES, &bytes, &length));
    tg_options_print(options, &now);
    tg_status status = tg_text_check(&now, "job.yaml");
    if (status == TG_OK)
        status = compare_jobs(bytes, tg_text_string(&now));
    tg_text_done(&now);
    free(bytes);
    return status;
}

tg_status tg_resume_check(const tg_run_dir *dir, const tg_invocation *invocation)
{
    char *last = tg_run_dir_path(dir, "checkpoints/last");
    char *record = tg_run_dir_path(dir, "run.json"), *job = tg_run_dir_path(dir, "job.yaml");
    tg_status status = TG_OK;
    if (!last || !record || !job)
        status = tg_fail(TG_ERROR_MACHINE, "out of memory for a path");
    else if (tg_file_exists(last))
        status = compare_command(record, invocation->command->name);
    if (status == TG_OK && tg_file_exists(last))
        status = compare_options(job, invocation->options);
    free(last);
    free(record);
    free(job);
    return status;
}
