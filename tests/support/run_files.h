/* run_files.h - run directories made for tests of what reads them, by the writers that jobs use. */
#ifndef TG_TESTS_SUPPORT_RUN_FILES_H
#define TG_TESTS_SUPPORT_RUN_FILES_H

#include "run/metrics.h"
#include "run/spans.h"
#include "run/system.h"

#include <stddef.h>

/* A fresh run directory of that name in the test's folder, with its folders; from malloc. */
char *tg_run_files_make(const char *name);
/* Replaces a file of it. */
void tg_run_files_write(const char *run, const char *name, const char *text);
/* Appends to a file of it. */
void tg_run_files_append(const char *run, const char *name, const char *text);

/* A step of `seconds` that ends at `time`: 1 % data, 30 % forward, 60 % backward, 9 % optimizer. */
tg_step_record tg_run_files_step(int64_t step, double time, double seconds);
/* metrics.jsonl with steps first to last, of `seconds` each, the first beginning at `time`; the loss falls from 3. */
void tg_run_files_steps(const char *run, int64_t first, int64_t last, double time, double seconds);

/* A sample with all unknown but cores (busy each), `running` and memory; its arrays are the caller's to free. */
tg_system_sample tg_run_files_sample(double time, size_t cores, double busy, double running);
/* Appends it to system/HOST.jsonl, and frees its arrays. */
void tg_run_files_add_sample(const char *run, const char *host, size_t cores,
                             tg_system_sample *sample);

#endif
