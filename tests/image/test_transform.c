/* Crop boxes equal torchvision's, tensors equal ToTensor and Normalize, and repeated work takes no
 * new memory. */
#include "support/check.h"

#include "base/rng.h"
#include "image/resize.h"
#include "image/transform.h"
#include "image/write_jpeg.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Resized size and crop offsets computed by hand from torchvision's rules, for 500 x 375 at 224. */
static void evaluation_boxes(void **state)
{
    (void)state;
    static const struct {
        double share;
        int width, height, left, top;
    } cases[] = {{0.875, 341, 256, 58, 16}, /* 117 / 2 = 58.5 rounds to even */
                 {0.9, 330, 248, 53, 12},
                 {0.95, 313, 235, 44, 6}, /* 89 / 2 = 44.5 to 44, 11 / 2 = 5.5 to 6 */
                 {1.0, 298, 224, 37, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tg_preprocess p = tg_preprocess_default(224);
        p.crop_pct = cases[i].share;
        tg_eval_plan plan = tg_preprocess_plan(&p, 500, 375);
        assert_int_equal(plan.resized_width_px, cases[i].width);
        assert_int_equal(plan.resized_height_px, cases[i].height);
        assert_int_equal(plan.crop.left_px, cases[i].left);
        assert_int_equal(plan.crop.top_px, cases[i].top);
    }
}

/* Extreme shapes give a whole picture of the network's size with little memory, also of the smallest
 * part that a model may ask for: the picture is thought of as a hundred times larger, not made so. */
static void extreme_shapes(void **state)
{
    (void)state;
    static const int sizes[][2] = {{1, 1}, {1, 5000}, {5000, 1}, {223, 223}, {224, 224}, {3, 7000}};
    tg_preprocess p = tg_preprocess_default(224);
    float *out = malloc(sizeof(float) * 3 * 224 * 224);
    tg_image_scratch scratch = {0};
    tg_image source = {0}, pixels = {0};
    assert_non_null(out);
    for (size_t k = 0; k < 2 * sizeof sizes / sizeof sizes[0]; k++) {
        size_t i = k / 2;
        p.crop_pct = k % 2 ? TG_CROP_PCT_MIN : 0.9;
        assert_ok(tg_image_reserve(&source, sizes[i][0], sizes[i][1]));
        memset(source.rgb, 200, (size_t)sizes[i][0] * (size_t)sizes[i][1] * 3);
        assert_ok(tg_preprocess_image(&p, &source, &scratch, &pixels, out));
        assert_true(pixels.width_px == 224 && pixels.height_px == 224);
        for (int j = 0; j < 3 * 224 * 224; j++)
            assert_true(out[j] ==
                        (200.0f / 255.0f - p.mean[j / (224 * 224)]) / p.std[j / (224 * 224)]);
    }
    assert_true(tg_image_scratch_bytes(&scratch) < (4 << 20));
    free(out);
    tg_image_done(&source);
    tg_image_done(&pixels);
    tg_image_scratch_done(&scratch);
}

static void tensor_values(void **state)
{
    (void)state;
    static const float mean[3] = {0.485f, 0.456f, 0.406f}, std[3] = {0.229f, 0.224f, 0.225f};
    uint8_t rgb[256 * 3];
    float out[256 * 3], mirrored[256 * 3];
    for (int i = 0; i < 256; i++)
        for (int c = 0; c < 3; c++)
            rgb[i * 3 + c] = (uint8_t)(i + 85 * c);
    tg_image image = tg_image_view(rgb, 64, 4);
    tg_image_to_tensor(&image, mean, std, false, out);
    tg_image_to_tensor(&image, mean, std, true, mirrored);
    for (int y = 0; y < 4; y++)
        for (int x = 0; x < 64; x++)
            for (int c = 0; c < 3; c++) {
                float v = ((float)rgb[(y * 64 + x) * 3 + c] / 255.0f - mean[c]) / std[c];
                assert_true(out[(c * 4 + y) * 64 + x] == v);
                assert_true(mirrored[(c * 4 + y) * 64 + 63 - x] == v);
            }
    tg_image_flip_horizontal(&image);
    tg_image_to_tensor(&image, mean, std, false, out);
    assert_memory_equal(out, mirrored, sizeof out);
}

static void flips(void **state)
{
    (void)state;
    uint8_t rgb[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18};
    static const uint8_t across[] = {7, 8, 9, 4, 5, 6, 1, 2, 3, 16, 17, 18, 13, 14, 15, 10, 11, 12};
    static const uint8_t both[] = {16, 17, 18, 13, 14, 15, 10, 11, 12, 7, 8, 9, 4, 5, 6, 1, 2, 3};
    tg_image image = tg_image_view(rgb, 3, 2);
    tg_image_flip_horizontal(&image);
    assert_memory_equal(rgb, across, sizeof rgb);
    tg_image_flip_vertical(&image);
    assert_memory_equal(rgb, both, sizeof rgb);
}

/* Every box lies inside, has an area and a ratio as asked (up to rounding), and the corners of the
 * random numbers reach the corners of the picture. */
static void random_crops(void **state)
{
    (void)state;
    tg_rng rng = tg_rng_init(3, 0, 0, TG_RNG_TEST);
    int fitted = 0;
    for (int i = 0; i < 2000; i++) {
        double u[4];
        tg_image_rect r;
        for (int k = 0; k < 4; k++)
            u[k] = tg_rng_uniform(&rng);
        if (!tg_crop_try(341, 256, 0.08, 1, 3.0 / 4, 4.0 / 3, u[0], u[1], u[2], u[3], &r))
            continue;
        fitted++;
        assert_true(r.left_px >= 0 && r.top_px >= 0 && r.left_px + r.width_px <= 341 &&
                    r.top_px + r.height_px <= 256);
        double area = (double)r.width_px * r.height_px / (341.0 * 256);
        double ratio = (double)r.width_px / r.height_px;
        assert_true(fabs(area - (0.08 + 0.92 * u[0])) < 0.01);
        assert_true(ratio > 0.75 - 0.02 && ratio < 4.0 / 3 + 0.03);
    }
    assert_true(fitted > 1200);
    tg_image_rect r;
    assert_true(tg_crop_try(100, 100, 0.25, 0.25, 1, 1, 0, 0, 0, 0.999999, &r));
    assert_true(r.left_px == 50 && r.top_px == 0 && r.width_px == 50 && r.height_px == 50);
    r = tg_crop_fallback(400, 100, 3.0 / 4, 4.0 / 3);
    assert_true(r.width_px == 133 && r.height_px == 100 && r.left_px == 133 && r.top_px == 0);
    r = tg_crop_fallback(100, 400, 3.0 / 4, 4.0 / 3);
    assert_true(r.width_px == 100 && r.height_px == 133 && r.left_px == 0 && r.top_px == 133);
}

/* A view has no slack behind its last pixel: the address sanitizer watches the vector version. */
static void views_are_not_read_past(void **state)
{
    (void)state;
    tg_image_scratch scratch = {0};
    tg_image a = {0}, b = {0};
    uint8_t *rgb = malloc(31 * 17 * 3);
    assert_non_null(rgb);
    for (int i = 0; i < 31 * 17 * 3; i++)
        rgb[i] = (uint8_t)(i * 37);
    tg_image view = tg_image_view(rgb, 31, 17);
    for (int w = 1; w < 70; w += 4) {
        tg_resize_spec spec = {.width_px = w, .height_px = 90 - w, .level = TG_RESIZE_PLAIN};
        assert_ok(tg_image_resize(&view, &spec, &scratch, &a));
        spec.level = TG_RESIZE_AUTO;
        assert_ok(tg_image_resize(&view, &spec, &scratch, &b));
        assert_memory_equal(a.rgb, b.rgb, (size_t)w * (size_t)(90 - w) * 3);
    }
    tg_resize_spec outside = {.width_px = 5, .height_px = 5, .crop = {20, 0, 12, 17}};
    assert_error(tg_image_resize(&view, &outside, &scratch, &a), TG_ERROR_USAGE, "outside");
    free(rgb);
    tg_image_done(&a);
    tg_image_done(&b);
    tg_image_scratch_done(&scratch);
}

static void steady_work_keeps_its_memory(void **state)
{
    (void)state;
    tg_image_scratch scratch = {0};
    tg_image source = {0}, out = {0};
    assert_ok(tg_image_reserve(&source, 300, 200));
    memset(source.rgb, 7, 300 * 200 * 3);
    tg_resize_spec large = {.width_px = 224, .height_px = 224};
    assert_ok(tg_image_resize(&source, &large, &scratch, &out));
    size_t held = tg_image_scratch_bytes(&scratch);
    const uint8_t *pixels = out.rgb;
    for (int w = 40; w < 300; w += 13) {
        tg_resize_spec spec = large;
        spec.crop = (tg_image_rect){0, 0, w, 150};
        assert_ok(tg_image_resize(&source, &spec, &scratch, &out));
    }
    assert_true(tg_image_scratch_bytes(&scratch) == held && out.rgb == pixels);
    tg_image_done(&source);
    tg_image_done(&out);
    tg_image_scratch_done(&scratch);
}

static void written_bytes_repeat(void **state)
{
    (void)state;
    uint8_t rgb[16 * 16 * 3], *first, *second;
    size_t n, m;
    for (size_t i = 0; i < sizeof rgb; i++)
        rgb[i] = (uint8_t)(i * i);
    tg_image image = tg_image_view(rgb, 16, 16);
    assert_ok(tg_image_write_jpeg(&image, 80, TG_JPEG_420, &first, &n));
    assert_ok(tg_image_write_jpeg(&image, 80, TG_JPEG_420, &second, &m));
    assert_int_equal(n, m);
    assert_memory_equal(first, second, n);
    free(first);
    free(second);
    assert_error(tg_image_write_jpeg(&image, 0, TG_JPEG_420, &first, &n), TG_ERROR_USAGE,
                 "quality");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(evaluation_boxes),
        cmocka_unit_test(extreme_shapes),
        cmocka_unit_test(tensor_values),
        cmocka_unit_test(flips),
        cmocka_unit_test(random_crops),
        cmocka_unit_test(views_are_not_read_past),
        cmocka_unit_test(steady_work_keeps_its_memory),
        cmocka_unit_test(written_bytes_repeat),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
