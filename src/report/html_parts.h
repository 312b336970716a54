/* html_parts.h - the members of the page's data, one function for each, in the order of the page.
 *
 * Each appends members to the object that is open. Numbers have five digits, which is more than a screen shows; unknown
 * ones are null. Times are seconds since the run began (`origin`, wall time). TG_ERROR_MACHINE for memory.
 */
#ifndef TG_REPORT_HTML_PARTS_H
#define TG_REPORT_HTML_PARTS_H

#include "base/json_writer.h"
#include "report/html.h"

#include <stdint.h>

/* "key":[1.5,null,...] */
void tg_html_put_numbers(tg_json_writer *w, const char *key, const double *values, size_t count);
/* One number of five digits. */
void tg_html_put_number(tg_json_writer *w, const char *key, double value);
/* "key":"base64". TG_ERROR_MACHINE for memory. */
tg_status tg_html_put_bytes(tg_json_writer *w, const char *key, const uint8_t *bytes,
                            size_t count) TG_MUST_CHECK;
/* A share of 0 to 1 as a byte of 0 to 254; unknown is 255. */
uint8_t tg_html_share_byte(double share);

/* The time axis that all machines share; bins 0: nothing was sampled. */
typedef struct tg_html_grid {
    double origin, seconds; /* of a bin */
    size_t bins;
} tg_html_grid;

tg_html_grid tg_html_grid_make(const tg_history *history);

void tg_html_put_run(tg_json_writer *w, const tg_history *history, const tg_html_options *options);
void tg_html_put_facts(tg_json_writer *w, const tg_history *history);
void tg_html_put_missing(tg_json_writer *w, const tg_history *history);
/* What was found and what every rule came to; the ledger, null where there is none. */
tg_status tg_html_put_findings(tg_json_writer *w, const tg_history *history,
                               double origin) TG_MUST_CHECK;
void tg_html_put_ledger(tg_json_writer *w, const tg_history *history);
tg_status tg_html_put_steps(tg_json_writer *w, const tg_history *history,
                            double origin) TG_MUST_CHECK;
tg_status tg_html_put_evals(tg_json_writer *w, const tg_history *history) TG_MUST_CHECK;
tg_status tg_html_put_hosts(tg_json_writer *w, const tg_history *history,
                            const tg_html_grid *grid) TG_MUST_CHECK;
/* What of a machine was used, over all samples and by phase: members of its object. */
tg_status tg_html_put_use(tg_json_writer *w, const tg_history *history,
                          const tg_system_host *host) TG_MUST_CHECK;
tg_status tg_html_put_ranks(tg_json_writer *w, const tg_history *history) TG_MUST_CHECK;
tg_status tg_html_put_operations(tg_json_writer *w, const tg_history *history) TG_MUST_CHECK;

#endif
