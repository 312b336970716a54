#include "monitor/sampler.h"

#include "monitor/core_use.h"
#include "monitor/counters.h"
#include "monitor/frequency.h"
#include "monitor/group_use.h"
#include "monitor/machine_memory.h"
#include "monitor/pressure.h"
#include "monitor/threads.h"
#include "os/clock.h"
#include "run/system_line.h"

#include <math.h>
#include <stdlib.h>

#define SHORTEST_S 1e-3
/* Between looks at what changes rarely, and at what is dear to ask. */
#define SLOW_S 2.0
#define SLOWEST_S 10.0

struct tg_sampler {
    tg_core_use cores;
    tg_machine_memory memory;
    tg_threads threads;
    tg_group_use groups;
    tg_pressure pressure;
    tg_counters counters;
    tg_frequency frequency;
    int64_t before_ns, slow_ns, slowest_ns;
    tg_text text; /* what is being read */
};

/* Whether it is time again for what is looked at every so many seconds. */
static bool is_due(int64_t *last_ns, int64_t now_ns, double every_s)
{
    if (*last_ns && tg_clock_seconds(now_ns - *last_ns) < every_s)
        return false;
    *last_ns = now_ns;
    return true;
}

static void take(tg_sampler *s, int64_t now_ns, double seconds, tg_system_sample *out)
{
    const bool slow = is_due(&s->slow_ns, now_ns, SLOW_S);
    const bool slowest = is_due(&s->slowest_ns, now_ns, SLOWEST_S);
    tg_core_use_take(&s->cores, &s->text, seconds, out);
    tg_machine_memory_take(&s->memory, &s->text, seconds, out);
    tg_group_use_take(&s->groups, &s->text, seconds, slow, out);
    tg_pressure_take(&s->pressure, &s->text, seconds, out);
    tg_counters_take(&s->counters, &s->text, seconds, out);
    tg_frequency_take(&s->frequency, &s->text, s->cores.count, slowest, out);
    tg_threads_take(&s->threads, &s->text, seconds, out);
}

static tg_status first_look(tg_sampler *s, int64_t now_ns)
{
    tg_system_sample sample;
    TG_TRY(tg_sampler_make(s, 0, &sample));
    take(s, now_ns, SHORTEST_S, &sample);
    tg_system_sample_done(&sample);
    return TG_OK;
}

tg_status tg_sampler_open(const tg_sampler_options *options, int64_t now_ns, tg_sampler **out)
{
    tg_status status;
    tg_sampler *s = calloc(1, sizeof *s);
    if (!s)
        return tg_fail(TG_ERROR_MACHINE, "out of memory for a monitor");
    s->before_ns = now_ns;
    s->cores.stat.fd = -1;
    tg_machine_memory_open(options->root, &s->memory);
    tg_pressure_open(options->root, &s->pressure);
    tg_frequency_open(options->root, &s->frequency);
    TG_TRY_GOTO(tg_group_use_open(options->root, &s->groups), close_sampler);
    TG_TRY_GOTO(tg_counters_open(options->root, &s->counters), close_sampler);
    TG_TRY_GOTO(tg_core_use_open(options->root, &s->text, &s->cores), close_sampler);
    TG_TRY_GOTO(tg_threads_open(options->root, options->pids, options->pid_count, &s->threads),
                close_sampler);
    TG_TRY_GOTO(first_look(s, now_ns), close_sampler);
    *out = s;
    return TG_OK;
close_sampler:
    tg_sampler_close(s);
    return status;
}

size_t tg_sampler_cores(const tg_sampler *sampler)
{
    return sampler->cores.count;
}

tg_status tg_sampler_make(const tg_sampler *sampler, size_t devices, tg_system_sample *out)
{
    return tg_system_sample_make(sampler->cores.count, devices, out);
}

static void forget(const tg_sampler *s, tg_system_sample *out)
{
    for (int m = 0; m < TG_SYSTEM_METRICS; m++)
        out->values[m] = NAN;
    for (size_t c = 0; c < s->cores.count; c++)
        out->cores[c] = (tg_system_core){NAN, NAN, NAN, NAN};
}

void tg_sampler_take(tg_sampler *s, int64_t now_ns, tg_system_sample *out)
{
    const double seconds = fmax(SHORTEST_S, tg_clock_seconds(now_ns - s->before_ns));
    forget(s, out);
    out->time = tg_clock_unix(now_ns);
    out->seconds = seconds;
    take(s, now_ns, seconds, out);
    s->before_ns = now_ns;
}

void tg_sampler_close(tg_sampler *s)
{
    if (!s)
        return;
    tg_core_use_close(&s->cores);
    tg_machine_memory_close(&s->memory);
    tg_group_use_close(&s->groups);
    tg_pressure_close(&s->pressure);
    tg_counters_close(&s->counters);
    tg_threads_close(&s->threads);
    tg_text_done(&s->text);
    free(s);
}
