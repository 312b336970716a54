/* history.h - synthetic runs for tests of what reads them: made in memory, and written as a run directory on demand.
 *
 *   tg_test_run run = tg_test_run_new();           an empty one: no input is there
 *   tg_test_run_options(&run, "workers: 48\n");    job.yaml
 *   tg_test_run_machine(&run, 2, 2, 48);           run.json: cores, compute threads, loader threads
 *   tg_test_run_steps(&run, 200, &step);           200 copies of a step, numbered on, one after another in time
 *   tg_test_run_samples(&run, "a", 2, 0, 400, &sample);  400 copies of a sample of machine a: 2 cores
 *   ... run.history.steps[120].t_step = 3 ...      whatever is to be different in one of them
 *   tg_test_run_done(&run);
 *
 * Time begins at TG_TEST_RUN_BEGIN. Steps have their time set and t_step is what is given; t_other takes what the parts
 * leave, where it is 0. Samples end every `seconds` of theirs from the begin on. The history owns all, as an opened one
 * does. Any failure fails the test.
 */
#ifndef TG_TESTS_SUPPORT_HISTORY_H
#define TG_TESTS_SUPPORT_HISTORY_H

#include "run/history.h"

#define TG_TEST_RUN_BEGIN 1772000000.0

typedef struct tg_test_run {
    tg_history history;
    size_t step_room, span_room, eval_room, row_room;
} tg_test_run;

tg_test_run tg_test_run_new(void);
void tg_test_run_done(tg_test_run *run);

void tg_test_run_options(tg_test_run *run, const char *yaml);
/* The text of run.json; tg_test_run_machine makes a usual one: host "a", `cores` usable ones, one rank, no end. */
void tg_test_run_info(tg_test_run *run, const char *json);
void tg_test_run_machine(tg_test_run *run, int cores, int threads, int workers);

/* Behind those that are there. */
void tg_test_run_steps(tg_test_run *run, size_t count, const tg_step_record *step);
void tg_test_run_evals(tg_test_run *run, size_t count, const tg_eval_record *eval);
void tg_test_run_span(tg_test_run *run, tg_span_kind kind, double time, double seconds,
                      int64_t step);
/* ranks.jsonl: `count` more steps of these ranks; numbered from 1 on. */
void tg_test_run_ranks(tg_test_run *run, size_t count, const tg_rank_step *each, size_t ranks);

/* A step of `t_step` seconds that computes: forward a third, backward two thirds; 32 images, finite losses. */
tg_step_record tg_test_step(double t_step);

/* What a sample says; all NaN, to begin with: tg_test_sample. */
typedef struct tg_test_sample_values {
    double seconds; /* 0.5 */
    double values[TG_SYSTEM_METRICS];
    float user, system, iowait, steal; /* of every core */
    tg_system_device device;           /* of every accelerator */
} tg_test_sample_values;

tg_test_sample_values tg_test_sample(void);
void tg_test_sample_role(tg_test_sample_values *sample, tg_system_role role, double threads,
                         double cpu, double wait);

/* `count` more of a machine, which is added where it is not there yet with so many cores and accelerators. */
void tg_test_run_samples(tg_test_run *run, const char *host, size_t cores, size_t devices,
                         size_t count, const tg_test_sample_values *sample);

/* A machine's operations (trace/operations-rank-N.json) of the next rank; `each` is copied. */
void tg_test_run_operations(tg_test_run *run, const tg_operations *operations);

/* The same as files below `path`, an empty folder. */
void tg_test_run_write(const tg_test_run *run, const char *path);

#endif
