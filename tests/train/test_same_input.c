/* Predicting sees the same bits as evaluating: the engine's input against the loader's, for every way
 * of cropping and resizing; and the engine's first choice against the accuracy that evaluation
 * counts. */
#include "support/check.h"
#include "support/tiny.h"

#include "data/loader.h"
#include "infer/engine.h"
#include "infer/network.h"
#include "infer/scores.h"
#include "os/folder.h"
#include "train/evaluate.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PER_CLASS = 3, K = TG_TINY_CLASSES, PHOTOS = K * PER_CLASS };

static char model[4096], data[4096];
static tg_dataset dataset;

static int write_fixtures(void **state)
{
    (void)state;
    char path[4200];
    snprintf(model, sizeof model, "%s/model", tg_test_temp_dir());
    snprintf(data, sizeof data, "%s/data", tg_test_temp_dir());
    assert_ok(tg_tiny_model_write(model, &(tg_tiny_model){.num_classes = K}));
    for (int i = 0; i < PHOTOS; i++) {
        snprintf(path, sizeof path, "%s/%s", data, tg_tiny_class_names[i / PER_CLASS]);
        assert_ok(tg_folder_make(path));
        snprintf(path, sizeof path, "%s/%s/%d.jpg", data, tg_tiny_class_names[i / PER_CLASS], i);
        assert_ok(tg_tiny_photo_write(path, 20 + 17 * i % 90, 33 + 29 * i % 80, (unsigned)i));
    }
    const tg_dataset_options options = {.root = data};
    assert_ok(tg_dataset_open(&options, &dataset));
    assert_int_equal(dataset.count, PHOTOS);
    return 0;
}

static int remove_fixtures(void **state)
{
    (void)state;
    tg_dataset_done(&dataset);
    return 0;
}

/* Rewrites the model folder with another preprocessing. */
static void set_preprocess(const tg_preprocess *preprocess)
{
    tg_model_info info;
    tg_param_table table = {0};
    const tg_model_want want = {0};
    assert_ok(tg_model_read_info(model, &info));
    assert_ok(tg_vit_params(&info.config, &table));
    float *params = calloc(table.elements, sizeof *params);
    assert_ok(tg_model_read_weights(model, &info, &table, &want, params));
    info.preprocess = *preprocess;
    assert_ok(tg_model_write(model, &info, &table, params, TG_NAMING_TIMM));
    free(params);
    tg_param_table_done(&table);
    tg_model_info_done(&info);
}

static void compare_inputs(void)
{
    const tg_engine_options options = {.model = model, .threads = 1, .cpu_cap = TG_CPU_AMX};
    tg_engine *engine;
    tg_loader *loader;
    const tg_batch *batch;
    assert_ok(tg_engine_open(&options, &engine));
    const tg_loader_options loading = {.batch_size = PHOTOS,
                                       .preprocess = tg_engine_info(engine)->preprocess};
    assert_ok(tg_loader_open(&dataset, &loading, &loader));
    assert_ok(tg_loader_start_epoch(loader, 0, 0));
    assert_ok(tg_loader_next(loader, &batch));
    assert_int_equal(batch->count, PHOTOS);
    const size_t floats = 3 * TG_TINY_SIDE * TG_TINY_SIDE;
    for (size_t i = 0; i < PHOTOS; i++) {
        const float *input;
        assert_ok(tg_engine_prepare_file(engine, 0, dataset.samples[i].path, &input));
        assert_memory_equal(input, batch->image + i * floats, floats * sizeof(float));
    }
    tg_loader_release(loader, batch);
    tg_loader_close(loader);
    tg_engine_close(engine);
}

static void test_inputs_are_the_same_bits(void **state)
{
    (void)state;
    for (int i = 0; i < 8; i++) {
        tg_preprocess p = tg_preprocess_default(TG_TINY_SIDE);
        p.interpolation = i & 1 ? TG_BILINEAR : TG_BICUBIC;
        p.crop_mode = i & 2 ? TG_CROP_SQUASH : TG_CROP_CENTER;
        p.crop_pct = i & 4 ? 1.0 : 0.875;
        set_preprocess(&p);
        compare_inputs();
    }
}

typedef struct hits {
    uint64_t top1;
} hits;

static tg_status count_hit(void *user, const tg_engine_answer *answer)
{
    size_t best;
    assert_null(answer->error);
    tg_scores_top(answer->logits, K, 1, &best);
    ((hits *)user)->top1 += best == (size_t)dataset.samples[answer->index].label;
    return TG_OK;
}

static void evaluate(const char *path, tg_evaluation *out)
{
    tg_stream *stream;
    tg_network network;
    tg_arena arena = {0};
    const tg_network_request request = {.model = path,
                                        .shape = {.reg_tokens = -1, .num_classes = -1}};
    assert_ok(tg_stream_open_cpu(1, TG_CPU_AMX, &stream));
    assert_ok(tg_network_open(&request, tg_kern_select(stream), stream, &network));
    assert_ok(tg_arena_init(
        &arena, tg_vit_step_bytes(&network.info.config, 4, TG_F32, TG_VIT_INFER), "test"));
    const tg_evaluate_options evaluating = {.batch_size = 4,
                                            .preprocess = &network.info.preprocess};
    assert_ok(tg_evaluate(network.vit, &arena, &dataset, &evaluating, out));
    tg_arena_done(&arena);
    tg_network_close(&network);
    tg_stream_close(stream);
}

static void test_first_choices_are_those_that_evaluation_counts(void **state)
{
    (void)state;
    const tg_engine_options options = {
        .model = model, .threads = 1, .cpu_cap = TG_CPU_AMX, .batch_size = 5};
    tg_engine *engine;
    hits got = {0};
    const char *paths[PHOTOS];
    for (size_t i = 0; i < PHOTOS; i++)
        paths[i] = dataset.samples[i].path;
    assert_ok(tg_engine_open(&options, &engine));
    assert_ok(tg_engine_run_files(engine, paths, PHOTOS, count_hit, &got));
    tg_engine_close(engine);

    tg_evaluation result;
    evaluate(model, &result);
    assert_int_equal(result.images, PHOTOS);
    assert_true(result.top1 == 100.0 * (double)got.top1 / PHOTOS);
}

/* Comparisons with NaN are false: counted by them, a diverged model would be right every time. */
static void test_answers_that_are_not_finite_are_wrong(void **state)
{
    (void)state;
    char huge[4200];
    tg_evaluation result;
    snprintf(huge, sizeof huge, "%s/huge", tg_test_temp_dir());
    assert_ok(tg_tiny_model_write(huge, &(tg_tiny_model){.num_classes = K, .huge = true}));
    evaluate(huge, &result);
    assert_int_equal(result.images, PHOTOS);
    assert_true(result.top1 == 0 && result.top5 == 0);
    assert_true(isnan(result.loss));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_inputs_are_the_same_bits),
        cmocka_unit_test(test_first_choices_are_those_that_evaluation_counts),
        cmocka_unit_test(test_answers_that_are_not_finite_are_wrong),
    };
    return cmocka_run_group_tests(tests, write_fixtures, remove_fixtures);
}
