#include "dev/cpu/stream.h"

#include "base/checked.h"
#include "os/thread_name.h"

#include <assert.h>
#include <fenv.h>
#include <omp.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#if defined(__SSE__)
#include <xmmintrin.h>
#endif

/* What an OpenMP runtime takes for itself when a team starts, and for each thread besides its stack: with room to
 * spare, as LLVM's ends the process, or never stops saying why, when it gets none. */
enum {
    TABLE_BYTES = 4 << 20,
    TABLE_BYTES_EACH = 256 << 10,
    STACK_BYTES_MORE = 16 << 10,
    STACK_BYTES_EACH = 1 << 10
};

/* oneDNN's cap is a setting of the process; it is fixed by the first stream. */
static pthread_mutex_t cap_lock = PTHREAD_MUTEX_INITIALIZER;
static int cap_fixed = -1;

/* The largest team that this thread has had; OpenMP keeps its threads for it. */
static _Thread_local int team_tried = 1;
static _Thread_local pid_t team_process; /* that has them: a forked one has not */

tg_status tg_dnnl_status(dnnl_status_t status, const char *what)
{
    static const char *const causes[] = {
        "success",       "out of memory", "invalid arguments", "not offered for this shape",
        "iterator ends", "runtime error", "not required"};
    if (status == dnnl_success)
        return TG_OK;
    const char *cause = (unsigned)status < 7 ? causes[status] : "unknown error";
    return tg_fail(TG_ERROR_MACHINE, "oneDNN: %s: %s", what, cause);
}

tg_status tg_dnnl_room(void)
{
    enum { ROOM_BYTES = 4 << 20 };
    void *room = mmap(NULL, ROOM_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (room == MAP_FAILED)
        return tg_fail(
            TG_ERROR_MACHINE,
            "out of memory: less than %d MiB are left to prepare a matrix product; raise "
            "the limit on memory (ulimit -v), or ask for fewer --threads",
            ROOM_BYTES >> 20);
    (void)munmap(room, ROOM_BYTES);
    return TG_OK;
}

static dnnl_cpu_isa_t dnnl_isa(tg_cpu_level level)
{
    switch (level) {
    case TG_CPU_PORTABLE:
        return dnnl_cpu_isa_sse41;
    case TG_CPU_AVX2:
        return dnnl_cpu_isa_avx2;
    case TG_CPU_AVX512:
        return dnnl_cpu_isa_avx512_core_vnni;
    case TG_CPU_AVX512_BF16:
        return dnnl_cpu_isa_avx512_core_bf16;
    default:
        return dnnl_cpu_isa_all;
    }
}

static tg_status fix_cap(tg_cpu_level level)
{
    tg_status status = TG_OK;
    pthread_mutex_lock(&cap_lock);
    if (cap_fixed < 0) {
        /* fails only when a primitive already exists: then oneDNN stays at what it chose */
        (void)dnnl_set_max_cpu_isa(dnnl_isa(level));
        cap_fixed = (int)level;
    } else if (cap_fixed < (int)level) {
        status = tg_fail(TG_ERROR_USAGE,
                         "instruction set level %s was asked for, but this process is already "
                         "capped at %s",
                         tg_cpu_level_name(level), tg_cpu_level_name((tg_cpu_level)cap_fixed));
    }
    pthread_mutex_unlock(&cap_lock);
    return status;
}

/* Rounds to nearest, traps nothing, and takes values below the normal range for zero: they would
 * slow every operation down by up to 100 times. */
static void set_float_mode(void)
{
#if defined(__SSE__)
    _mm_setcsr(0x1F80 | 0x8040); /* all masked; flush to zero, denormals are zero */
#endif
}

/* Of the calling thread; SIZE_MAX when the system does not say. */
static size_t stack_bytes(void)
{
    pthread_attr_t attributes;
    size_t bytes = SIZE_MAX;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0)
        return bytes;
    if (pthread_attr_getstacksize(&attributes, &bytes) != 0)
        bytes = SIZE_MAX;
    pthread_attr_destroy(&attributes);
    return bytes;
}

