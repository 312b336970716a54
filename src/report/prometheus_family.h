/* prometheus_family.h - the samples of one name, with HELP and TYPE before the first; for prometheus*.c only. */
#ifndef TG_REPORT_PROMETHEUS_FAMILY_H
#define TG_REPORT_PROMETHEUS_FAMILY_H

#include "base/text.h"

#include <stdbool.h>

typedef struct tg_family {
    tg_text *out;
    const char *run; /* a label of every sample */
    const char *name, *help;
    bool begun;
} tg_family;

typedef struct tg_label {
    const char *name, *value; /* name NULL: there are no more */
} tg_label;

/* NaN: no sample. labels: up to an empty one; NULL: none but `run`. */
void tg_family_put(tg_family *family, const tg_label *labels, double value);

/* Machines: cores, threads by role, everything else that was sampled, accelerators. */
struct tg_live;
void tg_prometheus_print_machines(const struct tg_live *live, tg_text *out);

#endif
