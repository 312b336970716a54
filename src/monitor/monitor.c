#include "monitor/monitor.h"

#include "base/log.h"
#include "os/clock.h"
#include "os/folder.h"
#include "os/thread_name.h"
#include "run/control.h"
#include "run/system_line.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* A last sample of less than this says nothing. */
#define LAST_SAMPLE_S 0.02
/* Between looks at control.json. */
#define CONTROL_NS INT64_C(1000000000)
enum { STACK_BYTES = 256 << 10, PATH_BYTES = 4096, HOST_BYTES = 256 };

struct tg_monitor {
    tg_monitor_options options;
    char folder[PATH_BYTES], host[HOST_BYTES];
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool stop, ended; /* under the lock, as interval_ms is */
    int64_t interval_ms;

    /* the thread's */
    tg_sampler *sampler;
    tg_system_sample sample;
    tg_system_writer writer;
    tg_control_follower control;
    int64_t controlled_ns;
    bool writing, warned;
    int64_t begun_ns, sampled_ns, cpu_ns;
    tg_monitor_cost cost;
};

static int64_t thread_cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Once, and for good: a full disk would say it twice a second. */
static void warn(tg_monitor *m)
{
    if (!m->warned)
        tg_log_warning("the monitor lost samples of this machine: %s", tg_error_message());
    m->warned = true;
}

static tg_status open_file(tg_monitor *m)
{
    if (m->writing)
        return TG_OK;
    TG_TRY(tg_folder_make(m->folder));
    TG_TRY(tg_system_open(m->folder, m->host, tg_sampler_cores(m->sampler), 0,
                          m->options.budget_bytes, &m->writer));
    m->writing = true;
    return TG_OK;
}

static tg_status write_sample(tg_monitor *m)
{
    const uint64_t before = m->writing ? m->writer.bytes : 0;
    TG_TRY(open_file(m));
    tg_status status = tg_system_write(&m->writer, &m->sample);
    if (m->writer.bytes > before)
        m->cost.bytes += m->writer.bytes - before;
    return status;
}

static void take_sample(tg_monitor *m, int64_t now)
{
    const int64_t cpu_ns = thread_cpu_ns();
    tg_sampler_take(m->sampler, now, &m->sample);
    m->sample.values[TG_SYSTEM_MONITOR_CPU] =
        (double)(cpu_ns - m->cpu_ns) * 1e-9 / m->sample.seconds;
    m->cpu_ns = cpu_ns;
    m->sampled_ns = now;
    m->cost.samples++;
    if (m->folder[0] && write_sample(m) < 0)
        warn(m);
    if (m->options.show)
        m->options.show(m->options.user, &m->sample, tg_sampler_cores(m->sampler), 0);
}

bool tg_monitor_interval_is_good(int64_t interval_ms)
{
    return interval_ms == 0 || (interval_ms >= TG_MONITOR_INTERVAL_LEAST_MS &&
                                interval_ms <= TG_MONITOR_INTERVAL_MOST_MS);
}

/* What somebody asked through control.json. */
static void follow_control(tg_monitor *m, int64_t now)
{
    tg_control control;
    if (!m->options.control || now - m->controlled_ns < CONTROL_NS)
        return;
    m->controlled_ns = now;
    if (!tg_control_poll(&m->control, &control) ||
        !tg_monitor_interval_is_good(control.monitor_interval_ms))
        return;
    tg_monitor_set_interval(m, control.monitor_interval_ms);
}

/* Sleeps until `until_ns` (0: for ever), until something changes, or until it is time to look at control.json. Returns the
 * interval; *out_stop as it is now. */
static int64_t wait_until(tg_monitor *m, int64_t until_ns, bool *out_stop)
{
    const int64_t look_ns = m->options.control ? m->controlled_ns + CONTROL_NS : 0;
    if (look_ns && (!until_ns || look_ns < until_ns))
        until_ns = look_ns;
    const struct timespec until = {.tv_sec = until_ns / 1000000000,
                                   .tv_nsec = until_ns % 1000000000};
    pthread_mutex_lock(&m->lock);
    const int64_t before = m->interval_ms;
    int rc = 0;
    while (!m->stop && m->interval_ms == before && rc == 0)
        rc = until_ns ? pthread_cond_timedwait(&m->changed, &m->lock, &until)
                      : pthread_cond_wait(&m->changed, &m->lock);
    const int64_t interval_ms = m->interval_ms;
    *out_stop = m->stop;
    pthread_mutex_unlock(&m->lock);
    return interval_ms;
}

/* When the next sample is due after one at sampled_ns: never in the past, where a stopped process would catch up. */
static int64_t next_after(int64_t due_ns, int64_t now, int64_t interval_ms)
{
    const int64_t interval_ns = interval_ms * 1000000;
    if (!interval_ms)
        return 0;
    return due_ns + interval_ns > now ? due_ns + interval_ns : now + interval_ns;
}

