/* The engine: scores, order of answers, bad files, models without names or head, the public calls. */
#include "support/check.h"
#include "support/tiny.h"

#include "infer/engine.h"
#include "infer/scores.h"
#include "os/file.h"
#include "tagine/tagine.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum { PHOTOS = 5, K = TG_TINY_CLASSES };

static char model[4096], unnamed[4096], headless[4096], damaged[4096], huge[4096], broken[4096];
static char photo[PHOTOS][4096];

static int write_fixtures(void **state)
{
    (void)state;
    const char *dir = tg_test_temp_dir();
    snprintf(model, sizeof model, "%s/model", dir);
    snprintf(unnamed, sizeof unnamed, "%s/unnamed", dir);
    snprintf(headless, sizeof headless, "%s/headless", dir);
    snprintf(damaged, sizeof damaged, "%s/damaged", dir);
    snprintf(huge, sizeof huge, "%s/huge", dir);
    snprintf(broken, sizeof broken, "%s/broken.jpg", dir);
    assert_ok(tg_tiny_model_write(model, &(tg_tiny_model){.num_classes = K}));
    assert_ok(tg_tiny_model_write(unnamed, &(tg_tiny_model){.num_classes = K, .unnamed = true}));
    assert_ok(tg_tiny_model_write(headless, &(tg_tiny_model){0}));
    assert_ok(tg_tiny_model_write(damaged, &(tg_tiny_model){.num_classes = K, .damaged = true}));
    assert_ok(tg_tiny_model_write(huge, &(tg_tiny_model){.num_classes = K, .huge = true}));
    assert_ok(tg_file_write(broken, "\xFF\xD8\xFF\xE0 no more", 12));
    for (int i = 0; i < PHOTOS; i++) {
        snprintf(photo[i], sizeof photo[i], "%s/%d.jpg", dir, i);
        assert_ok(tg_tiny_photo_write(photo[i], 40 + 11 * i, 60 - 6 * i, (unsigned)i));
    }
    return 0;
}

static tg_engine *open_engine(const char *path, size_t batch_size, tg_dtype dtype)
{
    const tg_engine_options options = {.model = path,
                                       .threads = 1,
                                       .cpu_cap = TG_CPU_AMX,
                                       .dtype = dtype,
                                       .batch_size = batch_size};
    tg_engine *engine;
    assert_ok(tg_engine_open(&options, &engine));
    return engine;
}

static void test_scores(void **state)
{
    (void)state;
    const float logits[5] = {1, 3, 1000, 3, -1000};
    float scores[5];
    size_t best[5];
    assert_int_equal(tg_scores_top(logits, 5, 3, best), 3);
    assert_int_equal(best[0], 2);
    assert_int_equal(best[1], 1); /* equal values: the lower index first */
    assert_int_equal(best[2], 3);
    assert_int_equal(tg_scores_top(logits, 5, 9, best), 5);
    assert_int_equal(best[4], 4);
    assert_int_equal(tg_scores_top(logits, 5, 0, best), 0);
    tg_scores_softmax(logits, 5, scores);
    assert_true(scores[2] == 1 && scores[0] == 0);
    tg_scores_softmax((const float[]){0, logf(3)}, 2, scores);
    assert_true(fabsf(scores[1] - 0.75F) < 1e-6F);
    assert_false(tg_scores_finite((const float[]){0, NAN}, 2));
}

typedef struct received {
    size_t count, errors;
    float logits[PHOTOS + 2][K];
    char error[256];
} received;

static tg_status receive(void *user, const tg_engine_answer *answer)
{
    received *r = user;
    assert_int_equal(answer->index, r->count);
    if (answer->error) {
        r->errors++;
        snprintf(r->error, sizeof r->error, "%s", answer->error);
    } else {
        memcpy(r->logits[r->count], answer->logits, K * sizeof(float));
    }
    r->count++;
    return TG_OK;
}

