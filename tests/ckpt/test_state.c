/* A state comes back bit for bit or not at all; rotation never takes what is best, last or unknown;
 * a full disk and a kill at any moment cost at most the save under way. */
#include "support/check.h"

#include "ckpt/preset_preprocess.h"
#include "ckpt/state_save.h"
#include "os/file.h"
#include "os/folder.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

typedef struct record {
    int64_t epoch;
    uint64_t seed;
    double best;
    char digest[16];
} record;

/* A job: a small model, its buffers and its record. */
typedef struct job {
    tg_model_info info;
    tg_param_table table;
    float *params, *m, *v;
    record record;
    tg_state_piece pieces[3];
    tg_state_buffer buffers[3];
    tg_state_field fields[4];
    tg_state state;
    tg_state_model model;
    char folder[512];
} job;

static void job_open(job *j, const char *name)
{
    *j = (job){0};
    snprintf(j->folder, sizeof j->folder, "%s/%s", tg_test_temp_dir(), name);
    tg_vit_config *c = &j->info.config;
    assert_ok(tg_vit_config_preset("vit_tiny_patch16_224", c));
    c->img_h = c->img_w = 32;
    c->embed_dim = 20; /* not a multiple of the placing: there is padding */
    c->num_heads = 2;
    c->depth = 1;
    c->mlp_hidden = 24;
    c->num_classes = 3;
    j->info.preprocess = tg_preset_preprocess(c);
    assert_ok(tg_vit_params(c, &j->table));
    j->params = calloc(j->table.elements, sizeof(float));
    j->m = calloc(j->table.elements, sizeof(float));
    j->v = calloc(j->table.elements, sizeof(float));
    float *const data[] = {j->params, j->m, j->v};
    static const char *const names[] = {"params", "m", "v"};
    for (int b = 0; b < 3; b++) {
        j->pieces[b] = (tg_state_piece){0, j->table.elements, data[b]};
        j->buffers[b] = (tg_state_buffer){names[b], &j->table, &j->pieces[b], 1};
    }
    record *r = &j->record;
    j->fields[0] = (tg_state_field){"epoch", TG_STATE_I64, &r->epoch, 0};
    j->fields[1] = (tg_state_field){"seed", TG_STATE_U64, &r->seed, 0};
    j->fields[2] = (tg_state_field){"best", TG_STATE_DOUBLE, &r->best, 0};
    j->fields[3] = (tg_state_field){"digest", TG_STATE_STRING, r->digest, sizeof r->digest};
    j->state = (tg_state){j->buffers, 3, j->fields, 4};
    j->model = (tg_state_model){&j->info, &j->table, 0};
}

static void job_close(job *j)
{
    free(j->params);
    free(j->m);
    free(j->v);
    tg_param_table_done(&j->table);
}

/* Values that tell the step: a mixture of two saves cannot pass for one. */
static void set_step(job *j, int64_t step)
{
    float *data[] = {j->params, j->m, j->v};
    for (size_t i = 0; i < j->table.count; i++)
        for (size_t k = 0; k < j->table.items[i].count; k++)
            for (int b = 0; b < 3; b++)
                data[b][j->table.items[i].offset + k] =
                    (float)step + (float)b / 3 + (float)(k % 5) / 7;
    j->record = (record){step * 3, UINT64_MAX - (uint64_t)step, 1.0 / (double)(step + 1), "ab\"c"};
}

/* By one process alone. */
static tg_status save_with(job *j, const tg_state_save_options *options)
{
    tg_state_save save;
    tg_state_sums sums;
    tg_status status;
    TG_TRY(tg_state_save_begin(options, &j->model, &j->state, &save));
    for (size_t b = 0; b < 3; b++)
        TG_TRY_GOTO(tg_state_save_write(&save, b, &j->pieces[b]), discard);
    TG_TRY_GOTO(tg_state_save_sync(&save, &sums), discard);
    return tg_state_save_finish(&save, &sums);
discard:
    tg_state_save_discard(&save);
    return status;
}

static tg_status save(job *j, int64_t step, double score, bool best, size_t keep)
{
    set_step(j, step);
    const tg_state_save_options options = {j->folder, step, score, best, keep};
    return save_with(j, &options);
}

