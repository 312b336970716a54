#include "support/device.h"

#include "support/check.h"

#include <stdio.h>
#include <stdlib.h>

tg_cpu_level tg_test_cpu_cap(void)
{
    const char *name = getenv("TAGINE_TEST_CPU");
    if (!name || !*name)
        return TG_CPU_LEVEL_COUNT;
    tg_cpu_level level = tg_cpu_level_from_name(name);
    if (level == TG_CPU_LEVEL_COUNT) {
        fprintf(stderr, "TAGINE_TEST_CPU=%s is no instruction set level\n", name);
        exit(1);
    }
    return level;
}

tg_stream *tg_test_stream(void)
{
    tg_stream *stream = NULL;
    if (tg_stream_open_cpu(2, tg_test_cpu_cap(), &stream) < 0) {
        fprintf(stderr, "no stream: %s\n", tg_error_message());
        exit(1);
    }
    return stream;
}
