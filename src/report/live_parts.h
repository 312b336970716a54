/* live_parts.h - what live.c asks of the files beside it. */
#ifndef TG_REPORT_LIVE_PARTS_H
#define TG_REPORT_LIVE_PARTS_H

#include "report/live.h"

/* Machines: new files of system/, and what has come in those that are known. *io_news is set where something has. */
tg_status tg_live_look_at_hosts(tg_live *live, bool *io_news) TG_MUST_CHECK;
void tg_live_close_hosts(tg_live *live);

/* run.json and findings.json, where they are not those that were seen last. */
tg_status tg_live_look_at_documents(tg_live *live, bool *io_news) TG_MUST_CHECK;
void tg_live_close_documents(tg_live *live);

#endif