static tg_status check_and_load(job *j, const char *path, int64_t *out_step)
{
    TG_TRY(tg_state_check(path));
    return tg_state_load(path, &j->state, out_step, NULL);
}

static void check_step(job *j, const char *path, int64_t expected)
{
    job want;
    int64_t step;
    size_t bytes = j->table.elements * sizeof(float);
    job_open(&want, "unused");
    set_step(&want, expected);
    memset(j->params, 0xFF, bytes);
    memset(j->m, 0xFF, bytes);
    memset(j->v, 0xFF, bytes);
    j->record = (record){0};
    assert_ok(check_and_load(j, path, &step));
    assert_int_equal(step, expected);
    assert_memory_equal(j->params, want.params, bytes);
    assert_memory_equal(j->m, want.m, bytes);
    assert_memory_equal(j->v, want.v, bytes);
    assert_int_equal(j->record.epoch, want.record.epoch);
    assert_true(j->record.seed == want.record.seed && j->record.best == want.record.best);
    assert_string_equal(j->record.digest, want.record.digest);
    job_close(&want);
}

static void path_of(const job *j, const char *name, char out[600])
{
    snprintf(out, 600, "%s/%s", j->folder, name);
}

/* The names in the folder, sorted and joined by blanks. */
static int any_name(const struct dirent *entry)
{
    return strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
}

static void holds(const job *j, const char *expected)
{
    struct dirent **names;
    char found[2000] = "";
    int n = scandir(j->folder, &names, any_name, alphasort);
    assert_true(n >= 0);
    for (int i = 0; i < n; i++) {
        strcat(strcat(found, i ? " " : ""), names[i]->d_name);
        free(names[i]);
    }
    free(names);
    assert_string_equal(found, expected);
}

static void comes_back_bit_for_bit(void **state)
{
    (void)state;
    job j;
    char path[600], model[600];
    tg_model_info info;
    job_open(&j, "round");
    assert_ok(save(&j, 7, 0.25, true, 3));
    path_of(&j, "last", path);
    check_step(&j, path, 7);
    path_of(&j, "best", path);
    check_step(&j, path, 7);
    path_of(&j, "step-7/model", model);
    assert_ok(tg_model_read_info(model, &info));
    assert_int_equal(info.config.embed_dim, 20);
    tg_model_info_done(&info);
    assert_ok(tg_model_read_info(path, &info)); /* `best` serves as a model too */
    tg_model_info_done(&info);
    assert_ok(save(&j, 7, NAN, false, 3)); /* again, over itself */
    check_step(&j, path, 7);
    job_close(&j);
}

static void odd_numbers_come_back(void **state)
{
    (void)state;
    job j;
    int64_t step;
    const double values[] = {NAN, INFINITY, -INFINITY, -0.0, 5e-324};
    char path[600];
    job_open(&j, "numbers");
    path_of(&j, "last", path);
    for (size_t i = 0; i < 5; i++) {
        set_step(&j, 1);
        j.record.best = values[i];
        const tg_state_save_options options = {j.folder, 1, values[i], false, 1};
        assert_ok(save_with(&j, &options));
        j.record.best = 3;
        assert_ok(check_and_load(&j, path, &step));
        if (isnan(values[i]))
            assert_true(isnan(j.record.best));
        else
            assert_memory_equal(&j.record.best, &values[i], sizeof(double));
    }
    job_close(&j);
}

static void rotation_keeps_newest_best_and_last(void **state)
{
    (void)state;
    job j;
    assert_true(tg_state_is_better(0.1, NAN) && !tg_state_is_better(NAN, NAN));
    assert_true(!tg_state_is_better(0.5, 0.5) && !tg_state_is_better(NAN, 0));
    job_open(&j, "rising");
    assert_ok(save(&j, 1, 0.5, true, 1));
    assert_ok(save(&j, 2, NAN, false, 1));
    holds(&j, "best last step-1 step-2");
    assert_ok(save(&j, 3, 0.4, false, 1));
    holds(&j, "best last step-1 step-3");
    assert_ok(save(&j, 4, 0.6, true, 1));
    holds(&j, "best last step-4");
    job_close(&j);
    job_open(&j, "keeping");
    for (int64_t step = 1; step <= 12; step++)
        assert_ok(save(&j, step, step == 2 ? 0.9 : 0.1, step == 2, 3));
    holds(&j, "best last step-10 step-11 step-12 step-2");
    job_close(&j);
}

