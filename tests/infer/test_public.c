/* A library call leaves its caller's thread as it was, and answers the same whatever that was. */
#include "support/check.h"
#include "support/tiny.h"

#include "os/file.h"
#include "tagine/tagine.h"

#include <fenv.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#if defined(__SSE__)
#include <xmmintrin.h>
#endif

enum { K = TG_TINY_CLASSES, TEAM = 3 };

static char model[4096], headless[4096], photo[4096], broken[4096];

static int write_fixtures(void **state)
{
    (void)state;
    const char *dir = tg_test_temp_dir();
    snprintf(model, sizeof model, "%s/model", dir);
    snprintf(headless, sizeof headless, "%s/headless", dir);
    snprintf(photo, sizeof photo, "%s/photo.jpg", dir);
    snprintf(broken, sizeof broken, "%s/broken.jpg", dir);
    assert_ok(tg_tiny_model_write(model, &(tg_tiny_model){.num_classes = K}));
    assert_ok(tg_tiny_model_write(headless, &(tg_tiny_model){0}));
    assert_ok(tg_tiny_photo_write(photo, 50, 40, 3));
    assert_ok(tg_file_write(broken, "\xFF\xD8\xFF\xE0 no more", 12));
    return 0;
}

/* A caller with habits of its own: rounds upward, has looked at no flag yet, runs teams of TEAM. */
static void take_habits(void)
{
    omp_set_num_threads(TEAM);
    assert_int_equal(fesetround(FE_UPWARD), 0);
    feclearexcept(FE_ALL_EXCEPT);
    assert_int_equal(feraiseexcept(FE_DIVBYZERO), 0);
}

static void check_habits(const char *after)
{
    volatile float smallest = 1.17549435e-38F, half = 0.5F;
    if (fegetround() != FE_UPWARD || fetestexcept(FE_ALL_EXCEPT) != FE_DIVBYZERO)
        fail_msg("%s: rounding %#x, flags %#x", after, fegetround(), fetestexcept(FE_ALL_EXCEPT));
    volatile float subnormal = smallest * half; /* exact: raises no flag */
    if (subnormal == 0)
        fail_msg("%s: subnormal numbers have become zero", after);
#if defined(__SSE__)
    if (_mm_getcsr() & 0x8040)
        fail_msg("%s: MXCSR is %#x", after, _mm_getcsr());
#endif
    if (omp_get_max_threads() != TEAM)
        fail_msg("%s: a team of %d", after, omp_get_max_threads());
}

static void test_caller_is_left_alone(void **state)
{
    (void)state;
    for (int threads = 1; threads <= 2; threads++) {
        const tagine_options options = {.threads = threads, .bfloat16 = threads == 2};
        tagine_predictor *predictor = NULL;
        tagine_prediction best[K];
        size_t count, bytes;
        char *data;
        assert_ok(tg_file_read(photo, 1 << 20, &data, &bytes));
        take_habits();
        assert_int_equal(tagine_predictor_open("/nowhere", &options, &predictor), TAGINE_INPUT);
        check_habits("open of nothing");
        assert_int_equal(tagine_predictor_open(headless, &options, &predictor), TAGINE_INPUT);
        check_habits("open of a model without classes");
        assert_int_equal(tagine_predictor_open(model, &options, &predictor), TAGINE_OK);
        check_habits("open");
        assert_int_equal(tagine_predict_file(predictor, broken, K, best, &count), TAGINE_INPUT);
        check_habits("predict_file of a broken photo");
        assert_int_equal(tagine_predict_file(predictor, photo, K, best, &count), TAGINE_OK);
        check_habits("predict_file");
        assert_int_equal(tagine_predict_bytes(predictor, data, bytes, K, best, &count), TAGINE_OK);
        check_habits("predict_bytes");
        tagine_predictor_close(predictor);
        check_habits("close");
        free(data);
        assert_int_equal(fesetround(FE_TONEAREST), 0);
    }
}

