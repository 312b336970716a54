/* device.h - the CPU stream of a test. The environment variable TAGINE_TEST_CPU (portable, avx2,
 * avx512, ...) caps its instruction set, so that one machine can run a suite as an older one would;
 * ./test.sh repeats the suites of kern, model, golden and train that way. */
#ifndef TG_TESTS_SUPPORT_DEVICE_H
#define TG_TESTS_SUPPORT_DEVICE_H

#include "dev/dev.h"

/* The cap asked for, TG_CPU_LEVEL_COUNT when none is. An unknown name ends the program with 1. */
tg_cpu_level tg_test_cpu_cap(void);

/* A stream of two threads under that cap, or the program fails. */
tg_stream *tg_test_stream(void);

#endif
