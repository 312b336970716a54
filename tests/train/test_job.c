/* A whole job survives what happens around its evaluations: a stop in the middle of one, a model folder
 * that cannot be written, a resume from another run; and says when they mean nothing. */
#include "support/check.h"
#include "support/device.h"
#include "support/tiny.h"

#include "base/log.h"
#include "ckpt/state.h"
#include "ckpt/state_record.h"
#include "os/file.h"
#include "os/folder.h"
#include "train/job.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { PER_CLASS = 2, PHOTOS = TG_TINY_CLASSES * PER_CLASS };

static char data[4096];

static int write_photos(void **state)
{
    (void)state;
    static const char *const splits[] = {"train", "val"};
    char path[4300];
    snprintf(data, sizeof data, "%s/data", tg_test_temp_dir());
    for (unsigned i = 0; i < 2 * PHOTOS; i++) {
        const char *class_name = tg_tiny_class_names[i / 2 % TG_TINY_CLASSES];
        snprintf(path, sizeof path, "%s/%s/%s", data, splits[i % 2], class_name);
        assert_ok(tg_folder_make(path));
        snprintf(path, sizeof path, "%s/%s/%s/%u.jpg", data, splits[i % 2], class_name, i);
        assert_ok(tg_tiny_photo_write(path, 40, 36, i));
    }
    return 0;
}

static tg_train_options options_of(int64_t epochs, const char *resume)
{
    tg_train_options o = tg_train_options_default();
    o.model.img_size = 32;
    o.model.patch_size = 8;
    o.model.embed_dim = 32;
    o.model.depth = 1;
    o.model.num_heads = 2;
    o.data.data = data;
    o.data.workers = 0;
    o.recipe.epochs = epochs;
    o.recipe.batch_size = 4;
    o.recipe.warmup_epochs = 0;
    o.output.resume = resume;
    o.cpu_cap = tg_test_cpu_cap();
    return o;
}

/* What the callbacks of a test do and see. */
typedef struct viewer {
    int stop_in_evaluation, stop_after_evaluation, stopping;
    int evaluations;
    int64_t steps;  /* end after so many updates; 0: no limit */
    bool disk_full; /* from the first evaluation to the second */
} viewer;

static void evaluating(void *user, uint64_t done, uint64_t total)
{
    viewer *v = user;
    (void)done;
    (void)total;
    v->stopping = v->stop_in_evaluation;
}

