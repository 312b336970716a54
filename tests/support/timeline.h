/* timeline.h - reads what trace/timeline.h writes, and holds it to the rules of such files. */
#ifndef TG_TESTS_SUPPORT_TIMELINE_H
#define TG_TESTS_SUPPORT_TIMELINE_H

#include <stddef.h>
#include <stdint.h>

typedef struct tg_test_event {
    char name[64], category[32];
    int64_t pid, row, begin_ns, end_ns;
    double step, mib, queued_us, stream, layer, correlation; /* NaN: not there */
} tg_test_event;

typedef struct tg_test_timeline {
    tg_test_event *events; /* complete ones, in the order of the file; heap */
    size_t count;
    int64_t rank, ranks, left_out;
    double offset_us, error_us;
    char rows[8][64]; /* names of the first ones; "": none */
    char process[128], notice[128];
} tg_test_timeline;

/* Fails the test where the file is not whole, two events of a row neither nest nor are apart, or what other tools ask for
 * is not there: of the file schemaVersion, deviceProperties and distributedInfo; of a "kernel" its stream, device and the
 * correlation of a step in which it lies. */
tg_test_timeline tg_test_timeline_read(const char *path);
void tg_test_timeline_done(tg_test_timeline *timeline);

#endif