static void sample_until_stopped(tg_monitor *m)
{
    bool stop = false;
    int64_t interval_ms = m->options.interval_ms;
    int64_t due = next_after(m->sampled_ns, m->sampled_ns, interval_ms);
    while (!stop) {
        const int64_t before_ms = interval_ms;
        interval_ms = wait_until(m, due, &stop);
        const int64_t now = tg_clock_ns();
        follow_control(m, now);
        if (interval_ms != before_ms)
            due = next_after(before_ms ? m->sampled_ns : now, now, interval_ms);
        if (stop || !due || now < due)
            continue;
        take_sample(m, now);
        due = next_after(due, now, interval_ms);
    }
    const int64_t now = tg_clock_ns();
    if (interval_ms && tg_clock_seconds(now - m->sampled_ns) >= LAST_SAMPLE_S)
        take_sample(m, now);
}

static void *run(void *user)
{
    tg_monitor *m = user;
    tg_thread_name_set(TG_THREAD_MONITOR);
    m->cpu_ns = thread_cpu_ns();
    sample_until_stopped(m);
    m->cost.seconds = tg_clock_seconds(tg_clock_ns() - m->begun_ns);
    m->cost.cpu_s = (double)thread_cpu_ns() * 1e-9;
    pthread_mutex_lock(&m->lock);
    m->ended = true;
    pthread_cond_broadcast(&m->changed);
    pthread_mutex_unlock(&m->lock);
    return NULL;
}

static void free_monitor(tg_monitor *m)
{
    if (m->writing)
        tg_system_close(&m->writer);
    tg_system_sample_done(&m->sample);
    tg_sampler_close(m->sampler);
    pthread_cond_destroy(&m->changed);
    pthread_mutex_destroy(&m->lock);
    free(m);
}

/* Signals are for the threads of the job. */
static tg_status start_thread(tg_monitor *m)
{
    pthread_attr_t attributes;
    sigset_t all, before;
    pthread_attr_init(&attributes);
    (void)pthread_attr_setstacksize(&attributes, STACK_BYTES);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int error = pthread_create(&m->thread, &attributes, run, m);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return error == 0 ? TG_OK
                      : tg_fail(TG_ERROR_MACHINE, "cannot start the monitor's thread: %s",
                                strerrordesc_np(error));
}

static void init_locks(tg_monitor *m)
{
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&m->lock, NULL);
    pthread_cond_init(&m->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

tg_status tg_monitor_start(const tg_monitor_options *options, tg_monitor **out)
{
    tg_status status;
    tg_monitor *m = calloc(1, sizeof *m);
    if (!m)
        return tg_fail(TG_ERROR_MACHINE, "out of memory for a monitor");
    init_locks(m);
    m->options = *options;
    m->interval_ms = options->interval_ms;
    snprintf(m->folder, sizeof m->folder, "%s", options->folder ? options->folder : "");
    snprintf(m->host, sizeof m->host, "%s", options->host);
    m->begun_ns = m->sampled_ns = m->controlled_ns = tg_clock_ns();
    if (options->control)
        tg_control_follow(options->control, &m->control);
    TG_TRY_GOTO(tg_sampler_open(&options->sampler, m->begun_ns, &m->sampler), free_it);
    TG_TRY_GOTO(tg_sampler_make(m->sampler, 0, &m->sample), free_it);
    TG_TRY_GOTO(start_thread(m), free_it);
    *out = m;
    return TG_OK;
free_it:
    free_monitor(m);
    return status;
}

void tg_monitor_set_interval(tg_monitor *m, int64_t interval_ms)
{
    pthread_mutex_lock(&m->lock);
    m->interval_ms = interval_ms;
    pthread_cond_broadcast(&m->changed);
    pthread_mutex_unlock(&m->lock);
}

/* Whether the thread has ended before the patience has. */
static bool await_end(tg_monitor *m)
{
    const int64_t until_ns = tg_clock_ns() + (int64_t)(TG_MONITOR_PATIENCE_S * 1e9);
    const struct timespec until = {.tv_sec = until_ns / 1000000000,
                                   .tv_nsec = until_ns % 1000000000};
    int rc = 0;
    pthread_mutex_lock(&m->lock);
    m->stop = true;
    pthread_cond_broadcast(&m->changed);
    while (!m->ended && rc == 0)
        rc = pthread_cond_timedwait(&m->changed, &m->lock, &until);
    const bool ended = m->ended;
    pthread_mutex_unlock(&m->lock);
    return ended;
}

void tg_monitor_stop(tg_monitor *m, tg_monitor_cost *out)
{
    if (out)
        *out = (tg_monitor_cost){.seconds = NAN, .cpu_s = NAN};
    if (!m)
        return;
    if (!await_end(m)) { /* what it holds is its own until the process ends */
        tg_log_warning("the monitor hangs in a read or a write, and is left behind");
        pthread_detach(m->thread);
        return;
    }
    pthread_join(m->thread, NULL);
    if (out)
        *out = m->cost;
    free_monitor(m);
}

void tg_monitor_cost_print(const tg_monitor_cost *cost, tg_text *out)
{
    tg_text_append_format(out, "%.2f %% of a core, ", 100 * cost->cpu_s / cost->seconds);
    if (cost->bytes < 100 << 10)
        tg_text_append_format(out, "%.1f KiB", (double)cost->bytes / 1024);
    else
        tg_text_append_format(out, "%.1f MiB", (double)cost->bytes / (1 << 20));
}