/* Starts the team and gives it our mode. */
static tg_status start_team(int threads)
{
    int started = 1;
    size_t stack = SIZE_MAX;
#pragma omp parallel num_threads(threads) reduction(min : stack)
    {
        set_float_mode();
        stack = stack_bytes();
        if (omp_get_thread_num() == 0)
            started = omp_get_num_threads();
        else
            tg_thread_name_set(TG_THREAD_COMPUTE);
    }
    if (started < threads)
        return tg_fail(TG_ERROR_MACHINE,
                       "the OpenMP runtime gives %d of %d compute threads: raise or unset "
                       "OMP_THREAD_LIMIT (here %d), or ask for %d --threads",
                       started, threads, omp_get_thread_limit(), started);
    if (stack < TG_DEV_STACK_BYTES)
        return tg_fail(TG_ERROR_MACHINE,
                       "a compute thread has a stack of %zu KiB, and %d are needed: unset "
                       "OMP_STACKSIZE, or raise ulimit -s",
                       stack / 1024, TG_DEV_STACK_BYTES / 1024);
    return TG_OK;
}

/* Teams as large as they are asked for, also under OMP_DYNAMIC, under OMP_MAX_ACTIVE_LEVELS=0 and
 * within a caller's own team. */
static void set_team_mode(void)
{
    int level = omp_get_active_level() + 1;
    omp_set_dynamic(0);
    if (omp_get_max_active_levels() < level)
        omp_set_max_active_levels(level);
}

void tg_caller_mode_enter(tg_caller_mode *out_saved)
{
    out_saved->team = omp_get_max_threads();
    out_saved->dynamic = omp_get_dynamic();
    out_saved->levels = omp_get_max_active_levels();
    set_team_mode();
    (void)feholdexcept(&out_saved->environment);
    (void)fesetround(FE_TONEAREST);
    set_float_mode();
}

void tg_caller_mode_leave(const tg_caller_mode *saved)
{
    (void)fesetenv(&saved->environment);
    omp_set_num_threads(saved->team);
    omp_set_dynamic(saved->dynamic);
    omp_set_max_active_levels(saved->levels);
}

static void *wait_for_end(void *gate)
{
    pthread_mutex_lock(gate);
    pthread_mutex_unlock(gate);
    return NULL;
}

/* The system keeps the stacks of threads that have ended for the next ones, unless they are too small: LLVM's runtime
 * asks for a little more than usual, and more for every further thread. */
static void ask_for_stacks(pthread_attr_t *out, int threads)
{
    size_t bytes;
    pthread_attr_init(out);
    if (pthread_attr_getstacksize(out, &bytes) == 0)
        (void)pthread_attr_setstacksize(out, bytes + STACK_BYTES_MORE +
                                                 (size_t)threads * STACK_BYTES_EACH);
}

/* The OpenMP runtime ends the process when it cannot start a thread or has no memory for its own tables, so the
 * whole team is started once before it, beside as much memory: all at the same time, held by a lock that is open at
 * the end. */
static tg_status try_threads(int threads)
{
    pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
    pthread_attr_t attributes;
    int started = 0, wanted = threads - 1, error = 0;
    pthread_t *team = calloc((size_t)threads, sizeof *team);
    void *tables = malloc(TABLE_BYTES + (size_t)threads * TABLE_BYTES_EACH);
    if (!team || !tables) {
        free(tables);
        free(team);
        return tg_fail(TG_ERROR_MACHINE,
                       "out of memory for %d threads; raise the limit on memory (ulimit -v), or "
                       "ask for fewer --threads",
                       threads);
    }
    ask_for_stacks(&attributes, threads);
    pthread_mutex_lock(&gate);
    while (started < wanted &&
           (error = pthread_create(&team[started], &attributes, wait_for_end, &gate)) == 0)
        started++;
    pthread_mutex_unlock(&gate);
    pthread_attr_destroy(&attributes);
    for (int i = 0; i < started; i++)
        pthread_join(team[i], NULL);
    free(tables);
    free(team);
    if (error != 0)
        return tg_fail(TG_ERROR_MACHINE,
                       "cannot start compute thread %d of %d: %s; ask for fewer --threads, or "
                       "raise the limit on processes (ulimit -u, pids of the cgroup) or on memory "
                       "(ulimit -v; each thread has a stack of ulimit -s)",
                       started + 2, threads, strerrordesc_np(error));
    return TG_OK;
}

