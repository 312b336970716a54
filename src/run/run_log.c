#include "run/run_log.h"

#include "os/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *tg_log_level_name(tg_log_level level)
{
    static const char *const NAMES[] = {"debug", "info", "warning", "warning", "error"};
    return NAMES[level];
}

tg_status tg_run_log_open(const tg_run_dir *dir, int rank, tg_run_log *out)
{
    char name[64];
    snprintf(name, sizeof name, "log/rank-%d.log", rank);
    char *path = tg_run_dir_path(dir, name);
    if (!path)
        return tg_fail(TG_ERROR_MACHINE, "%s: out of memory", dir->path);
    tg_run_log log = {.fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666)};
    tg_status status =
        log.fd < 0 ? tg_fail(TG_ERROR_MACHINE, "cannot write %s: %s", path, strerrordesc_np(errno))
                   : TG_OK;
    free(path);
    if (status == TG_OK)
        *out = log;
    return status;
}

void tg_run_log_close(tg_run_log *log)
{
    if (!log || log->fd <= 0)
        return;
    close(log->fd);
    for (int i = 0; i < TG_RUN_LOG_KEPT; i++)
        tg_text_done(&log->kept[i]);
    *log = (tg_run_log){.fd = -1};
}

void tg_run_log_line(tg_run_log *log, tg_log_level level, const char *line)
{
    char now[TG_CLOCK_ISO_BYTES];
    tg_text *text = &log->kept[log->count++ % TG_RUN_LOG_KEPT];
    tg_clock_iso(now);
    tg_text_clear(text);
    tg_text_append_format(text, "%s %s %s\n", now, tg_log_level_name(level), line);
    if (!text->failed)
        (void)!write(log->fd, text->data, text->length);
}

void tg_run_log_last(const tg_run_log *log, tg_text *out)
{
    unsigned kept = log->count < TG_RUN_LOG_KEPT ? log->count : TG_RUN_LOG_KEPT;
    for (unsigned i = log->count - kept; i != log->count; i++)
        tg_text_append_string(out, tg_text_string(&log->kept[i % TG_RUN_LOG_KEPT]));
}
