/* monitor_text.h - a sample of a machine as a line of 80 columns. */
#ifndef TG_CLI_MONITOR_TEXT_H
#define TG_CLI_MONITOR_TEXT_H

#include "base/text.h"
#include "run/system.h"

/* Two lines that name the columns. */
void tg_monitor_text_head(tg_text *out);
/* Unknown is "-". */
void tg_monitor_text_sample(const tg_system_sample *sample, size_t cores, size_t devices,
                            tg_text *out);

#endif
