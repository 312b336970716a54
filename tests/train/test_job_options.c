/* What the options ask for is what a job does: photos as evaluation sees them, weights of the
 * architecture that was named, labels wherever there are class folders. */
#include "support/check.h"
#include "support/device.h"
#include "support/tiny.h"

#include "base/log.h"
#include "os/file.h"
#include "os/folder.h"
#include "train/job_parts.h"

#include <stdio.h>
#include <string.h>

enum { K = TG_TINY_CLASSES };

static char labelled[4096], flat[4096], teacher[4096];
static char warnings[8192];

static int write_fixtures(void **state)
{
    (void)state;
    char path[4300];
    snprintf(labelled, sizeof labelled, "%s/labelled", tg_test_temp_dir());
    snprintf(flat, sizeof flat, "%s/flat", tg_test_temp_dir());
    snprintf(teacher, sizeof teacher, "%s/teacher", tg_test_temp_dir());
    assert_ok(tg_tiny_model_write(teacher, &(tg_tiny_model){.num_classes = K}));
    assert_ok(tg_folder_make(flat));
    for (unsigned i = 0; i < 2 * K; i++) {
        snprintf(path, sizeof path, "%s/train/%s", labelled, tg_tiny_class_names[i % K]);
        assert_ok(tg_folder_make(path));
        snprintf(path, sizeof path, "%s/train/%s/%u.jpg", labelled, tg_tiny_class_names[i % K], i);
        assert_ok(tg_tiny_photo_write(path, 30 + 5 * (int)i, 70, i));
        snprintf(path, sizeof path, "%s/%u.jpg", flat, i);
        assert_ok(tg_tiny_photo_write(path, 30, 40, i));
    }
    return 0;
}

static tg_train_options options_of(const char *data)
{
    tg_train_options o = tg_train_options_default();
    o.model.img_size = 32;
    o.model.patch_size = 8;
    o.model.embed_dim = 32;
    o.model.depth = 1;
    o.model.num_heads = 2;
    o.data.data = data;
    o.data.workers = 0;
    o.recipe.batch_size = 4;
    o.distill.teacher = teacher;
    o.distill.objective.kd = TG_KD_KL;
    o.cpu_cap = tg_test_cpu_cap();
    return o;
}

static void listen(void *user, tg_log_level level, const char *line)
{
    (void)user;
    size_t used = strlen(warnings);
    if (level == TG_LOG_WARNING)
        snprintf(warnings + used, sizeof warnings - used, "%s\n", line);
}

static const tg_batch *first_batch(tg_loader *loader)
{
    const tg_batch *batch;
    assert_ok(tg_loader_start_epoch(loader, 0, 0));
    assert_ok(tg_loader_next(loader, &batch));
    return batch;
}

/* Every photo of an epoch, for student and teacher, against the evaluation transform's. */
static void compare_views(const tg_job *job)
{
    const tg_preprocess *own = &job->student.info.preprocess;
    const tg_preprocess *other = &job->teacher_preprocess;
    const size_t floats = 3 * (size_t)own->width_px * (size_t)own->height_px;
    const size_t other_floats = 3 * (size_t)other->width_px * (size_t)other->height_px;
    const tg_loader_options seen = {.batch_size = job->train.count,
                                    .preprocess = *own,
                                    .has_teacher = true,
                                    .teacher_preprocess = *other};
    tg_loader *loader;
    size_t count = 0;
    assert_ok(tg_loader_open(&job->train, &seen, &loader));
    const tg_batch *want = first_batch(loader);
    for (const tg_batch *batch = first_batch(job->loader);;) {
        for (size_t i = 0; i < batch->count; i++) {
            size_t at = batch->sample_index[i]; /* evaluation takes them in the data's order */
            assert_memory_equal(batch->image + i * floats, want->image + at * floats,
                                floats * sizeof(float));
            assert_memory_equal(batch->teacher_image + i * other_floats,
                                want->teacher_image + at * other_floats,
                                other_floats * sizeof(float));
        }
        count += batch->count;
        tg_loader_release(job->loader, batch);
        if (tg_loader_next(job->loader, &batch) == TG_END)
            break;
    }
    assert_int_equal(count, job->train.count);
    tg_loader_close(loader);
}

static void no_aug_is_what_evaluation_sees(void **state)
{
    (void)state;
    char path[4300];
    const tg_train_watch watch = {0};
    tg_train_options options = options_of(labelled);
    options.augment.no_aug = true;
    options.preprocess.crop_pct = 0.75;
    snprintf(path, sizeof path, "%s/no-aug", tg_test_temp_dir());
    tg_job job = {.options = &options, .watch = &watch, .run_path = path};
    assert_ok(tg_job_open(&job));
    compare_views(&job);
    assert_true(job.step.objective.kd == TG_KD_KL);
    tg_job_close(&job);
}

/* A folder with a config.json alone: an architecture is compared before weights are read. */
static void write_config(const char *path, const char *architecture, const char *arguments)
{
    char file[4400], text[512];
    int n = snprintf(text, sizeof text,
                     "{\"architecture\": \"%s\", \"num_classes\": 6, \"model_args\": {%s}}",
                     architecture, arguments);
    assert_ok(tg_folder_make(path));
    snprintf(file, sizeof file, "%s/config.json", path);
    assert_ok(tg_file_write(file, text, (size_t)n));
}