static void what_is_unknown_or_better_stays(void **state)
{
    (void)state;
    job j;
    char path[600];
    job_open(&j, "unknown");
    assert_ok(save(&j, 1, 0.1, true, 1));
    assert_ok(save(&j, 2, 0.5, false, 9)); /* better than what `best` says */
    assert_ok(save(&j, 3, 0.05, false, 9));
    path_of(&j, "step-3/state.json", path);
    assert_ok(tg_file_write(path, "{", 1));
    path_of(&j, "step-notes", path);
    assert_ok(tg_folder_make(path));
    assert_ok(save(&j, 4, 0.05, false, 9));
    assert_ok(save(&j, 5, 0.05, false, 1));
    holds(&j, "best last step-1 step-2 step-3 step-5 step-notes");
    path_of(&j, "best", path); /* with `best` gone nothing with a score goes */
    assert_int_equal(unlink(path), 0);
    assert_ok(save(&j, 6, 0.01, false, 1));
    holds(&j, "last step-1 step-2 step-3 step-5 step-6 step-notes");
    job_close(&j);
}

/* `best` without a score bars nothing from going: the best of the scores stays, the others go. */
static void a_best_without_a_score_keeps_the_best_of_the_others(void **state)
{
    (void)state;
    job j;
    job_open(&j, "unscored");
    assert_ok(save(&j, 1, 0.1, false, 9));
    assert_ok(save(&j, 2, 0.5, false, 9));
    assert_ok(save(&j, 3, 0.5, false, 9));
    assert_ok(save(&j, 4, NAN, true, 9));
    assert_ok(save(&j, 5, 0.3, false, 1));
    holds(&j, "best last step-2 step-4 step-5");
    job_close(&j);
}

static void refuses(job *j, const char *path, const char *part)
{
    assert_error(check_and_load(j, path, NULL), TG_ERROR_INPUT, part);
}

static void damage_is_found_and_passed_over(void **state)
{
    (void)state;
    job j;
    char path[600], other[600], file[600], *found = NULL;
    job_open(&j, "damage");
    assert_int_equal(tg_state_find_last(j.folder, &found), TG_END);
    assert_null(found);
    for (int64_t step = 1; step <= 4; step++)
        assert_ok(save(&j, step, NAN, false, 9));
    path_of(&j, "step-4", path);
    path_of(&j, "step-4/state.safetensors", file);
    path_of(&j, "step-3/state.safetensors", other);
    assert_int_equal(rename(other, file), 0); /* half of one, half of the other */
    refuses(&j, path, "state.safetensors");
    assert_non_null(strstr(tg_error_message(), "CRC"));
    path_of(&j, "step-3", path);
    refuses(&j, path, "state.safetensors");
    path_of(&j, "step-2", path);
    path_of(&j, "step-2/model/model.safetensors", file);
    assert_int_equal(truncate(file, 1000), 0);
    refuses(&j, path, "model.safetensors");
    assert_ok(tg_state_find_last(j.folder, &found));
    check_step(&j, found, 1);
    free(found);
    path_of(&j, "step-1/manifest.json", file);
    assert_int_equal(unlink(file), 0);
    assert_int_equal(tg_state_find_last(j.folder, &found), TG_ERROR_INPUT);
    assert_non_null(strstr(tg_error_message(), "none of the 4"));
    path_of(&j, "step-1", path);
    refuses(&j, path, "manifest.json");
    job_close(&j);
}

static void states_are_not_restored_in_part(void **state)
{
    (void)state;
    job j;
    char path[600];
    job_open(&j, "part");
    assert_ok(save(&j, 1, NAN, false, 1));
    path_of(&j, "last", path);
    j.state.buffer_count = 2;
    refuses(&j, path, "not the state of this job");
    j.state.buffer_count = 3;
    j.buffers[2].name = "average";
    refuses(&j, path, "missing average/cls_token");
    j.buffers[2].name = "v";
    j.fields[0].key = "steps_left";
    refuses(&j, path, "steps_left is missing");
    j.fields[0].key = "epoch";
    j.fields[3].size = 2;
    refuses(&j, path, "digest");
    j.fields[3].size = 16;
    check_step(&j, path, 1);
    job_close(&j);
}