static void test_files_are_answered_in_order(void **state)
{
    (void)state;
    const char *paths[] = {photo[0],       broken,   photo[1], photo[2],
                           "/nowhere.jpg", photo[3], photo[4]};
    received one = {0}, many = {0};
    tg_engine *single = open_engine(model, 1, TG_F32), *batched = open_engine(model, 3, TG_F32);
    assert_ok(tg_engine_run_files(single, paths, 7, receive, &one));
    assert_ok(tg_engine_run_files(batched, paths, 7, receive, &many));
    assert_int_equal(one.count, 7);
    assert_int_equal(many.errors, 2);
    assert_non_null(strstr(many.error, "/nowhere.jpg"));
    /* sums of at most 128 products, whatever the batch: 128 x 2^-24 relative, and twice for two
     * orders of adding */
    for (int i = 0; i < 7; i++)
        assert_close(many.logits[i], one.logits[i], K, 1e-6, 2 * 128 * 6e-8, "logits");
    double apart = 0;
    for (int k = 0; k < K; k++)
        apart = fmax(apart, fabs((double)one.logits[0][k] - one.logits[2][k]));
    assert_true(apart > 1e-3); /* photos do differ, or order would not be seen */
    tg_engine_close(single);
    tg_engine_close(batched);
}

/* Too many open files are no fault of the photo. */
static void test_faults_of_the_machine_end_the_run(void **state)
{
    (void)state;
    const char *paths[] = {photo[0], photo[1], photo[2]};
    struct rlimit before, none;
    received r = {0};
    tg_engine *engine = open_engine(model, 2, TG_F32);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = before;
    none.rlim_cur = 0;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    tg_status status = tg_engine_run_files(engine, paths, 3, receive, &r);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_error(status, TG_ERROR_MACHINE, "Too many open files");
    assert_non_null(strstr(tg_error_message(), photo[0]));
    assert_int_equal(r.count, 0);
    assert_ok(tg_engine_run_files(engine, paths, 3, receive, &r)); /* and it can go on */
    assert_int_equal(r.count, 3);
    assert_int_equal(r.errors, 0);
    tg_engine_close(engine);
}

static tg_status stop_at_once(void *user, const tg_engine_answer *answer)
{
    (void)answer;
    ++*(int *)user;
    return tg_fail(TG_ERROR_STOPPED, "enough");
}

static void test_receiver_ends_the_run(void **state)
{
    (void)state;
    const char *paths[] = {broken, photo[0], photo[1]};
    int calls = 0;
    tg_engine *engine = open_engine(model, 2, TG_F32);
    assert_error(tg_engine_run_files(engine, paths, 3, stop_at_once, &calls), TG_ERROR_STOPPED,
                 "enough");
    assert_int_equal(calls, 1);
    tg_engine_close(engine);
}

static void test_bfloat16_stays_near(void **state)
{
    (void)state;
    const char *paths[] = {photo[0], photo[1]};
    received exact = {0}, fast = {0};
    tg_engine *f32 = open_engine(model, 2, TG_F32), *bf16 = open_engine(model, 2, TG_BF16);
    assert_ok(tg_engine_run_files(f32, paths, 2, receive, &exact));
    assert_ok(tg_engine_run_files(bf16, paths, 2, receive, &fast));
    /* 8 bits of mantissa through about 12 roundings in a row: 12 x 2^-8 of the largest logit */
    for (int i = 0; i < 2; i++)
        assert_close(fast.logits[i], exact.logits[i], K, 0, 12.0 / 256, "bf16 logits");
    tg_engine_close(f32);
    tg_engine_close(bf16);
}

