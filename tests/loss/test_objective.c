/* Where no teacher trains the distillation head, the label loss is on the mean of both heads, and the
 * gradient of each head is the slope of that loss. */
#include "support/check.h"
#include "support/device.h"

#include "loss/objective.h"

#include <math.h>
#include <string.h>

enum { B = 2, K = 3 };

static const float class_head[B * K] = {0.5f, -1.0f, 0.25f, 2.0f, 0.75f, -0.5f};
static const float dist_head[B * K] = {-0.75f, 1.5f, 0.5f, 0.25f, -2.0f, 1.0f};
static const float target[B * K] = {1, 0, 0, 0.25f, 0.25f, 0.5f};

/* Sum over the photos of the cross-entropy of the mean of two heads. */
static double label_loss(const double *a, const double *b)
{
    double loss = 0;
    for (int i = 0; i < B; i++) {
        double sum = 0;
        for (int k = 0; k < K; k++)
            sum += exp((a[i * K + k] + b[i * K + k]) / 2);
        for (int k = 0; k < K; k++)
            loss += target[i * K + k] * (log(sum) - (a[i * K + k] + b[i * K + k]) / 2);
    }
    return loss;
}

/* Central difference in element i of head 0 or 1; the third-order error is below 1e-9 here. */
static double slope(int head, int i)
{
    enum { UP, DOWN };
    const double step = 1e-4;
    double loss[2];
    for (int side = UP; side <= DOWN; side++) {
        double heads[2][B * K];
        for (int k = 0; k < B * K; k++) {
            heads[0][k] = class_head[k];
            heads[1][k] = dist_head[k];
        }
        heads[head][i] += side == UP ? step : -step;
        loss[side] = label_loss(heads[0], heads[1]);
    }
    return (loss[UP] - loss[DOWN]) / (2 * step);
}

static void test_two_heads_without_a_teacher(void **state)
{
    (void)state;
    tg_stream *stream = tg_test_stream();
    tg_arena arena = {0};
    assert_ok(tg_arena_init(&arena, tg_objective_bytes(B, K, 0, 0), "test"));
    const tg_objective objective = {.kd = TG_KD_NONE};
    const tg_objective_input input = {.B = B,
                                      .K = K,
                                      .mean_over = B,
                                      .target = target,
                                      .logits = class_head,
                                      .logits_dist = dist_head};
    tg_objective_output out;
    assert_ok(tg_objective_run(&objective, tg_kern_select(stream), stream, &arena, &input, &out));
    double a[B * K], b[B * K];
    for (int k = 0; k < B * K; k++) {
        a[k] = class_head[k];
        b[k] = dist_head[k];
    }
    assert_true(fabs(out.task - label_loss(a, b)) < 1e-5);
    assert_true(isnan(out.kd));
    assert_non_null(out.dlogits);
    assert_non_null(out.dlogits_dist);
    for (int i = 0; i < B * K; i++) {
        assert_true(fabs(out.dlogits[i] - slope(0, i) / B) < 1e-6);
        assert_true(fabs(out.dlogits_dist[i] - slope(1, i) / B) < 1e-6);
    }
    tg_arena_done(&arena);
    tg_stream_close(stream);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_two_heads_without_a_teacher)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
