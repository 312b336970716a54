/* Decisions of augmentation: reproducible, inside their ranges, equal to hand-made values. */
#include "support/check.h"

#include "data/augment.h"
#include "data/augment_plan.h"
#include "data/mix.h"

#include <locale.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static void reads_timm_text(void **state)
{
    (void)state;
    tg_augment augment = tg_augment_default();
    setlocale(LC_ALL, "de_DE.UTF-8");
    assert_ok(tg_augment_parse_aa("rand-m9-mstd0.5-inc1", &augment));
    setlocale(LC_ALL, "C");
    assert_int_equal(augment.rand_ops, 2);
    assert_true(augment.rand_magnitude == 9 && augment.rand_std == 0.5);
    assert_true(augment.rand_increasing && augment.rand_prob == 0.5);
    assert_ok(tg_augment_parse_aa("rand-n3-p0.7-mmax15-mstd101", &augment));
    assert_int_equal(augment.rand_ops, 3);
    assert_true(augment.rand_magnitude == 10 && augment.rand_magnitude_max == 15);
    assert_true(isinf(augment.rand_std) && augment.rand_prob == 0.7 && !augment.rand_increasing);
    const char *bad[] = {"original",  "augmix-m3", "rand-m",   "rand-tweights", "rand-m9x",
                         "rand-n0",   "rand-n17",  "rand-p2",  "rand--m9",      "random",
                         "rand-m1e3", "rand-m-9",  "v0-mstd1", "rand-w0"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_error(tg_augment_parse_aa(bad[i], &augment), TG_ERROR_USAGE, bad[i]);
    assert_int_equal(augment.rand_ops, 3);
    assert_ok(tg_augment_parse_aa("none", &augment));
    assert_int_equal(augment.rand_ops, 0);
}

static void refuses_nonsense(void **state)
{
    (void)state;
    tg_augment augment = tg_augment_default();
    assert_ok(tg_augment_check(&augment));
    augment.hflip = 1.5;
    assert_error(tg_augment_check(&augment), TG_ERROR_USAGE, "hflip");
    augment = tg_augment_default();
    augment.scale_min = 0;
    assert_error(tg_augment_check(&augment), TG_ERROR_USAGE, "scale");
    augment = tg_augment_default();
    augment.smoothing = 1;
    assert_error(tg_augment_check(&augment), TG_ERROR_USAGE, "smoothing");
    augment = tg_augment_default();
    augment.mixup = NAN;
    assert_error(tg_augment_check(&augment), TG_ERROR_USAGE, "mixup");
}

static bool same_crop(const tg_augment_plan *a, const tg_augment_plan *b)
{
    return memcmp(&a->crop, &b->crop, sizeof a->crop) == 0;
}

/* Equal for equal (seed, epoch, sample); different, beyond chance, when one of them changes. */
static void plans_repeat(void **state)
{
    (void)state;
    enum { N = 500 };
    tg_augment augment = tg_augment_default();
    tg_preprocess input = tg_preprocess_default(64);
    int equal_epoch = 0, equal_sample = 0, flips = 0;
    for (uint64_t i = 0; i < N; i++) {
        tg_augment_plan a = tg_augment_plan_make(&augment, &input, 640, 480, 1, 0, i);
        tg_augment_plan again = tg_augment_plan_make(&augment, &input, 640, 480, 1, 0, i);
        tg_augment_plan epoch = tg_augment_plan_make(&augment, &input, 640, 480, 1, 1, i);
        tg_augment_plan sample = tg_augment_plan_make(&augment, &input, 640, 480, 1, 0, i + 1);
        assert_true(same_crop(&a, &again) && a.hflip == again.hflip);
        assert_memory_equal(&a.noise, &again.noise, sizeof a.noise);
        equal_epoch += same_crop(&a, &epoch);
        equal_sample += same_crop(&a, &sample);
        flips += a.hflip;
        double share = (double)a.crop.width_px * a.crop.height_px / (640.0 * 480.0);
        assert_true(a.crop.left_px >= 0 && a.crop.left_px + a.crop.width_px <= 640);
        assert_true(a.crop.top_px >= 0 && a.crop.top_px + a.crop.height_px <= 480);
        assert_true(share > 0.075 && share <= 1);
    }
    assert_true(equal_epoch <= 2 && equal_sample <= 2);
    assert_true(abs(flips - N / 2) < 5 * sqrt(N / 4.0));
}

/* The shapes that break integer arithmetic still give a box inside the picture. */
static void odd_shapes(void **state)
{
    (void)state;
    const int sizes[][2] = {{1, 1}, {1, 5000}, {5000, 1}, {223, 223}, {2, 3}};
    tg_augment augment = tg_augment_default();
    tg_preprocess input = tg_preprocess_default(64);
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (uint64_t i = 0; i < 50; i++) {
            tg_augment_plan plan =
                tg_augment_plan_make(&augment, &input, sizes[s][0], sizes[s][1], 1, 0, i);
            assert_true(plan.crop.width_px >= 1 && plan.crop.height_px >= 1);
            assert_true(plan.crop.left_px + plan.crop.width_px <= sizes[s][0]);
            assert_true(plan.crop.top_px + plan.crop.height_px <= sizes[s][1]);
        }
}

/* Magnitude 9 without deviation: timm's level functions give exactly these values. */
static void rand_augment_values(void **state)
{
    (void)state;
    tg_augment augment = tg_augment_default();
    tg_preprocess input = tg_preprocess_default(64);
    int count[TG_AUGMENT_OP_COUNT] = {0}, steps = 0;
    assert_ok(tg_augment_parse_aa("rand-m9-inc1", &augment));
    for (uint64_t i = 0; i < 3000; i++) {
        tg_augment_plan plan = tg_augment_plan_make(&augment, &input, 300, 300, 1, 0, i);
        for (int k = 0; k < plan.step_count; k++, steps++) {
            double value = plan.steps[k].value;
            count[plan.steps[k].op]++;
            switch (plan.steps[k].op) {
            case TG_AUGMENT_ROTATE:
                assert_true(fabs(fabs(value) - 27) < 1e-12);
                break;
            case TG_AUGMENT_POSTERIZE:
                assert_true(value == 1); /* 4 - int(3.6) */
                break;
            case TG_AUGMENT_SOLARIZE:
                assert_true(value == 26); /* 256 - int(230.4) */
                break;
            case TG_AUGMENT_SOLARIZE_ADD:
                assert_true(value == 99);
                break;
            case TG_AUGMENT_COLOR:
            case TG_AUGMENT_CONTRAST:
            case TG_AUGMENT_BRIGHTNESS:
            case TG_AUGMENT_SHARPNESS:
                assert_true(fabs(value - 1.81) < 1e-12 || fabs(value - 0.19) < 1e-12);
                break;
            case TG_AUGMENT_SHEAR_X:
            case TG_AUGMENT_SHEAR_Y:
                assert_true(fabs(fabs(value) - 0.27) < 1e-12);
                break;
            case TG_AUGMENT_TRANSLATE_X:
            case TG_AUGMENT_TRANSLATE_Y:
                assert_true(fabs(fabs(value) - 0.405) < 1e-12);
                break;
            default:
                break;
            }
        }
    }
    /* 6000 draws, each applied with 1/2 and one of 15: within 5 standard deviations */
    assert_true(abs(steps - 3000) < 5 * sqrt(1500));
    for (int op = 0; op < TG_AUGMENT_OP_COUNT; op++)
        assert_true(abs(count[op] - 200) < 5 * sqrt(200));
}

static void jitter_is_off_under_rand_augment(void **state)
{
    (void)state;
    tg_augment augment = tg_augment_default();
    tg_preprocess input = tg_preprocess_default(64);
    augment.color_jitter = 0.4;
    tg_augment_plan plan = tg_augment_plan_make(&augment, &input, 300, 300, 1, 0, 0);
    assert_int_equal(plan.step_count, 3);
    int seen = 0;
    for (int i = 0; i < 3; i++) {
        seen |= 1 << plan.steps[i].op;
        assert_true(plan.steps[i].value >= 0.6 && plan.steps[i].value <= 1.4);
    }
    assert_int_equal(seen,
                     1 << TG_AUGMENT_BRIGHTNESS | 1 << TG_AUGMENT_CONTRAST | 1 << TG_AUGMENT_COLOR);
    augment.rand_ops = 2;
    augment.rand_prob = 0;
    plan = tg_augment_plan_make(&augment, &input, 300, 300, 1, 0, 0);
    assert_int_equal(plan.step_count, 0);
}

/* The box is erased and nothing else, in the student and, scaled by two, in the teacher. */
static void erasing(void **state)
{
    (void)state;
    enum { S = 32, L = 64 };
    static float small[3 * S * S], large[3 * L * L];
    tg_augment augment = tg_augment_default();
    tg_preprocess input = tg_preprocess_default(S);
    augment.reprob = 1;
    for (uint64_t sample = 0; sample < 50; sample++) {
        for (int noise = 0; noise < 2; noise++) {
            for (int i = 0; i < 3 * S * S; i++)
                small[i] = 7;
            for (int i = 0; i < 3 * L * L; i++)
                large[i] = 7;
            tg_augment_plan plan = tg_augment_plan_make(&augment, &input, 100, 90, 1, 0, sample);
            assert_true(plan.erase);
            tg_image_rect box = plan.erase_box;
            double share = (double)box.width_px * box.height_px / (S * S);
            assert_true(share > 0.01 && share < 0.37);
            tg_augment_plan_erase(&plan, noise == 1, S, S, small);
            tg_augment_plan_erase(&plan, noise == 1, L, L, large);
            for (int c = 0; c < 3; c++)
                for (int y = 0; y < L; y++)
                    for (int x = 0; x < L; x++) {
                        bool inside = x / 2 >= box.left_px && x / 2 < box.left_px + box.width_px &&
                                      y / 2 >= box.top_px && y / 2 < box.top_px + box.height_px;
                        float s = small[(c * S + y / 2) * S + x / 2];
                        float l = large[(c * L + y) * L + x];
                        assert_true((s != 7) == inside && (l != 7) == inside);
                        assert_true(!inside || noise == 1 || (s == 0 && l == 0));
                    }
        }
    }
}

/* Smoothing 0.1, share 0.3, 10 classes: 0.91 and 0.01 times the shares. */
static void targets_by_hand(void **state)
{
    (void)state;
    const int32_t labels[3] = {2, 5, 7};
    float target[30], want[30];
    tg_mix mix = {.on = true, .lambda = 0.3};
    tg_mix_targets(&mix, NULL, labels, 3, 10, 0.1, target);
    for (int i = 0; i < 30; i++)
        want[i] = 0.01f;
    want[2] = 0.01f + 0.27f;
    want[7] = 0.01f + 0.63f;
    want[10 + 5] = 0.91f;
    want[20 + 7] = 0.01f + 0.27f;
    want[20 + 2] = 0.01f + 0.63f;
    assert_close(target, want, 30, 1e-7, 0, "targets");
}

static float pixel(size_t image, size_t i)
{
    return (float)(image * 100 + i % 7);
}

/* Any count: targets add up to 1, and the share equals the counted pixels. */
static void mixing(void **state)
{
    (void)state;
    enum { S = 20, N = 3 * S * S, MOST = 33, K = 5 };
    static float images[MOST * N], targets[MOST * K];
    static const size_t counts[] = {1, 2, 3, 33};
    int32_t labels[MOST];
    tg_augment augment = tg_augment_default();
    augment.smoothing = 0.1;
    int cut = 0, blended = 0;
    for (int i = 0; i < MOST; i++)
        labels[i] = i % K;
    for (uint64_t batch = 0; batch < 60; batch++) {
        size_t n = counts[batch % 4];
        augment.mixup = 0.8;
        augment.cutmix = 1;
        for (size_t i = 0; i < n * N; i++)
            images[i] = pixel(i / N, i % N);
        tg_mix mix = tg_mix_make(&augment, n, S, S, 9, 2, batch);
        tg_mix_images(&mix, NULL, n, S, S, images);
        tg_mix_targets(&mix, NULL, labels, n, K, augment.smoothing, targets);
        assert_int_equal(mix.on, n > 1);
        for (size_t i = 0; i < n; i++) {
            double sum = 0;
            for (size_t k = 0; k < K; k++)
                sum += targets[i * K + k];
            assert_true(fabs(sum - 1) < 1e-6);
        }
        for (size_t i = 0; i < n; i++) {
            size_t partner = n - 1 - i, own = 0;
            for (size_t p = 0; p < N; p++) {
                float a = pixel(i, p), b = pixel(partner, p), got = images[i * N + p];
                own += got == a;
                double want = mix.lambda * a + (1 - mix.lambda) * b;
                if (mix.cutmix)
                    assert_true(got == a || got == b);
                else
                    assert_true(fabs(got - want) < 1e-3);
            }
            if (mix.cutmix && partner != i)
                assert_true(fabs((double)own / N - mix.lambda) < 1e-12);
        }
        cut += mix.on && mix.cutmix;
        blended += mix.on && !mix.cutmix;
    }
    assert_true(cut > 5 && blended > 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_timm_text),
        cmocka_unit_test(refuses_nonsense),
        cmocka_unit_test(plans_repeat),
        cmocka_unit_test(odd_shapes),
        cmocka_unit_test(rand_augment_values),
        cmocka_unit_test(jitter_is_off_under_rand_augment),
        cmocka_unit_test(erasing),
        cmocka_unit_test(targets_by_hand),
        cmocka_unit_test(mixing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