static void test_models_of_other_kinds(void **state)
{
    (void)state;
    const float *input;
    tg_engine_output output;
    tg_engine *engine = open_engine(unnamed, 1, TG_F32);
    assert_string_equal(tg_engine_info(engine)->class_names[K - 1], "5");
    tg_engine_close(engine);

    engine = open_engine(headless, 1, TG_F32);
    assert_ok(tg_engine_prepare_file(engine, 0, photo[0], &input));
    assert_ok(tg_engine_forward(engine, 1, &output));
    assert_null(output.logits);
    assert_true(tg_scores_finite(output.feature, 32));
    tg_engine_close(engine);

    received r = {0};
    const char *paths[] = {photo[0]};
    engine = open_engine(huge, 1, TG_F32);
    assert_ok(tg_engine_run_files(engine, paths, 1, receive, &r));
    assert_int_equal(r.errors, 1);
    assert_non_null(strstr(r.error, "not finite, though its weights are"));
    tg_engine_close(engine);

    engine = NULL;
    const tg_engine_options nan = {.model = damaged, .threads = 1};
    assert_error(tg_engine_open(&nan, &engine), TG_ERROR_INPUT, "tensor cls_token: 1 of its");
    const tg_engine_options absent = {.model = "vit_tiny_patch16_224", .threads = 1};
    assert_error(tg_engine_open(&absent, &engine), TG_ERROR_INPUT, "no such file or folder");
    assert_null(engine);
    tg_engine_close(NULL);
}

static void test_public_interface(void **state)
{
    (void)state;
    tagine_predictor *predictor = NULL;
    tagine_prediction best[K + 1];
    size_t count = 99, bytes;
    char *data;
    assert_int_equal(tagine_predictor_open("/nowhere", NULL, &predictor), TAGINE_INPUT);
    assert_non_null(strstr(tagine_error(), "/nowhere"));
    assert_int_equal(tagine_predictor_open(model, &(tagine_options){.threads = -1}, &predictor),
                     TAGINE_USAGE);
    assert_int_equal(tagine_predictor_open(headless, NULL, &predictor), TAGINE_INPUT);
    assert_null(predictor);
    assert_int_equal(tagine_predictor_open(model, &(tagine_options){.threads = 1}, &predictor),
                     TAGINE_OK);
    assert_int_equal(tagine_class_count(predictor), K);
    assert_string_equal(tagine_class_name(predictor, 2), "ice_cream");
    assert_null(tagine_class_name(predictor, K));

    char endless[400] = {0};
    memset(endless, 'x', sizeof endless - 1); /* longer than any file's name can be */
    assert_int_equal(tagine_predict_file(predictor, endless, 3, best, &count), TAGINE_INPUT);
    assert_int_equal(tagine_predict_file(predictor, broken, 3, best, &count), TAGINE_INPUT);
    assert_int_equal(count, 99);
    assert_int_equal(tagine_predict_file(predictor, photo[0], K + 1, best, &count), TAGINE_OK);
    assert_int_equal(count, K);
    float sum = 0;
    for (size_t i = 0; i < count; i++) {
        sum += best[i].score;
        assert_true(i == 0 || best[i].score <= best[i - 1].score);
    }
    assert_true(fabsf(sum - 1) < 1e-5F);
    assert_string_equal(best[0].class_name, tg_tiny_class_names[best[0].class_index]);

    tagine_prediction again;
    assert_ok(tg_file_read(photo[0], 1 << 20, &data, &bytes));
    assert_int_equal(tagine_predict_bytes(predictor, data, bytes, 1, &again, &count), TAGINE_OK);
    assert_int_equal(count, 1);
    assert_true(again.class_index == best[0].class_index && again.score == best[0].score);
    free(data);
    tagine_predictor_close(predictor);
    tagine_predictor_close(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scores),
        cmocka_unit_test(test_files_are_answered_in_order),
        cmocka_unit_test(test_faults_of_the_machine_end_the_run),
        cmocka_unit_test(test_receiver_ends_the_run),
        cmocka_unit_test(test_bfloat16_stays_near),
        cmocka_unit_test(test_models_of_other_kinds),
        cmocka_unit_test(test_public_interface),
    };
    return cmocka_run_group_tests(tests, write_fixtures, NULL);
}
