/* A checkpoint is the same to the byte whatever the number of ranks, in shares or not, written together or by the
 * first; any number of them reads it back; one rank's failure is every rank's, leaves nothing, and ranks go on. */
#include "support/check.h"
#include "support/ranks.h"

#include "base/rng.h"
#include "ckpt/preset_preprocess.h"
#include "os/file.h"
#include "os/folder.h"
#include "train/checkpoint.h"

#include <dirent.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum { BUFFERS = 4, UPDATES = 12 };

/* What one rank has. */
typedef struct worker {
    tg_model_info info;
    tg_param_table model, table;
    float *whole[BUFFERS], *packed[BUFFERS], *scratch;
    tg_stream *stream;
    tg_ranks ranks;
    tg_train_tensors tensors;
} worker;

typedef enum task { SAVE, LOAD, SAVE_TWICE, SAVE_WITHOUT_LAST } task;

typedef struct trial {
    const char *folder[TG_TEST_RANKS]; /* of each rank */
    bool shard, together;
    task task;
    tg_status second[TG_TEST_RANKS]; /* of SAVE_TWICE */
} trial;

static float *floats(size_t n)
{
    float *p = aligned_alloc(64, (n * sizeof *p + 63) / 64 * 64);
    if (!p)
        abort();
    memset(p, 0, n * sizeof *p);
    return p;
}

static float value(int buffer, size_t i)
{
    tg_rng rng = tg_rng_init(9, (uint64_t)buffer, i, TG_RNG_TEST);
    return (float)tg_rng_uniform(&rng) - 0.5F;
}

static tg_status describe(worker *w)
{
    tg_vit_config *c = &w->info.config;
    TG_TRY(tg_vit_config_preset("vit_tiny_patch16_224", c));
    c->img_h = c->img_w = 32;
    c->embed_dim = 20; /* not a multiple of the placing: there is padding */
    c->num_heads = 2;
    c->depth = 2;
    c->mlp_hidden = 24;
    c->num_classes = 3;
    w->info.preprocess = tg_preset_preprocess(c);
    TG_TRY(tg_vit_params(c, &w->model));
    TG_TRY(tg_vit_params(c, &w->table));
    return tg_param_add(&w->table, "kd_projection.weight", 2, (size_t[]){7, 5}, 3, true);
}

/* Other ranks' pieces of the parameters, as after a step with shares: not what their owners have. */
static void spoil_others(worker *w)
{
    memset(w->whole[0], 0xFF, w->table.elements * sizeof *w->whole[0]);
    for (size_t i = 0; i < w->ranks.buckets.count; i++) {
        const tg_bucket *b = &w->ranks.buckets.items[i];
        memcpy(w->whole[0] + b->own_offset, w->packed[0] + b->shard_offset,
               b->own_count * sizeof *w->whole[0]);
    }
    w->ranks.rounded = true;
}

static tg_status open_worker(worker *w, tg_comm *comm, const trial *t)
{
    const tg_ranks_options options = {2000, 9000, TG_F32, t->shard};
    TG_TRY(describe(w));
    TG_TRY(tg_stream_open_cpu(1, TG_CPU_AVX2, &w->stream));
    TG_TRY(tg_ranks_open(&w->ranks, comm, &options, w->table.elements));
    for (int b = 0; b < BUFFERS; b++) {
        w->whole[b] = floats(w->table.elements);
        for (size_t i = 0; i < w->table.count && t->task != LOAD; i++)
            for (size_t k = 0; k < w->table.items[i].count; k++)
                w->whole[b][w->table.items[i].offset + k] = value(b, i * 1000000 + k);
        w->packed[b] = floats(w->ranks.buckets.own_elements + 16);
        tg_ranks_pack(&w->ranks, w->stream, w->whole[b], w->packed[b]);
    }
    w->scratch = floats(w->table.elements);
    const bool packed = t->shard && comm->size > 1;
    float **kept = packed ? w->packed : w->whole;
    w->tensors = (tg_train_tensors){.info = &w->info,
                                    .model_table = &w->model,
                                    .table = &w->table,
                                    .params = w->whole[0],
                                    .m = kept[1],
                                    .v = kept[2],
                                    .average = kept[3],
                                    .ranks = comm->size > 1 ? &w->ranks : NULL,
                                    .together = t->together && comm->size > 1,
                                    .stream = w->stream,
                                    .scratch = w->scratch};
    if (packed && t->task != LOAD)
        spoil_others(w);
    return TG_OK;
}

