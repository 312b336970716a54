/* prometheus.h - a run as it stands now, in Prometheus' text format (version 0.0.4).
 *
 * Names begin with tagine_, those of accelerators are Triton's (nv_gpu_...). Every one has HELP and TYPE; the samples of a
 * name stand together; a value that is not known has no line. Units are Prometheus' base units: seconds, bytes, ratios.
 * Errors   those of the text. Threads reentrant.
 */
#ifndef TG_REPORT_PROMETHEUS_H
#define TG_REPORT_PROMETHEUS_H

#include "base/text.h"
#include "report/live.h"

void tg_prometheus_print(const tg_live *live, tg_text *out);

/* The same as a file for node_exporter's textfile collector: written beside it (PATH.new) and renamed, so that a reader sees
 * a whole one; not forced to disk, because it is worth nothing after a crash and a job must not wait for it.
 * TG_ERROR_MACHINE. */
tg_status tg_prometheus_write(const tg_live *live, const char *path) TG_MUST_CHECK;

#endif
