/* Resampled position tables equal those of timm (antialias), transformers and the DeiT code (plain)
 * and the DINOv2 code (offset): golden values made in double precision by PyTorch. */
#include "support/check.h"

#include "ckpt/safetensors.h"
#include "model/positions.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static tg_safetensors golden;

static float *read_table(const char *name, size_t *out_count)
{
    const tg_safetensors_entry *entry = tg_safetensors_find(&golden, name);
    assert_non_null(entry);
    float *table = malloc(entry->count * sizeof *table);
    assert_non_null(table);
    assert_ok(tg_safetensors_read_f32(&golden, entry, table));
    *out_count = entry->count;
    return table;
}

static void equals_the_families(void **state)
{
    (void)state;
    static const char *const rules[] = {"antialias", "plain", "offset"};
    static const tg_grid grids[] = {{4, 4}, {9, 9}, {5, 8}, {3, 7}};
    size_t n, want_n;
    float *table = read_table("table", &n);
    assert_int_equal(n, 37 * 4);
    for (int rule = 0; rule < 3; rule++)
        for (size_t g = 0; g < 4; g++) {
            char name[64];
            snprintf(name, sizeof name, "%s/%zux%zu", rules[rule], grids[g].h, grids[g].w);
            float *want = read_table(name, &want_n), *got = malloc(want_n * sizeof *got);
            assert_non_null(got);
            assert_int_equal(want_n, (1 + grids[g].h * grids[g].w) * 4);
            assert_ok(tg_positions_resample(table, 1, (tg_grid){6, 6}, grids[g], 4,
                                            (tg_positions_rule)rule, got));
            /* plain and offset were made in double: half an ulp each. timm resamples in float: up
             * to 9 taps and two passes, each rounding by 2^-24 of at most 1.5 times the largest. */
            double limit = rule == TG_POSITIONS_ANTIALIAS ? 2 * 9 * 1.5 * 0x1p-24 : 0x1p-22;
            assert_close(got, want, want_n, 0, limit, name);
            free(got);
            free(want);
        }
    free(table);
}

int main(void)
{
    char path[1024];
    const char *source = tg_test_source_dir();
    if (!source)
        tg_skip_program("no source folder");
    snprintf(path, sizeof path, "%s/tests/golden/model/positions.safetensors", source);
    if (tg_safetensors_open(path, &golden) < 0)
        tg_skip_program(tg_error_message());
    const struct CMUnitTest tests[] = {cmocka_unit_test(equals_the_families)};
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    tg_safetensors_close(&golden);
    return failed;
}
