/* check.h - what every test program includes: cmocka with its required headers, and helpers that
 * compare arrays and say where they differ most. Tests that need data that is absent call
 * tg_skip_program("why") before any test runs: the program exits 77 and ctest shows "Skipped". */
#ifndef TG_TESTS_SUPPORT_CHECK_H
#define TG_TESTS_SUPPORT_CHECK_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/status.h"

/* Fails with the recorded message unless the status is TG_OK. */
void tg_assert_ok_at(tg_status status, const char *file, int line);
#define assert_ok(expr) tg_assert_ok_at((expr), __FILE__, __LINE__)

/* Fails unless the status equals `expected` and the message contains `part` (NULL: any). */
void tg_assert_error_at(tg_status status, tg_status expected, const char *part, const char *file,
                        int line);
#define assert_error(expr, expected, part)                                                         \
    tg_assert_error_at((expr), (expected), (part), __FILE__, __LINE__)

/* max |got - want| <= atol + rtol * max|want|; reports the worst index. Non-finite `got` where
 * `want` is finite fails. */
void tg_assert_close_at(const float *got, const float *want, size_t n, double atol, double rtol,
                        const char *what, const char *file, int line);
#define assert_close(got, want, n, atol, rtol, what)                                               \
    tg_assert_close_at((got), (want), (n), (atol), (rtol), (what), __FILE__, __LINE__)

/* Folder of the source tree ($TAGINE_SOURCE_DIR), and of the real photos beside it
 * ($TAGINE_SHARED_DIR, else <source>/../shared); NULL when that folder is absent. */
const char *tg_test_source_dir(void);
const char *tg_test_shared_dir(void);
/* A fresh empty folder for this test program, removed at exit. */
const char *tg_test_temp_dir(void);

_Noreturn void tg_skip_program(const char *why);

#endif
