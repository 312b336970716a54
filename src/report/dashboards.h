/* dashboards.h - what a running job leaves for dashboards: TensorBoard's event files, a text file for Prometheus.
 *
 * Reads the job's own files as a watcher would (report/live.h) and writes what is new; called by the job between steps, at
 * most so often that it does not count. Never ends the job: what fails is a warning, once, and that dashboard is given up.
 * Memory heap, owned by the struct. Threads: one at a time.
 */
#ifndef TG_REPORT_DASHBOARDS_H
#define TG_REPORT_DASHBOARDS_H

#include "report/event_file.h"
#include "report/live.h"

#define TG_DASHBOARDS_S 5.0 /* between two looks */

typedef struct tg_dashboards {
    const char *tensorboard; /* folder; NULL: none, or given up */
    const char *prometheus;  /* file, likewise */
    tg_live *live;           /* NULL: not open */
    tg_event_file events;
    int64_t first_step; /* what lies before is another session's */
    int64_t step;       /* the last that came */
    double begin, looked_at, sampled_at;
    tg_status status; /* of the events of this look */
} tg_dashboards;

/* run: the run's directory, which has records by now. first_step: this process's. Both paths are borrowed; NULL: not wanted.
 * Without either nothing is open, and the rest does nothing. */
void tg_dashboards_open(const char *run, const char *tensorboard, const char *prometheus,
                        int64_t first_step, double now, tg_dashboards *out);
/* now: wall time. force: however short ago the last look was. */
void tg_dashboards_look(tg_dashboards *dashboards, double now, bool force);
void tg_dashboards_close(tg_dashboards *dashboards);

#endif
