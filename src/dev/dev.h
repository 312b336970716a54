/* dev.h - the device seam: memory, streams and copies of one compute device.
 *
 * A device owns memory; a stream is where work on it runs, in order. On the CPU a stream is a fixed
 * number of threads and every call returns when its work is done; on other devices calls may return
 * earlier and tg_stream_wait() is the meeting point. model/ and loss/ pass streams and device
 * pointers to the table of operations (kern/kern.h) and never look inside either.
 *
 * Errors  TG_ERROR_MACHINE when the device, its memory or its library is missing.
 * Threads one stream is used by one host thread at a time; different streams are independent.
 */
#ifndef TG_DEV_DEV_H
#define TG_DEV_DEV_H

#include "base/status.h"

#include <fenv.h>
#include <stddef.h>

typedef struct tg_stream tg_stream;

/* What computing changes on the thread that asks for it: rounding, exception masks and flags,
 * subnormal numbers, and the size of its OpenMP team, whether the runtime may shrink it, and how deep
 * teams may be nested. A program may leave it changed; a library brackets each call with enter and
 * leave, and its caller finds everything as it was. The other threads of the team keep our mode. Do
 * not nest; enter and leave on one thread. */
typedef struct tg_caller_mode {
    fenv_t environment;
    int team, dynamic, levels;
} tg_caller_mode;
/* Saves the caller's mode and sets ours: to nearest, nothing trapped, subnormals are zero, teams of
 * the size asked for. */
void tg_caller_mode_enter(tg_caller_mode *out_saved);
void tg_caller_mode_leave(const tg_caller_mode *saved);

/* What the CPU's instruction set allows; a higher level includes the lower ones. */
typedef enum tg_cpu_level {
    TG_CPU_PORTABLE,    /* plain C, what the compiler's baseline gives */
    TG_CPU_AVX2,        /* AVX2 + FMA + F16C */
    TG_CPU_AVX512,      /* AVX-512 F, BW, DQ, VL */
    TG_CPU_AVX512_BF16, /* + AVX512_BF16 */
    TG_CPU_AMX,         /* + AMX tiles with bf16 (and int8) */
    TG_CPU_LEVEL_COUNT
} tg_cpu_level;

/* "portable", "avx2", "avx512", "avx512_bf16", "amx" */
const char *tg_cpu_level_name(tg_cpu_level level);
/* Looks a name up; TG_CPU_LEVEL_COUNT when unknown. */
tg_cpu_level tg_cpu_level_from_name(const char *name);
/* What this machine really has (CPUID, operating system support, AMX permission). */
tg_cpu_level tg_cpu_level_detect(void);

/* The smallest stack of a thread that computes; a training step takes about half of it. */
enum { TG_DEV_STACK_BYTES = 256 << 10 };

/* Opens a CPU stream of `threads` compute threads (>= 1). `cap` limits the instruction set: the
 * level used is min(cap, detected); it also caps oneDNN, whose cap is global to the process and can
 * only be set before its first primitive (a later different cap is an error). The calling thread is
 * left computing in our mode (tg_caller_mode), as the stream's host (tg_stream_adopt). */
tg_status tg_stream_open_cpu(int threads, tg_cpu_level cap, tg_stream **out) TG_MUST_CHECK;
/* Makes the calling thread the host of the stream, to be called before work on it when that may have
 * been another thread before: each host has a team of its own. TG_ERROR_MACHINE when the machine
 * refuses that many threads of the default stack size: found by starting them, once for each host,
 * because the OpenMP runtime would end the process; and when the runtime gives a smaller team
 * (OMP_THREAD_LIMIT): products divided for more threads than there are would be wrong. OMP_DYNAMIC
 * and OMP_MAX_ACTIVE_LEVELS are overruled. TG_ERROR_MACHINE also when a thread of the team has a
 * stack below TG_DEV_STACK_BYTES; one of OMP_STACKSIZE that the machine refuses still ends the
 * process. TG_ERROR_USAGE in a process forked from one where this
 * thread had a team: it would wait for ever for threads that fork does not copy. */
tg_status tg_stream_adopt(tg_stream *stream) TG_MUST_CHECK;
void tg_stream_close(tg_stream *stream);

/* Name and version of the library behind matrix products: "oneDNN 2.6.3". */
#define TG_DEV_LIBRARY_BYTES 64
void tg_dev_library(char out[TG_DEV_LIBRARY_BYTES]);

/* The most threads that a stream can have here: OMP_THREAD_LIMIT, else as many as an int counts. */
int tg_dev_thread_limit(void);

int tg_stream_threads(const tg_stream *stream);
tg_cpu_level tg_stream_level(const tg_stream *stream);
/* True when bf16 compute is available at this level (products accumulate in fp32). */
int tg_stream_has_bf16(const tg_stream *stream);

/* Does [begin, end) with `part`, a stream of one thread. */
typedef tg_status (*tg_stream_body)(tg_stream *part, size_t begin, size_t end, void *user);
/* Cuts [0, n) at multiples of `grain` into one part for each thread, as even as that allows, and runs
 * `body` on all of them side by side, each with a stream of its own (one thread, the same level, own
 * scratch). For work that is independent part by part and would else wait for the slowest thread
 * after every operation. `stream` is not used meanwhile; threads of the host's trace are traced. A
 * NULL stream (the reference table) does everything in one call. Returns the first part's failure. */
tg_status tg_stream_share(tg_stream *stream, size_t n, size_t grain, tg_stream_body body,
                          void *user) TG_MUST_CHECK;
/* Streams that work beside this one within tg_stream_share, itself included; else 1. */
int tg_stream_siblings(const tg_stream *stream);

/* Scratch memory of the stream for its operations: slot 0..TG_STREAM_SLOTS-1, 64-byte aligned, at
 * least `bytes` long, contents undefined, owned by the stream, grown (never shrunk) on demand. Slots
 * 0-7 belong to norm, tokens, loss and optim, 8-15 to linear and mlp, 16-23 to attention. NULL when
 * memory is short. A pointer is valid until the next call with the same slot. */
enum { TG_STREAM_SLOTS = 24 };
void *tg_stream_scratch(tg_stream *stream, int slot, size_t bytes);

/* Waits until everything issued to the stream is done. A no-op on the CPU. */
void tg_stream_wait(tg_stream *stream);
/* Host to device and back; plain copies on the CPU. */
void tg_stream_copy(tg_stream *stream, void *out_to, const void *from, size_t bytes);
void tg_stream_zero(tg_stream *stream, void *out_to, size_t bytes);

#endif
