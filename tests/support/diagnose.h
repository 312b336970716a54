/* diagnose.h - asking one rule about a synthetic run (support/history.h). */
#ifndef TG_TESTS_SUPPORT_DIAGNOSE_H
#define TG_TESTS_SUPPORT_DIAGNOSE_H

#include "diagnose/diagnose.h"
#include "support/history.h"

/* The rule's only finding; fails where it is quiet, lacks something, or finds two things. Copied to static storage that
 * the next call takes. limits: as of --limits, or NULL. */
const tg_finding *tg_test_fires(const tg_test_run *run, const char *rule, const char *limits);
/* Fails where it fires or lacks something. */
void tg_test_is_quiet(const tg_test_run *run, const char *rule, const char *limits);
/* Fails unless it lacks something that has these words in it. */
void tg_test_lacks(const tg_test_run *run, const char *rule, const char *words);

/* Whether the finding has this evidence, and how much; NaN: it has not. */
double tg_test_evidence(const tg_finding *finding, const char *name);

#endif