static void close_worker(worker *w)
{
    for (int b = 0; b < BUFFERS; b++) {
        free(w->whole[b]);
        free(w->packed[b]);
    }
    free(w->scratch);
    tg_ranks_close(&w->ranks);
    tg_stream_close(w->stream);
    tg_param_table_done(&w->table);
    tg_param_table_done(&w->model);
}

static tg_status save(worker *w, const char *folder, int64_t updates)
{
    const tg_checkpoint_options options = {folder, 5};
    const tg_train_state state = {.updates = updates, .applied = 3, .best_score = NAN, .seed = 42};
    return tg_checkpoint_save(&options, &state, &w->tensors, 0.5, true);
}

/* What was loaded is what was saved, in this rank's pieces. */
static tg_status compare(const worker *w)
{
    float *got[BUFFERS] = {w->tensors.params, w->tensors.m, w->tensors.v, w->tensors.average};
    float *want = floats(w->table.elements), *packed = floats(w->table.elements + 16);
    size_t wrong = 0;
    for (int b = 0; b < BUFFERS; b++) {
        size_t n = got[b] == w->packed[b] ? w->ranks.buckets.own_elements : w->table.elements;
        for (size_t i = 0; i < w->table.count; i++)
            for (size_t k = 0; k < w->table.items[i].count; k++)
                want[w->table.items[i].offset + k] = value(b, i * 1000000 + k);
        tg_ranks_pack(&w->ranks, w->stream, want, packed);
        wrong += memcmp(got[b], got[b] == w->packed[b] ? packed : want, n * sizeof(float)) != 0;
    }
    free(want);
    free(packed);
    return wrong ? tg_fail(TG_ERROR_FAILED, "%zu buffers differ", wrong) : TG_OK;
}

static tg_status load(worker *w, const char *folder)
{
    const tg_checkpoint_options options = {folder, 5};
    char *path = NULL;
    tg_train_state state;
    double score;
    TG_TRY(tg_checkpoint_find(&options, "auto", &path));
    for (int b = 0; b < BUFFERS; b++) {
        memset(w->whole[b], 0xFF, w->table.elements * sizeof(float));
        memset(w->packed[b], 0xFF, w->ranks.buckets.own_elements * sizeof(float));
    }
    tg_status status = tg_checkpoint_load(path, &w->tensors, &state, &score);
    free(path);
    TG_TRY(status);
    if (state.updates != UPDATES || state.seed != 42 || score != 0.5)
        return tg_fail(TG_ERROR_FAILED, "another record");
    return compare(w);
}

static tg_status work(tg_comm *comm, tg_test_world *world, void *user)
{
    (void)world;
    trial *t = user;
    const char *folder = t->folder[comm->rank];
    worker w = {0};
    tg_status status = open_worker(&w, comm, t);
    if (status == TG_OK && t->task == LOAD) {
        status = load(&w, folder);
    } else if (status == TG_OK && t->task == SAVE_WITHOUT_LAST && comm->rank == comm->size - 1) {
        tg_comm_leave(comm, "the last one goes");
    } else if (status == TG_OK) {
        status = save(&w, folder, UPDATES);
        if (t->task == SAVE_TWICE)
            t->second[comm->rank] = save(&w, t->folder[0], UPDATES + 1);
    }
    close_worker(&w);
    return status;
}

static tg_status last_status[TG_TEST_RANKS];
static char last_text[TG_TEST_RANKS][512];

static void run(int size, trial *t)
{
    tg_test_ranks_run(size, 60, work, t, last_status, last_text);
}

static void run_well(int size, trial *t)
{
    run(size, t);
    for (int r = 0; r < size; r++) {
        if (last_status[r] != TG_OK)
            print_error("rank %d of %d: %s\n", r, size, last_text[r]);
        assert_int_equal(last_status[r], TG_OK);
    }
}

static trial all_in(const char *folder)
{
    trial t = {.together = true};
    for (int r = 0; r < TG_TEST_RANKS; r++)
        t.folder[r] = folder;
    return t;
}

static void folder_of(const char *name, char out[600])
{
    snprintf(out, 600, "%s/%s", tg_test_temp_dir(), name);
}

static void same_checkpoint(const char *a, const char *b)
{
    static const char *const FILES[] = {"state.safetensors", "state.json", "manifest.json",
                                        "model/model.safetensors", "model/config.json"};
    char path[700], *x, *y;
    size_t m, n;
    for (size_t i = 0; i < sizeof FILES / sizeof *FILES; i++) {
        snprintf(path, sizeof path, "%s/best/%s", a, FILES[i]);
        assert_ok(tg_file_read(path, 1 << 24, &x, &m));
        snprintf(path, sizeof path, "%s/last/%s", b, FILES[i]);
        assert_ok(tg_file_read(path, 1 << 24, &y, &n));
        assert_int_equal(m, n);
        assert_memory_equal(x, y, n);
        free(x);
        free(y);
    }
}

