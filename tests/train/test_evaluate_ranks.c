/* 103 photos count 103 times, whatever the number of ranks and the batch: no photo is repeated to fill a share, none is
 * left out, and the counts are the same. */
#include "support/check.h"
#include "support/ranks.h"
#include "support/tiny.h"

#include "base/log.h"
#include "infer/network.h"
#include "os/file.h"
#include "os/folder.h"
#include "train/evaluate.h"

#include <math.h>
#include <stdio.h>

enum { K = TG_TINY_CLASSES, PHOTOS = 103, MOST_BATCH = 64 };

static char model[4096];
static tg_dataset good, broken; /* of `broken` three photos cannot be read */

static void ignore_log(void *user, tg_log_level level, const char *line)
{
    (void)user, (void)level, (void)line;
}

static void write_photos(const char *name, bool bad, tg_dataset *out)
{
    char root[4096], path[4300];
    snprintf(root, sizeof root, "%s/%s", tg_test_temp_dir(), name);
    for (unsigned i = 0; i < PHOTOS; i++) {
        snprintf(path, sizeof path, "%s/%s", root, tg_tiny_class_names[i % K]);
        assert_ok(tg_folder_make(path));
        snprintf(path, sizeof path, "%s/%s/%u.jpg", root, tg_tiny_class_names[i % K], i);
        if (bad && i % 40 == 7)
            assert_ok(tg_file_write(path, "no photo", 8));
        else
            assert_ok(tg_tiny_photo_write(path, 20, 24, i));
    }
    const tg_dataset_options options = {.root = root};
    assert_ok(tg_dataset_open(&options, out));
    assert_int_equal(out->count, PHOTOS);
}

static int write_fixtures(void **state)
{
    (void)state;
    snprintf(model, sizeof model, "%s/model", tg_test_temp_dir());
    assert_ok(tg_tiny_model_write(model, &(tg_tiny_model){.num_classes = K}));
    write_photos("good", false, &good);
    write_photos("broken", true, &broken);
    tg_log_set(ignore_log, NULL, TG_LOG_ERROR);
    return 0;
}

static int remove_fixtures(void **state)
{
    (void)state;
    tg_dataset_done(&good);
    tg_dataset_done(&broken);
    return 0;
}

typedef struct trial {
    const tg_dataset *photos;
    size_t batch; /* of all ranks */
    tg_evaluation of[TG_TEST_RANKS];
    uint64_t confusion[TG_TEST_RANKS][K * K];
} trial;

static tg_status evaluate(tg_comm *comm, tg_test_world *world, void *user)
{
    (void)world;
    trial *t = user;
    tg_stream *stream = NULL;
    tg_network network = {0};
    tg_arena arena = {0};
    tg_status status;
    const tg_network_request request = {.model = model,
                                        .shape = {.reg_tokens = -1, .num_classes = -1}};
    TG_TRY_GOTO(tg_stream_open_cpu(1, TG_CPU_AVX2, &stream), close_all);
    TG_TRY_GOTO(tg_network_open(&request, tg_kern_select(stream), stream, &network), close_all);
    TG_TRY_GOTO(
        tg_arena_init(&arena,
                      tg_vit_step_bytes(&network.info.config, MOST_BATCH, TG_F32, TG_VIT_INFER),
                      "test"),
        close_all);
    const tg_evaluate_options options = {.batch_size = t->batch,
                                         .comm = comm,
                                         .preprocess = &network.info.preprocess,
                                         .confusion = t->confusion[comm->rank]};
    status = tg_evaluate(network.vit, &arena, t->photos, &options, &t->of[comm->rank]);
close_all:
    tg_arena_done(&arena);
    tg_network_close(&network);
    tg_stream_close(stream);
    return status;
}

static void run(int size, trial *t)
{
    tg_test_ranks_all_ok(size, 30, evaluate, t);
}

static void check_all(const tg_dataset *photos, size_t readable)
{
    static const size_t batches[] = {1, 7, 64};
    trial one = {.photos = photos, .batch = 8};
    run(1, &one);
    assert_int_equal(one.of[0].images, readable);
    assert_int_equal(one.of[0].skipped, PHOTOS - readable);
    assert_true(one.of[0].top1 > 0 && one.of[0].top1 < 100);
    for (int size = 1; size <= 5; size++)
        for (size_t b = 0; b < sizeof batches / sizeof *batches; b++) {
            trial t = {.photos = photos, .batch = batches[b]};
            uint64_t counted = 0;
            run(size, &t);
            for (int r = 0; r < size; r++) {
                assert_int_equal(t.of[r].images, readable);
                assert_int_equal(t.of[r].skipped, PHOTOS - readable);
                assert_true(t.of[r].top1 == one.of[0].top1 && t.of[r].top5 == one.of[0].top5);
                assert_true(fabs(t.of[r].loss / one.of[0].loss - 1) < 1e-6);
                assert_true(t.of[r].loss == t.of[0].loss);
                for (int i = 0; i < K * K; i++) /* each rank's share of the matrix */
                    counted += t.confusion[r][i];
            }
            assert_int_equal(counted, readable);
        }
}

static void test_every_photo_counts_once(void **state)
{
    (void)state;
    check_all(&good, PHOTOS);
}

static void test_bad_photos_count_nowhere(void **state)
{
    (void)state;
    check_all(&broken, PHOTOS - 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_photo_counts_once),
        cmocka_unit_test(test_bad_photos_count_nowhere),
    };
    return cmocka_run_group_tests(tests, write_fixtures, remove_fixtures);
}
