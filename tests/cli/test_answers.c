/* eval and predict on a model folder and generated pictures: the promised rows in the order of the
 * files, errors as rows, and the same answer alone and among others. */
#include "support/check.h"

#include "base/json.h"
#include "ckpt/model_folder.h"
#include "data/synth.h"
#include "os/file.h"
#include "tensor/param.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

enum { CLASSES = 3, PER_CLASS = 5 };

static char program[4200];

static void write_model(const char *path)
{
    tg_model_info info = {.preprocess = tg_preprocess_default(32), .class_count = CLASSES};
    assert_ok(tg_vit_config_preset("vit_tiny_patch16_224", &info.config));
    info.config.img_h = info.config.img_w = 32;
    info.config.depth = 1;
    info.config.num_classes = CLASSES;
    char *names[CLASSES];
    for (int c = 0; c < CLASSES; c++)
        names[c] = (char *)(uintptr_t)tg_synth_class_name(c);
    info.class_names = names;
    tg_param_table table = {0};
    assert_ok(tg_vit_params(&info.config, &table));
    float *params = calloc(table.elements, sizeof *params);
    tg_vit_init_weights(&info.config, &table, 1, params);
    const tg_param *head = tg_param_find(&table, "head.weight");
    for (size_t i = 0; i < head->count; i++) /* a fresh head would find every class alike */
        params[head->offset + i] *= 50;
    assert_ok(tg_model_write(path, &info, &table, params, TG_NAMING_TIMM));
    free(params);
    tg_param_table_done(&table);
}

static int prepare(void **state)
{
    (void)state;
    char path[4300];
    const char *work = tg_test_temp_dir();
    snprintf(program, sizeof program, "%s/tagine", getenv("TAGINE_BINARY_DIR"));
    snprintf(path, sizeof path, "%s/model", work);
    write_model(path);
    snprintf(path, sizeof path, "%s/data", work);
    tg_synth_options synth = tg_synth_options_default();
    synth.output = path;
    synth.class_count = CLASSES;
    synth.per_class = PER_CLASS;
    synth.val_share = 1;
    synth.size_px = 32;
    assert_ok(tg_synth_write(&synth, NULL, NULL));
    snprintf(path, sizeof path, "%s/broken.jpg", work);
    assert_ok(tg_file_write(path, "not a picture", 13));
    return 0;
}

/* Runs "tagine ARGUMENTS" in the test's folder; its standard output, and its exit code. */
static char *run(const char *arguments, int *out_code)
{
    char command[9000];
    static char output[1 << 16];
    snprintf(command, sizeof command, "cd '%s' && '%s' %s --threads 1 2>err", tg_test_temp_dir(),
             program, arguments);
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    size_t n = fread(output, 1, sizeof output - 1, pipe);
    output[n] = '\0';
    *out_code = WEXITSTATUS(pclose(pipe));
    return output;
}

static char file_of_class[CLASSES][256];

static const char *val_file(int c)
{
    snprintf(file_of_class[c], sizeof file_of_class[c], "data/val/%s/00001.jpg",
             tg_synth_class_name(c));
    return file_of_class[c];
}

static void eval_counts_every_photo(void **state)
{
    (void)state;
    int code;
    tg_json json;
    const char *text = run("eval --model model --data data --json --batch-size 4", &code);
    assert_int_equal(code, 0);
    assert_ok(tg_json_parse(text, strlen(text), "eval", &json));
    tg_json_node root = tg_json_root(&json);
    const char *keys[] = {"top1", "top5", "loss", "images", "skipped", "images_per_s"};
    double values[6];
    for (int i = 0; i < 6; i++)
        assert_ok(tg_json_get_double(&root, keys[i], TG_REQUIRED, &values[i]));
    assert_true(values[0] >= 0 && values[0] <= 100 && values[1] == 100 && values[2] > 0);
    assert_true(values[3] == CLASSES * PER_CLASS && values[4] == 0 && values[5] > 0);
    tg_json_done(&json);
}