/* Writing past `bytes` fails, as on a full disk. */
static void limit_files(rlim_t bytes)
{
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = bytes < limit.rlim_max ? bytes : limit.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static void evaluated(void *user, const char *what, int64_t epoch, const tg_evaluation *evaluation)
{
    viewer *v = user;
    (void)what, (void)epoch;
    assert_int_equal(evaluation->images, PHOTOS);
    v->evaluations++;
    v->stopping = v->stop_after_evaluation;
    if (v->disk_full)
        limit_files(v->evaluations == 1 ? 256 : RLIM_INFINITY);
}

static int stop(void *user)
{
    return ((viewer *)user)->stopping;
}

static tg_status run(const char *name, int64_t epochs, const char *resume, viewer *v,
                     tg_train_result *out)
{
    char path[4200];
    snprintf(path, sizeof path, "%s/%s", tg_test_temp_dir(), name);
    assert_ok(tg_folder_make(path));
    tg_train_options options = options_of(epochs, resume);
    options.output.max_steps = v->steps;
    const tg_train_watch watch = {
        .user = v, .evaluation = evaluated, .evaluating = evaluating, .stop = stop};
    return tg_train_job_run(&options, path, &watch, out);
}

static bool has_model(const char *name)
{
    char path[4200];
    snprintf(path, sizeof path, "%s/%s/model/config.json", tg_test_temp_dir(), name);
    return tg_file_exists(path);
}

static void test_an_evaluation_that_was_stopped_is_made_up(void **state)
{
    (void)state;
    tg_train_result result;
    viewer impatient = {.stop_in_evaluation = 1}, patient = {0};
    assert_error(run("stopped", 1, "auto", &impatient, &result), TG_ERROR_STOPPED, "saved");
    assert_int_equal(impatient.evaluations, 0);
    assert_ok(run("stopped", 1, "auto", &patient, &result));
    assert_int_equal(patient.evaluations, 1);
    assert_int_equal(result.evaluation.images, PHOTOS);
    assert_int_equal(result.updates, 3);
    assert_true(has_model("stopped"));
}

static void test_a_stop_after_an_evaluation_keeps_its_score(void **state)
{
    (void)state;
    char path[4300];
    int64_t step;
    double score;
    tg_train_result result;
    viewer impatient = {.stop_after_evaluation = 1}, patient = {0};
    assert_error(run("scored", 2, "auto", &impatient, &result), TG_ERROR_STOPPED, "saved");
    assert_int_equal(impatient.evaluations, 1);
    snprintf(path, sizeof path, "%s/scored/checkpoints/best", tg_test_temp_dir());
    assert_ok(tg_state_record_read(path, &(tg_state){0}, &step, &score));
    assert_true(step == 3 && score >= 0);
    assert_ok(run("scored", 2, "auto", &patient, &result)); /* the first is not made up */
    assert_int_equal(patient.evaluations, 1);
}

/* The same for the evaluation that ends a run of --steps: in the middle of an epoch (2), at the last
 * full batch of one (3), and in the next (4). A second resume has nothing left to do. */
static void test_the_last_evaluation_of_steps_is_made_up(void **state)
{
    (void)state;
    for (int64_t steps = 2; steps <= 4; steps++) {
        char name[32];
        tg_train_result result;
        viewer impatient = {.stop_in_evaluation = 1, .steps = steps};
        viewer patient = {.steps = steps}, idle = {.steps = steps};
        snprintf(name, sizeof name, "steps%d", (int)steps);
        /* epoch 1 ends with an evaluation of its own, which is stopped first where steps is 4 */
        assert_error(run(name, 3, "auto", &impatient, &result), TG_ERROR_STOPPED, "saved");
        if (steps == 4) {
            viewer once = {.steps = 3};
            assert_ok(run(name, 3, "auto", &once, &result));
            assert_int_equal(once.evaluations, 1);
            impatient.stopping = 0;
            assert_error(run(name, 3, "auto", &impatient, &result), TG_ERROR_STOPPED, "saved");
        }
        assert_int_equal(impatient.evaluations, 0);
        assert_ok(run(name, 3, "auto", &patient, &result));
        assert_int_equal(patient.evaluations, 1);
        assert_int_equal(result.updates, steps);
        assert_int_equal(result.evaluation.images, PHOTOS);
        assert_true(has_model(name));
        assert_ok(run(name, 3, "auto", &idle, &result));
        assert_int_equal(idle.evaluations, 0);
        assert_int_equal(result.updates, steps);
    }
}

/* A run directory, and its folder of checkpoints, mean the newest whole checkpoint there. */
static void test_a_run_may_be_resumed_by_its_folder(void **state)
{
    (void)state;
    char path[4300];
    tg_train_result result;
    viewer v = {.steps = 2}, rest = {0};
    assert_ok(run("source", 1, NULL, &v, &result));
    snprintf(path, sizeof path, "%s/source", tg_test_temp_dir());
    assert_ok(run("by-run", 1, path, &rest, &result));
    assert_int_equal(result.updates, 3);
    snprintf(path, sizeof path, "%s/source/checkpoints", tg_test_temp_dir());
    assert_ok(run("by-folder", 1, path, &rest, &result));
    assert_int_equal(result.updates, 3);
    snprintf(path, sizeof path, "%s/source/checkpoints/step-2", tg_test_temp_dir());
    assert_ok(run("by-step", 1, path, &rest, &result));
    assert_int_equal(result.updates, 3);
    snprintf(path, sizeof path, "%s/empty/checkpoints", tg_test_temp_dir());
    assert_ok(tg_folder_make(path));
    path[strlen(path) - strlen("/checkpoints")] = '\0';
    assert_error(run("by-empty", 1, path, &rest, &result), TG_ERROR_INPUT, "no whole checkpoint");
    assert_error(run("by-nothing", 1, "/nowhere", &rest, &result), TG_ERROR_INPUT,
                 "give a run directory, a checkpoint");
    assert_error(run("by-photos", 1, data, &rest, &result), TG_ERROR_INPUT, "manifest");
}

static int overlaps;
static char overlap[512];

static void listen(void *user, tg_log_level level, const char *line)
{
    (void)user;
    if (level == TG_LOG_WARNING && strstr(line, "training photos as well")) {
        overlaps++;
        snprintf(overlap, sizeof overlap, "%s", line);
    }
}

static int overlaps_of(const char *name, const char *train_split, const char *val_split)
{
    char path[4200];
    tg_train_result result;
    const tg_train_watch watch = {0};
    tg_train_options options = options_of(1, NULL);
    options.data.train_split = train_split;
    options.data.val_split = val_split;
    snprintf(path, sizeof path, "%s/%s", tg_test_temp_dir(), name);
    assert_ok(tg_folder_make(path));
    overlaps = 0;
    tg_log_set(listen, NULL, TG_LOG_INFO);
    assert_ok(tg_train_job_run(&options, path, &watch, &result));
    tg_log_set(NULL, NULL, TG_LOG_INFO);
    return overlaps;
}

static void test_validation_on_training_photos_is_said_once(void **state)
{
    (void)state;
    char link[4200];
    assert_int_equal(overlaps_of("apart", "train", "val"), 0);
    assert_int_equal(overlaps_of("share", "", "0.2"), 0);
    assert_int_equal(overlaps_of("same", "train", "train"), 1);
    assert_non_null(strstr(overlap, "12 of 12 validation photos"));
    assert_int_equal(overlaps_of("joined", "train+val", "val"), 1);
    assert_non_null(strstr(overlap, "12 of 12"));
    assert_int_equal(overlaps_of("both", "train", "val+train"), 1);
    assert_non_null(strstr(overlap, "12 of 24"));
    snprintf(link, sizeof link, "%s/linked", data);
    assert_int_equal(symlink("train", link), 0);
    assert_int_equal(overlaps_of("links", "train", "linked"), 1);
    assert_int_equal(unlink(link), 0);
}

static void test_a_model_that_cannot_be_written_costs_nothing_else(void **state)
{
    (void)state;
    tg_train_result result;
    viewer v = {.disk_full = true};
    signal(SIGXFSZ, SIG_IGN);
    assert_ok(run("full", 2, NULL, &v, &result));
    assert_int_equal(v.evaluations, 2);
    assert_int_equal(result.evaluation.images, PHOTOS);
    assert_true(has_model("full"));
}

static void test_a_resume_from_another_run_has_a_model(void **state)
{
    (void)state;
    char last[4200];
    tg_train_result result;
    viewer v = {0};
    assert_ok(run("first", 1, NULL, &v, &result));
    snprintf(last, sizeof last, "%s/first/checkpoints/last", tg_test_temp_dir());
    assert_ok(run("second", 1, last, &v, &result));
    assert_true(has_model("second"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_evaluation_that_was_stopped_is_made_up),
        cmocka_unit_test(test_a_stop_after_an_evaluation_keeps_its_score),
        cmocka_unit_test(test_the_last_evaluation_of_steps_is_made_up),
        cmocka_unit_test(test_a_run_may_be_resumed_by_its_folder),
        cmocka_unit_test(test_validation_on_training_photos_is_said_once),
        cmocka_unit_test(test_a_model_that_cannot_be_written_costs_nothing_else),
        cmocka_unit_test(test_a_resume_from_another_run_has_a_model),
    };
    return cmocka_run_group_tests(tests, write_photos, NULL);
}