static tg_status open_start(const char *model, const char *stored)
{
    tg_train_options options = tg_train_options_default();
    const tg_train_watch watch = {0};
    char path[4300];
    snprintf(path, sizeof path, "%s/start", tg_test_temp_dir());
    options.data.data = labelled;
    options.data.workers = 0;
    options.model.model = model;
    options.model.initial_checkpoint = stored;
    options.cpu_cap = tg_test_cpu_cap();
    tg_job job = {.options = &options, .watch = &watch, .run_path = path};
    tg_status status = tg_job_open(&job);
    tg_job_close(&job);
    return status;
}

static void stored_weights_are_of_the_named_architecture(void **state)
{
    (void)state;
    static const struct {
        const char *model, *architecture, *arguments, *what;
    } cases[] = {
        {"deit_tiny_distilled_patch16_224", "vit_tiny_patch16_224", "", "distillation tokens"},
        {"vit_tiny_patch16_224", "deit_tiny_distilled_patch16_224", "", "distillation tokens"},
        {"vit_small_patch14_reg4_dinov2", "vit_small_patch14_dinov2", "", "register tokens"},
        {"vit_small_patch14_dinov2", "vit_small_patch14_reg4_dinov2", "", "register tokens"},
        {"vit_tiny_patch16_224", "vit_tiny_patch16_224", "\"reg_tokens\": 2", "register tokens"},
        {"vit_tiny_patch16_224", "vit_tiny_patch16_224", "\"init_values\": 1e-5", "LayerScale"},
        {"vit_tiny_patch16_224", "vit_tiny_patch16_224", "\"global_pool\": \"avg\"", "pooling"},
        {"vit_tiny_patch16_224", "vit_tiny_patch16_224",
         "\"class_token\": false, \"global_pool\": \"avg\"", "class tokens"},
        {"vit_tiny_patch16_224", "vit_small_patch16_224", "", "width"},
        {"vit_tiny_patch16_224", "vit_tiny_patch16_224", "\"depth\": 3", "depth"},
        {"vit_tiny_patch16_224", "vit_tiny_patch16_224", "", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char stored[4300];
        snprintf(stored, sizeof stored, "%s/stored-%zu", tg_test_temp_dir(), i);
        write_config(stored, cases[i].architecture, cases[i].arguments);
        if (cases[i].what)
            assert_error(open_start(cases[i].model, stored), TG_ERROR_USAGE, cases[i].what);
        else /* of the same architecture: the weights are looked for */
            assert_error(open_start(cases[i].model, stored), TG_ERROR_INPUT, "model.safetensors");
    }
}

static void two_models_to_start_from_are_one_too_many(void **state)
{
    (void)state;
    assert_error(open_start(teacher, teacher), TG_ERROR_USAGE, "--initial-checkpoint");
    assert_error(open_start("nowhere/", teacher), TG_ERROR_USAGE, "--initial-checkpoint");
}

static tg_status open_data(const char *data, tg_job *out)
{
    static tg_train_options options;
    options = options_of(data);
    options.distill.objective.alpha = 1;
    options.data.train_split = "";
    *out = (tg_job){.options = &options};
    warnings[0] = '\0';
    tg_log_set(listen, NULL, TG_LOG_INFO);
    tg_status status = tg_job_open_data(out);
    tg_log_set(NULL, NULL, TG_LOG_INFO);
    return status;
}

/* Photos alone train without labels, which is said; a fault of class folders stays a fault. */
static void labels_are_left_out_only_where_there_are_none(void **state)
{
    (void)state;
    char broken[4300], class_folder[4400];
    tg_job job;
    assert_ok(open_data(flat, &job));
    assert_null(job.train.class_names);
    assert_int_equal(job.train.count, 2 * K);
    assert_non_null(strstr(warnings, "without labels"));
    assert_non_null(strstr(warnings, "no class folder"));
    tg_dataset_done(&job.train);

    snprintf(broken, sizeof broken, "%s/broken", tg_test_temp_dir());
    snprintf(class_folder, sizeof class_folder, "%s/ramen", broken);
    assert_ok(tg_folder_make(class_folder));
    snprintf(class_folder, sizeof class_folder, "%s/1.jpg", broken);
    assert_ok(tg_tiny_photo_write(class_folder, 30, 40, 1));
    assert_ok(open_data(broken, &job)); /* a folder without photos is no class */
    assert_null(job.train.class_names);
    assert_int_equal(job.train.count, 1);
    tg_dataset_done(&job.train);

    snprintf(class_folder, sizeof class_folder, "%s/caf\xe9", broken);
    assert_ok(tg_folder_make(class_folder));
    assert_error(open_data(broken, &job), TG_ERROR_INPUT, "UTF-8");
    tg_dataset_done(&job.train);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_aug_is_what_evaluation_sees),
        cmocka_unit_test(stored_weights_are_of_the_named_architecture),
        cmocka_unit_test(two_models_to_start_from_are_one_too_many),
        cmocka_unit_test(labels_are_left_out_only_where_there_are_none),
    };
    return cmocka_run_group_tests(tests, write_fixtures, NULL);
}
