/* peak.h - the fastest large matrix product of this machine: what "share of the peak" is held against.
 *
 * Several sizes (cubes of 2048 and 4096, and the products of ViT-S/16 at batch 32), all operands in
 * the layouts that oneDNN picks, all threads of the stream on one product. Every size runs once to
 * warm up and then in turns until about two seconds are over. 2 M K N floating point operations a
 * product. The peak is the median rate of the size whose median is best: steps are held against it by
 * their median too. The fastest single run is reported beside it; on a shared host it is a matter of luck.
 *
 * Memory  the operands of the largest size (three matrices of 4096 x 4096), given back at the end.
 * Errors  TG_ERROR_MACHINE.
 * Threads the stream's.
 */
#ifndef TG_KERN_PEAK_H
#define TG_KERN_PEAK_H

#include "dev/dev.h"
#include "tensor/dtype.h"

typedef struct tg_peak {
    double flops_per_s;         /* of the best size, median */
    double fastest_flops_per_s; /* of any single run */
} tg_peak;

/* dtype: TG_F32, or TG_BF16 (bf16 operands and result, fp32 sums). */
tg_status tg_kern_peak(tg_stream *stream, tg_dtype dtype, tg_peak *out) TG_MUST_CHECK;
/* In about `seconds` instead: the larger sizes are left out where they would not end in time; the smallest runs. */
tg_status tg_kern_peak_within(tg_stream *stream, tg_dtype dtype, double seconds,
                              tg_peak *out) TG_MUST_CHECK;

#endif
