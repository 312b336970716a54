/* incremental.h - samples as the withdrawn managed monitor kept them, so that its old jobs can be looked at here, and ours
 * by what reads its folders.
 *
 *   FOLDER/system/incremental/<YYYYMMDDHH>/<unix seconds of the minute>.<node>.json, a row a line:
 *   {"Type":"cpu","Name":"cpu0","Dimension":"CPUUtilization","Value":4.76,"NodeId":"algo-1","Timestamp":1591160699.457}
 *
 * Rows       cpu CPUUtilization and i/o I/OWaitPercentage (of the core that Name says, of all without one), gpu
 *            GPUUtilization and GPUMemoryUtilization, memory MemoryUsedPercent; percent. Other rows (network, whose unit is
 *            nowhere said) are passed over.
 * Import     rows of a node within TG_INCREMENTAL_TICK_S are one sample. How a core's time was divided is not known: all of it
 *            counts as user. Values outside 0 to 100 are unknown. MemoryUsedPercent is passed over, as no bytes are known.
 *            A torn last line is passed over; any other line that is no row is an error that names file and line.
 * Export     all of a run's samples, as they are in its files; rows of what is unknown are left out.
 *
 * Errors  TG_ERROR_INPUT with file and line; TG_ERROR_USAGE where the output has samples of the same machine already;
 *         TG_ERROR_MACHINE for disk and memory. Memory: all rows of a folder at once, 32 bytes each.
 */
#ifndef TG_MONITOR_INCREMENTAL_H
#define TG_MONITOR_INCREMENTAL_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

#define TG_INCREMENTAL_TICK_S 0.05

typedef struct tg_incremental_count {
    size_t nodes, samples, rows;
} tg_incremental_count;

/* FOLDER is a job's, or its system/incremental itself; RUN/system is made. */
tg_status tg_system_import(const char *folder, const char *run_path,
                           tg_incremental_count *out) TG_MUST_CHECK;
/* What the folder has of the same minutes and machines is replaced. */
tg_status tg_system_export(const char *run_path, const char *folder,
                           tg_incremental_count *out) TG_MUST_CHECK;

#endif