/* Splits the next line off; false at the end. */
static bool next_row(char **at, tg_json *json, tg_json_node *out)
{
    char *line = strsep(at, "\n");
    if (!line || !*line)
        return false;
    assert_ok(tg_json_parse(line, strlen(line), "row", json));
    *out = tg_json_root(json);
    return true;
}

static void predict_answers_in_order(void **state)
{
    (void)state;
    int code;
    char arguments[1200];
    snprintf(
        arguments, sizeof arguments,
        "predict --model model --json --logits --topk 9 --batch-size 2 %s broken.jpg absent %s "
        "%s",
        val_file(2), val_file(0), val_file(1));
    char *at = run(arguments, &code);
    assert_int_equal(code, 0);
    const char *files[] = {val_file(2), "broken.jpg", "absent", val_file(0), val_file(1)};
    for (int i = 0; i < 5; i++) {
        tg_json json;
        tg_json_node row, list, logits, ignored;
        const char *file = "", *error = NULL;
        assert_true(next_row(&at, &json, &row));
        assert_ok(tg_json_get_string(&row, "file", TG_REQUIRED, &file));
        assert_string_equal(file, files[i]);
        assert_ok(tg_json_get_string(&row, "error", TG_OPTIONAL, &error));
        assert_int_equal(error != NULL, i == 1 || i == 2);
        if (!error) {
            double sum = 0, last = 1;
            assert_ok(tg_json_get_array(&row, "predictions", TG_REQUIRED, &list, NULL));
            assert_ok(tg_json_get_array(&row, "logits", TG_REQUIRED, &logits, NULL));
            assert_true(tg_json_find(&row, "nutrition", &ignored));
            assert_int_equal(tg_json_count(&list), CLASSES); /* 9 were asked for */
            assert_int_equal(tg_json_count(&logits), CLASSES);
            for (size_t k = 0; k < CLASSES; k++) {
                tg_json_node entry = tg_json_element(&list, k);
                double score = -1;
                assert_ok(tg_json_get_double(&entry, "score", TG_REQUIRED, &score));
                assert_true(score <= last);
                last = score;
                sum += score;
            }
            assert_true(fabs(sum - 1) < 1e-5); /* each rounded to float */
        }
        tg_json_done(&json);
    }
    assert_false(at && *at);
}

static void read_logits(char **at, double out[CLASSES])
{
    tg_json json;
    tg_json_node row;
    assert_true(next_row(at, &json, &row));
    assert_ok(tg_json_get_doubles(&row, "logits", TG_REQUIRED, CLASSES, out));
    tg_json_done(&json);
}

/* One photo alone or among others: the same logits. Products of another shape may add in another
 * order: with 192 terms of size about 1, a few hundred float roundings (6e-8) at most. */
static void batches_do_not_change_answers(void **state)
{
    (void)state;
    int code;
    char arguments[1200];
    double alone[CLASSES], among[CLASSES];
    snprintf(arguments, sizeof arguments, "predict --model model --json --logits %s", val_file(1));
    char *at = run(arguments, &code);
    assert_int_equal(code, 0);
    read_logits(&at, alone);
    snprintf(arguments, sizeof arguments, "predict --model model --json --logits %s %s %s",
             val_file(0), val_file(1), val_file(2));
    at = run(arguments, &code);
    read_logits(&at, among);
    read_logits(&at, among);
    for (int k = 0; k < CLASSES; k++)
        assert_true(fabs(alone[k] - among[k]) < 1e-4);
}

static void wrong_models_are_refused(void **state)
{
    (void)state;
    int code;
    run("eval --data data", &code);
    assert_int_equal(code, 2);
    run("predict --model absent data/x.jpg", &code);
    assert_int_equal(code, 3);
    run("eval --model model --data data --val-split train+nothing", &code);
    assert_int_equal(code, 3);
    run("eval --model data --data data", &code);
    assert_int_equal(code, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(eval_counts_every_photo),
        cmocka_unit_test(predict_answers_in_order),
        cmocka_unit_test(batches_do_not_change_answers),
        cmocka_unit_test(wrong_models_are_refused),
    };
    return cmocka_run_group_tests(tests, prepare, NULL);
}
