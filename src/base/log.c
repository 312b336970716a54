#include "base/log.h"

#include "base/text.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>

static struct {
    tg_log_sink sink;
    void *user;
    tg_log_level lowest;
} target = {NULL, NULL, TG_LOG_INFO};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void tg_log_set(tg_log_sink sink, void *user, tg_log_level lowest)
{
    target.sink = sink;
    target.user = user;
    target.lowest = lowest;
}

void tg_log(tg_log_level level, const char *format, ...)
{
    if (!target.sink || level < target.lowest)
        return;
    char line[TG_ERROR_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    tg_text text = {0};
    tg_text_append_visible(&text, line, "\\");
    pthread_mutex_lock(&lock);
    target.sink(target.user, level, text.failed ? line : tg_text_string(&text));
    pthread_mutex_unlock(&lock);
    tg_text_done(&text);
}