/* Names in the folder, hidden ones too. */
static size_t entries(const char *folder)
{
    size_t count = 0;
    DIR *dir = opendir(folder);
    if (!dir)
        return 0;
    for (const struct dirent *e; (e = readdir(dir)) != NULL;)
        count += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
    closedir(dir);
    return count;
}

static void test_same_files(void **state)
{
    (void)state;
    char one[600], many[600];
    folder_of("one", one);
    trial first = all_in(one);
    run_well(1, &first);
    for (int size = 2; size <= 5; size++)
        for (int way = 0; way < 4; way++) {
            char name[32];
            snprintf(name, sizeof name, "many-%d-%d", size, way);
            folder_of(name, many);
            trial t = all_in(many);
            t.shard = way & 1;
            t.together = way & 2;
            run_well(size, &t);
            same_checkpoint(one, many);
            assert_int_equal(entries(many), 3); /* step-12, last, best */
        }
}

static void test_any_ranks_read_it(void **state)
{
    (void)state;
    char folder[600];
    folder_of("read", folder);
    trial writing = all_in(folder);
    writing.shard = true;
    run_well(3, &writing);
    for (int size = 1; size <= 4; size++)
        for (int shard = 0; shard < 2; shard++) {
            trial t = all_in(folder);
            t.shard = shard;
            t.task = LOAD;
            run_well(size, &t);
        }
}

/* All say the same of the first save, nothing of it is left, and the second comes off. */
static void fails_together(int size, trial *t, const char *where, const char *part)
{
    t->task = SAVE_TWICE;
    run(size, t);
    for (int r = 0; r < size; r++) {
        assert_int_equal(last_status[r], TG_ERROR_MACHINE);
        assert_non_null(strstr(last_text[r], part));
        assert_string_equal(last_text[r], last_text[0]);
        assert_int_equal(t->second[r], TG_OK);
    }
    assert_int_equal(entries(where), 3);
}

static void test_one_rank_that_cannot(void **state)
{
    (void)state;
    char good[600], nowhere[600];
    folder_of("good", good);
    folder_of("nowhere", nowhere);
    for (int rank = 1; rank < 3; rank++) {
        trial t = all_in(good);
        t.shard = rank == 1;
        t.folder[rank] = nowhere;
        char part[32];
        snprintf(part, sizeof part, "rank %d on ", rank);
        fails_together(3, &t, good, part);
        assert_int_equal(entries(nowhere), 0);
        assert_ok(tg_tree_remove(good));
    }
}

/* A limit on the size of files fails the save as it begins or, with the model's file below it, on the way. */
static void test_a_full_disk(void **state)
{
    (void)state;
    char folder[600];
    struct rlimit before;
    folder_of("full", folder);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, SIG_IGN);
    for (int way = 0; way < 4; way++)
        for (rlim_t limit = 3000; limit < 150000; limit += 60000) {
            const struct rlimit small = {limit, before.rlim_max};
            trial t = all_in(folder);
            t.shard = way & 1;
            t.together = way & 2;
            assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
            run(3, &t);
            assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
            for (int r = 0; r < 3; r++) {
                assert_int_equal(last_status[r], TG_ERROR_MACHINE);
                assert_non_null(strstr(last_text[r], "rank 0 on "));
            }
            assert_int_equal(entries(folder), 0);
        }
    trial t = all_in(folder);
    t.shard = true;
    run_well(3, &t);
    assert_int_equal(entries(folder), 3);
}

static void test_a_rank_that_goes(void **state)
{
    (void)state;
    char folder[600];
    folder_of("gone", folder);
    for (int way = 0; way < 4; way++) {
        trial t = all_in(folder);
        t.task = SAVE_WITHOUT_LAST;
        t.shard = way & 1;
        t.together = way & 2;
        run(3, &t);
        for (int r = 0; r < 2; r++) {
            assert_int_equal(last_status[r], TG_ERROR_PEER);
            assert_non_null(strstr(last_text[r], "the last one goes"));
        }
        assert_int_equal(entries(folder), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_files),           cmocka_unit_test(test_any_ranks_read_it),
        cmocka_unit_test(test_one_rank_that_cannot), cmocka_unit_test(test_a_full_disk),
        cmocka_unit_test(test_a_rank_that_goes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
