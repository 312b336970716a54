/* bench_profile.h - the account of a step's operations as `tagine bench --profile` shows it.
 *
 * One row for each operation and shape, longest first, and a last one, "other", for what lies between
 * operations, so that times and shares add up to the step. All figures are means over the profiled
 * steps. `peak_flops_per_s` is what products are held against. Without a profile nothing is written.
 */
#ifndef TG_CLI_BENCH_PROFILE_H
#define TG_CLI_BENCH_PROFILE_H

#include "base/json_writer.h"
#include "train/bench.h"

/* Appends a table. */
void tg_bench_profile_append(tg_text *text, const tg_bench_profile *profile,
                             double peak_flops_per_s);
/* Puts "profile_steps", "profile_step_s" and the array "operations" into the object that is open. */
void tg_bench_profile_put(tg_json_writer *writer, const tg_bench_profile *profile,
                          double peak_flops_per_s);

#endif
