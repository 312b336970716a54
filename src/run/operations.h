/* operations.h - trace/operations-rank-N.json: how long each kind of operation took, added up over the steps of a run.
 *
 *   {"version":1,"rank":0,"first_step":1,"last_step":224,"steps":224,"seconds":61.2,"peak_flops_f32":...,
 *    "peak_flops_bf16":...,"recording_s":0.02,
 *    "operations":[{"name":"linear_forward","phase":"forward","shape":[6304,384,1152],"dtype":"bfloat16","calls":2688,
 *                   "seconds":4.1,"flops":...,"bytes":...},...]}
 *
 * Seconds  wall time: threads that work side by side count their share, so that the operations of a phase add up to no
 *          more than the phase. Exchanges side by side count once; most of their time lies beside other phases. flops and bytes are sums over the calls; 0: not counted for this operation.
 * Steps    of all attempts of a run: one that was done twice is in it twice, as its time was spent twice.
 * Peak     the machine's best matrix product of that type, NaN (null): not measured (of the type that the job computed
 *          in, at its end; a killed, stopped or short job has none).
 * Written  whole, aside and renamed. Errors TG_ERROR_INPUT, TG_ERROR_MACHINE. Memory heap. Threads reentrant.
 */
#ifndef TG_RUN_OPERATIONS_H
#define TG_RUN_OPERATIONS_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

enum { TG_OPERATION_DIMENSIONS = 4 };

typedef struct tg_operation {
    char name[48]; /* "linear_forward"; "gradients": an exchange between ranks */
    char phase
        [24]; /* "data", "teacher", "forward", "backward", "optimizer": of the thread that trains; "wait": what it
                      waited for other ranks; "exchange": between them; "loader" */
    char dtype[12];                        /* "float32", "bfloat16"; "" where it means nothing */
    size_t shape[TG_OPERATION_DIMENSIONS]; /* unused ones 0 */
    uint64_t calls;
    double seconds, flops, bytes;
} tg_operation;

typedef struct tg_operations {
    int rank;
    int64_t first_step, last_step, steps; /* that were recorded */
    double seconds;                       /* these steps took */
    double peak_flops_f32, peak_flops_bf16;
    double recording_s; /* what recording itself took of it */
    tg_operation *each; /* from malloc */
    size_t count;
} tg_operations;

tg_status tg_operations_write(const char *path, const tg_operations *operations) TG_MUST_CHECK;
tg_status tg_operations_read(const char *path, tg_operations *out) TG_MUST_CHECK;
void tg_operations_done(tg_operations *operations);

#endif