/* The same scores to the bit whether the caller rounds to nearest or upward. */
static void test_answers_do_not_depend_on_the_caller(void **state)
{
    (void)state;
    tagine_prediction nearest[K], upward[K];
    tagine_predictor *predictor;
    size_t count;
    assert_int_equal(tagine_predictor_open(model, &(tagine_options){.threads = 2}, &predictor),
                     TAGINE_OK);
    assert_int_equal(tagine_predict_file(predictor, photo, K, nearest, &count), TAGINE_OK);
    assert_int_equal(fesetround(FE_UPWARD), 0);
    assert_int_equal(tagine_predict_file(predictor, photo, K, upward, &count), TAGINE_OK);
    assert_int_equal(fesetround(FE_TONEAREST), 0);
    for (size_t i = 0; i < K; i++)
        assert_true(nearest[i].class_index == upward[i].class_index &&
                    nearest[i].score == upward[i].score);
    tagine_predictor_close(predictor);
}

static void test_null_is_wrong_usage(void **state)
{
    (void)state;
    tagine_predictor *predictor = NULL;
    tagine_prediction best[1];
    size_t count = 77;
    assert_int_equal(tagine_predictor_open(NULL, NULL, &predictor), TAGINE_USAGE);
    assert_string_equal(tagine_error(), "model is NULL");
    assert_null(predictor);
    assert_int_equal(tagine_predictor_open(model, NULL, NULL), TAGINE_USAGE);
    assert_string_equal(tagine_error(), "out is NULL");
    assert_int_equal(tagine_class_count(NULL), 0);
    assert_null(tagine_class_name(NULL, 0));
    assert_int_equal(tagine_predict_file(NULL, photo, 1, best, &count), TAGINE_USAGE);
    assert_int_equal(tagine_predict_bytes(NULL, "x", 1, 1, best, &count), TAGINE_USAGE);
    assert_string_equal(tagine_error(), "predictor is NULL");
    assert_int_equal(tagine_predictor_open(model, NULL, &predictor), TAGINE_OK);
    assert_int_equal(tagine_predict_file(predictor, NULL, 1, best, &count), TAGINE_USAGE);
    assert_string_equal(tagine_error(), "path is NULL");
    assert_int_equal(tagine_predict_bytes(predictor, NULL, 0, 1, best, &count), TAGINE_USAGE);
    assert_string_equal(tagine_error(), "bytes is NULL");
    assert_int_equal(tagine_predict_file(predictor, photo, 1, NULL, &count), TAGINE_USAGE);
    assert_string_equal(tagine_error(), "out is NULL");
    assert_int_equal(tagine_predict_file(predictor, photo, 1, best, NULL), TAGINE_USAGE);
    assert_string_equal(tagine_error(), "out_count is NULL");
    assert_int_equal(count, 77);
    assert_int_equal(tagine_predict_file(predictor, photo, 0, NULL, &count), TAGINE_OK);
    assert_int_equal(count, 0);
    tagine_predictor_close(predictor);
}

/* Exits with the number of calls that were refused as they should. */
static void use_in_child(tagine_predictor *predictor)
{
    const tagine_options two = {.threads = 2};
    tagine_predictor *own = NULL;
    tagine_prediction best[1];
    size_t count;
    alarm(20);
    int refused = tagine_predict_file(predictor, photo, 1, best, &count) == TAGINE_USAGE &&
                  strstr(tagine_error(), "fork");
    refused += tagine_predictor_open(model, &two, &own) == TAGINE_USAGE && !own;
    tagine_predictor_close(predictor);
    _exit(refused);
}

static void test_fork_is_noticed(void **state)
{
    (void)state;
    tagine_predictor *predictor;
    tagine_prediction best[1];
    size_t count;
    int end;
    assert_int_equal(tagine_predictor_open(model, &(tagine_options){.threads = 2}, &predictor),
                     TAGINE_OK);
    assert_int_equal(tagine_predict_file(predictor, photo, 1, best, &count), TAGINE_OK);
    pid_t child = fork();
    if (child == 0)
        use_in_child(predictor);
    assert_int_equal(waitpid(child, &end, 0), child);
    assert_true(WIFEXITED(end));
    assert_int_equal(WEXITSTATUS(end), 2);
    assert_int_equal(tagine_predict_file(predictor, photo, 1, best, &count), TAGINE_OK);
    tagine_predictor_close(predictor);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_caller_is_left_alone),
        cmocka_unit_test(test_answers_do_not_depend_on_the_caller),
        cmocka_unit_test(test_null_is_wrong_usage),
        cmocka_unit_test(test_fork_is_noticed),
    };
    return cmocka_run_group_tests(tests, write_fixtures, NULL);
}