tg_status tg_stream_adopt(tg_stream *stream)
{
    bool first = stream->threads > team_tried;
    if (team_tried > 1 && team_process != getpid())
        return tg_fail(TG_ERROR_USAGE,
                       "this process was forked from one that had already started compute threads, "
                       "and fork does not copy those: open the model after fork only, or let the "
                       "new process exec");
    if (first)
        TG_TRY(try_threads(stream->threads));
    if (first || stream->host != &team_tried) {
        set_team_mode();
        tg_stream_enter(stream);
        TG_TRY(start_team(stream->threads));
        team_tried = first ? stream->threads : team_tried;
        team_process = getpid();
        stream->host = &team_tried;
    }
    return TG_OK;
}

tg_status tg_stream_open_cpu(int threads, tg_cpu_level cap, tg_stream **out)
{
    if (threads < 1)
        return tg_fail(TG_ERROR_USAGE, "%d compute threads: at least 1 is needed", threads);
    tg_cpu_level detected = tg_cpu_level_detect();
    tg_cpu_level level = cap < detected ? cap : detected;
    tg_stream *stream = calloc(1, sizeof *stream);
    if (!stream)
        return tg_fail(TG_ERROR_MACHINE, "out of memory for a stream");
    stream->threads = threads;
    stream->siblings = 1;
    stream->level = level;
    tg_status status;
    TG_TRY_GOTO(tg_stream_adopt(stream), close_stream);
    TG_TRY_GOTO(fix_cap(level), close_stream);
    TG_TRY_GOTO(tg_dnnl_status(dnnl_engine_create(&stream->engine, dnnl_cpu, 0), "open the CPU"),
                close_stream);
    TG_TRY_GOTO(
        tg_dnnl_status(dnnl_stream_create(&stream->dnnl, stream->engine, dnnl_stream_default_flags),
                       "open a stream"),
        close_stream);
    *out = stream;
    return TG_OK;
close_stream:
    tg_stream_close(stream);
    return status;
}

void tg_stream_close(tg_stream *stream)
{
    if (!stream)
        return;
    tg_stream_parts_free(stream);
    if (stream->products_free)
        stream->products_free(stream->products);
    if (stream->dnnl)
        dnnl_stream_destroy(stream->dnnl);
    if (stream->engine && stream->siblings == 1)
        dnnl_engine_destroy(stream->engine);
    for (int i = 0; i < TG_STREAM_SLOTS; i++)
        free(stream->scratch[i]);
    free(stream);
}

void tg_dev_library(char out[TG_DEV_LIBRARY_BYTES])
{
    const dnnl_version_t *v = dnnl_version();
    snprintf(out, TG_DEV_LIBRARY_BYTES, "oneDNN %d.%d.%d", v->major, v->minor, v->patch);
}

void tg_stream_enter(const tg_stream *stream)
{
    assert(!stream->shared);
    if (omp_get_max_threads() != stream->threads)
        omp_set_num_threads(stream->threads);
}

int tg_dev_thread_limit(void)
{
    return omp_get_thread_limit();
}

int tg_stream_threads(const tg_stream *stream)
{
    return stream->threads;
}

tg_cpu_level tg_stream_level(const tg_stream *stream)
{
    return stream->level;
}

int tg_stream_has_bf16(const tg_stream *stream)
{
    return stream->level >= TG_CPU_AVX512_BF16;
}

void *tg_stream_scratch(tg_stream *stream, int slot, size_t bytes)
{
    if (bytes <= stream->scratch_bytes[slot])
        return stream->scratch[slot];
    size_t size;
    if (!tg_round_up_size(bytes, bytes < 1 << 20 ? 4096 : 1 << 16, &size))
        return NULL;
    free(stream->scratch[slot]);
    stream->scratch[slot] = aligned_alloc(64, size);
    stream->scratch_bytes[slot] = stream->scratch[slot] ? size : 0;
    return stream->scratch[slot];
}

void tg_stream_wait(tg_stream *stream)
{
    (void)stream;
}

void tg_stream_copy(tg_stream *stream, void *out_to, const void *from, size_t bytes)
{
    (void)stream;
    if (bytes)
        memcpy(out_to, from, bytes);
}

void tg_stream_zero(tg_stream *stream, void *out_to, size_t bytes)
{
    (void)stream;
    if (bytes)
        memset(out_to, 0, bytes);
}
