/* Any whole target grid works, the native one is copied bit for bit, and height and width are not
 * mixed up. */
#include "support/check.h"

#include "model/positions.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static float *noise(size_t n)
{
    float *x = malloc(n * sizeof *x);
    assert_non_null(x);
    for (size_t i = 0; i < n; i++)
        x[i] = (float)((i * 2654435761u >> 7) % 1000) / 500 - 1;
    return x;
}

static void native_grid_is_copied(void **state)
{
    (void)state;
    float *table = noise((2 + 37 * 37) * 3), *out = malloc((2 + 37 * 37) * 3 * sizeof *out);
    for (int rule = 0; rule < 3; rule++) {
        memset(out, 0xFF, (2 + 37 * 37) * 3 * sizeof *out);
        assert_ok(tg_positions_resample(table, 2, (tg_grid){37, 37}, (tg_grid){37, 37}, 3,
                                        (tg_positions_rule)rule, out));
        assert_memory_equal(out, table, (2 + 37 * 37) * 3 * sizeof *out);
    }
    free(out);
    free(table);
}

/* A constant table stays constant whatever the grid: every target's weights sum to 1. Poisoned
 * outputs show a row too few. */
static void every_grid_is_filled(void **state)
{
    (void)state;
    float table[37 * 37], *out = malloc(120 * 120 * sizeof *out);
    for (size_t i = 0; i < 37 * 37; i++)
        table[i] = 2;
    for (size_t h = 1; h <= 120; h += h < 40 ? 1 : 7)
        for (size_t w = 1; w <= 120; w += 17)
            for (int rule = 0; rule < 3; rule++) {
                memset(out, 0xFF, h * w * sizeof *out);
                assert_ok(tg_positions_resample(table, 0, (tg_grid){37, 37}, (tg_grid){h, w}, 1,
                                                (tg_positions_rule)rule, out));
                for (size_t i = 0; i < h * w; i++)
                    assert_true(fabsf(out[i] - 2) < 1e-6f);
            }
    free(out);
}

/* From a non-square grid too: transposing in and out commutes with resampling. */
static void height_and_width_keep_apart(void **state)
{
    (void)state;
    enum { H = 5, W = 9, TO_H = 16, TO_W = 4 };
    float *table = noise(H * W), turned[H * W], a[TO_H * TO_W], b[TO_H * TO_W];
    for (size_t y = 0; y < H; y++)
        for (size_t x = 0; x < W; x++)
            turned[x * H + y] = table[y * W + x];
    for (int rule = 0; rule < 3; rule++) {
        assert_ok(tg_positions_resample(table, 0, (tg_grid){H, W}, (tg_grid){TO_H, TO_W}, 1,
                                        (tg_positions_rule)rule, a));
        assert_ok(tg_positions_resample(turned, 0, (tg_grid){W, H}, (tg_grid){TO_W, TO_H}, 1,
                                        (tg_positions_rule)rule, b));
        for (size_t y = 0; y < TO_H; y++)
            for (size_t x = 0; x < TO_W; x++)
                assert_true(fabsf(a[y * TO_W + x] - b[x * TO_H + y]) < 1e-6f);
    }
    free(table);
}

static void prefix_rows_are_copied(void **state)
{
    (void)state;
    float *table = noise((3 + 16) * 2), out[(3 + 25) * 2];
    assert_ok(tg_positions_resample(table, 3, (tg_grid){4, 4}, (tg_grid){5, 5}, 2,
                                    TG_POSITIONS_ANTIALIAS, out));
    assert_memory_equal(out, table, 6 * sizeof *out);
    free(table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(native_grid_is_copied),
        cmocka_unit_test(every_grid_is_filled),
        cmocka_unit_test(height_and_width_keep_apart),
        cmocka_unit_test(prefix_rows_are_copied),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