/* Every write beyond a few bytes fails, as on a full disk. */
static void a_full_disk_costs_nothing_older(void **state)
{
    (void)state;
    job j;
    char path[600];
    struct rlimit before, small = {0};
    job_open(&j, "full");
    assert_ok(save(&j, 1, NAN, false, 1));
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, SIG_IGN);
    for (rlim_t limit = 0; limit < 40000; limit += 2500) {
        small = (struct rlimit){limit, before.rlim_max};
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
        tg_status status = save(&j, 2, 0.5, true, 1);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
        assert_error(status, TG_ERROR_MACHINE, "step-2");
        holds(&j, "last step-1");
    }
    path_of(&j, "last", path);
    check_step(&j, path, 1);
    assert_ok(save(&j, 2, 0.5, true, 1));
    holds(&j, "best last step-2");
    job_close(&j);
}

/* The child counts the saves that it has finished. */
static void save_for_ever(job *j, int64_t first, volatile int64_t *done)
{
    for (int64_t step = first;; step++) {
        if (save(j, step, step % 3 ? 0.1 : NAN, step == first, 2) < 0)
            _exit(1);
        *done = step;
    }
}

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void kills_cost_at_most_one_save(void **state)
{
    (void)state;
    enum { KILLS = 60 };
    job j;
    volatile int64_t *done =
        mmap(NULL, sizeof *done, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(done != MAP_FAILED);
    job_open(&j, "kill");
    assert_ok(save(&j, 1, 0.1, true, 2));
    int64_t begin = now_ns();
    assert_ok(save(&j, 1, 0.1, true, 2));
    int64_t one_save_ns = now_ns() - begin;
    *done = 1;
    for (int i = 0; i < KILLS; i++) {
        int64_t before = *done;
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0)
            save_for_ever(&j, before + 1, done);
        int64_t wait_ns = one_save_ns * (i * 7919L % 29) / 15; /* nothing to two saves */
        const struct timespec pause = {wait_ns / 1000000000, wait_ns % 1000000000};
        nanosleep(&pause, NULL);
        assert_int_equal(kill(child, SIGKILL), 0);
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status));
        char *found = NULL;
        assert_ok(tg_state_find_last(j.folder, &found));
        int64_t step = strtoll(strrchr(found, '-') + 1, NULL, 10);
        assert_true(step == *done || step == *done + 1);
        check_step(&j, found, step);
        *done = step;
        free(found);
        struct dirent **names;
        int n = scandir(j.folder, &names, any_name, alphasort);
        for (int k = 0; k < n; k++) {
            assert_true(names[k]->d_name[0] != '.'); /* nothing temporary is left */
            free(names[k]);
        }
        free(names);
        char path[600];
        path_of(&j, "last", path);
        assert_ok(check_and_load(&j, path, NULL));
        path_of(&j, "best", path);
        assert_ok(check_and_load(&j, path, NULL));
    }
    assert_true(*done > 1); /* some saves were finished */
    munmap((void *)done, sizeof *done);
    job_close(&j);
}

/* On a rank that sees files late (tests/dist/test_late_files.sh) one that never comes is named. */
static void a_file_that_never_comes(void **state)
{
    (void)state;
    char path[4200], file[4300];
    snprintf(path, sizeof path, "%s/never", tg_test_temp_dir());
    snprintf(file, sizeof file, "%s/manifest.json", path);
    assert_ok(tg_folder_make(path));
    assert_ok(tg_file_write(file, "{}", 2));
    assert_error(tg_state_await(path), TG_ERROR_INPUT, "state.json: the first rank sees it");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(comes_back_bit_for_bit),
        cmocka_unit_test(odd_numbers_come_back),
        cmocka_unit_test(rotation_keeps_newest_best_and_last),
        cmocka_unit_test(what_is_unknown_or_better_stays),
        cmocka_unit_test(a_best_without_a_score_keeps_the_best_of_the_others),
        cmocka_unit_test(damage_is_found_and_passed_over),
        cmocka_unit_test(states_are_not_restored_in_part),
        cmocka_unit_test(a_full_disk_costs_nothing_older),
        cmocka_unit_test(kills_cost_at_most_one_save),
        cmocka_unit_test(a_file_that_never_comes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
