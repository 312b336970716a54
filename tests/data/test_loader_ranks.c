/* Ranks that share batches see together what one sees alone, and bad photos move no partners. */
#include "support/check.h"

#include "base/log.h"
#include "data/deal.h"
#include "data/loader.h"
#include "image/write_jpeg.h"
#include "os/file.h"
#include "os/folder.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PHOTOS = 29, CLASSES = 3, SIDE = 16, TEACHER = 24, BAD = 4 };

static const size_t bad_photos[BAD] = {0, 1, 7, 20};
static tg_dataset good, broken; /* the same list; in `broken` those above cannot be read */

typedef struct sample_record {
    uint64_t position; /* of its batch; 0: not delivered */
    int32_t label;
    float image[3 * SIDE * SIDE], teacher[3 * TEACHER * TEACHER], target[CLASSES];
} sample_record;

typedef struct epoch_record {
    sample_record samples[PHOTOS]; /* by index in the data set */
    size_t place[PHOTOS];          /* by index: when a single rank delivered it */
    size_t sequence[PHOTOS];       /* by place: index */
    size_t batches, delivered, skipped;
} epoch_record;

static void ignore_log(void *user, tg_log_level level, const char *line)
{
    (void)user;
    (void)level;
    (void)line;
}

static bool is_bad(size_t index)
{
    for (size_t i = 0; i < BAD; i++)
        if (bad_photos[i] == index)
            return true;
    return false;
}

static void write_photo(const char *path, size_t seed)
{
    uint8_t rgb[40 * 33 * 3];
    uint8_t *bytes;
    size_t size;
    int width = 24 + (int)seed % 16, height = 20 + (int)seed % 13;
    for (size_t i = 0; i < (size_t)(width * height * 3); i++)
        rgb[i] = (uint8_t)(seed * 37 + i / 60 + (i % 3) * 40);
    tg_image image = tg_image_view(rgb, width, height);
    assert_ok(tg_image_write_jpeg(&image, 90, TG_JPEG_420, &bytes, &size));
    assert_ok(tg_file_write(path, bytes, size));
    free(bytes);
}

static void make_photos(const char *name, bool with_bad, tg_dataset *out)
{
    char path[4096], root[2048];
    snprintf(root, sizeof root, "%s/%s", tg_test_temp_dir(), name);
    for (size_t c = 0; c < CLASSES; c++) {
        snprintf(path, sizeof path, "%s/c%zu", root, c);
        assert_ok(tg_folder_make(path));
    }
    for (size_t i = 0; i < PHOTOS; i++) {
        snprintf(path, sizeof path, "%s/c%zu/%02zu.jpg", root, i * CLASSES / PHOTOS, i);
        if (with_bad && is_bad(i))
            assert_ok(tg_file_write(path, "not a photo", 11));
        else
            write_photo(path, i);
    }
    tg_dataset_options options = {.root = root};
    assert_ok(tg_dataset_open(&options, out));
    assert_int_equal(out->count, PHOTOS);
}

static tg_loader_options usual(size_t batch_size, double mixup, double cutmix)
{
    tg_loader_options options = {.batch_size = batch_size,
                                 .seed = 11,
                                 .train = true,
                                 .augment = tg_augment_default(),
                                 .preprocess = tg_preprocess_default(SIDE),
                                 .has_teacher = true,
                                 .teacher_preprocess = tg_preprocess_default(TEACHER),
                                 .num_classes = CLASSES,
                                 .max_bad_share = 1};
    options.augment.reprob = 0.3;
    options.augment.reprob_pixel = true;
    options.augment.smoothing = 0.1;
    options.augment.mixup = mixup;
    options.augment.cutmix = cutmix;
    return options;
}

static void note_sample(epoch_record *record, const tg_batch *batch, size_t i)
{
    const size_t index = batch->sample_index[i], n = 3 * SIDE * SIDE, t = 3 * TEACHER * TEACHER;
    sample_record *sample = &record->samples[index];
    assert_true(index < PHOTOS);
    assert_true(sample->position == 0); /* no one has delivered it yet */
    sample->position = batch->position;
    sample->label = batch->label[i];
    memcpy(sample->image, batch->image + i * n, n * sizeof(float));
    memcpy(sample->teacher, batch->teacher_image + i * t, t * sizeof(float));
    memcpy(sample->target, batch->target + i * CLASSES, CLASSES * sizeof(float));
    record->place[index] = record->delivered;
    record->sequence[record->delivered++] = index;
}

/* Adds what one rank gets of the epoch from `first`. `alone`, when given, says in which order. */
static void read_rank(const tg_dataset *dataset, const tg_loader_options *options, uint64_t epoch,
                      uint64_t first, const epoch_record *alone, epoch_record *record)
{
    const uint64_t B = options->batch_size;
    tg_loader *loader;
    const tg_batch *batch;
    tg_loader_stats stats;
    tg_status status;
    uint64_t position = first, touched = 0;
    size_t batches = 0;
    assert_ok(tg_loader_open(dataset, options, &loader));
    assert_ok(tg_loader_start_epoch(loader, epoch, first));
    while ((status = tg_loader_next(loader, &batch)) == TG_OK) {
        position = position + B < PHOTOS ? position + B : PHOTOS;
        assert_int_equal(batch->position, position);
        assert_true(batch->count + batch->skipped <= tg_loader_share(options));
        for (size_t i = 0; i < batch->count; i++) {
            note_sample(record, batch, i);
            if (alone && i > 0)
                assert_true(alone->place[batch->sample_index[i - 1]] <
                            alone->place[batch->sample_index[i]]);
        }
        record->skipped += batch->skipped;
        touched += batch->count + batch->skipped;
        batches++;
        tg_loader_release(loader, batch);
    }
    assert_int_equal(status, TG_END);
    assert_true(record->batches == 0 || record->batches == batches); /* as on the other ranks */
    record->batches = batches;
    tg_loader_get_stats(loader, &stats);
    if (first == 0)
        assert_int_equal(tg_loader_batches_per_epoch(loader), batches);
    if (options->workers == 0) /* what the others read is not even looked at */
        assert_int_equal(stats.decoded + stats.skipped, touched);
    tg_loader_close(loader);
}

static void read_ranks(const tg_dataset *dataset, tg_loader_options options, int ranks,
                       uint64_t epoch, uint64_t first, const epoch_record *alone, epoch_record *out)
{
    memset(out, 0, sizeof *out);
    options.ranks = ranks;
    for (int rank = 0; rank < (ranks > 1 ? ranks : 1); rank++) {
        options.rank = rank;
        options.workers = rank % 3;
        read_rank(dataset, &options, epoch, first, alone, out);
    }
}

/* `got` is what `alone` holds of the batches behind position `first`, and nothing more. */
static void check_same(const epoch_record *alone, const epoch_record *got, uint64_t first)
{
    static const sample_record nothing;
    for (size_t i = 0; i < PHOTOS; i++) {
        const sample_record *want = &alone->samples[i];
        if (want->position <= first)
            want = &nothing;
        assert_memory_equal(&got->samples[i], want, sizeof *want);
    }
    if (first == 0) {
        assert_int_equal(got->batches, alone->batches);
        assert_int_equal(got->delivered, alone->delivered);
        assert_int_equal(got->skipped, alone->skipped);
    }
}

/* Ranks of every number, from the start and from a batch's end on: the same samples, bit for bit. */
static void check_ranks(const tg_dataset *dataset, const tg_loader_options *options, uint64_t epoch)
{
    static epoch_record alone, got;
    const bool mixes =
        options->train && (options->augment.mixup > 0 || options->augment.cutmix > 0);
    const size_t B = options->batch_size, units = mixes ? (B + 1) / 2 : B;
    read_ranks(dataset, *options, 0, epoch, 0, NULL, &alone);
    assert_int_equal(alone.delivered + alone.skipped,
                     options->train && options->drop_last ? PHOTOS / B * B : PHOTOS);
    for (int ranks = 1; ranks <= 5 && (size_t)ranks <= units; ranks++) {
        uint64_t first = B * (uint64_t)(ranks % 3);
        read_ranks(dataset, *options, ranks, epoch, 0, &alone, &got);
        check_same(&alone, &got, 0);
        if (first == 0 || first > PHOTOS)
            continue;
        read_ranks(dataset, *options, ranks, epoch, first, &alone, &got);
        check_same(&alone, &got, first);
    }
}

static void ranks_share_what_one_sees(void **state)
{
    (void)state;
    static const size_t batch_sizes[] = {1, 2, 5, 8, 9, 29, 40};
    static const double mixes[][2] = {{0, 0}, {0.4, 0}, {0, 1}, {0.8, 1}};
    for (size_t b = 0; b < sizeof batch_sizes / sizeof *batch_sizes; b++)
        for (size_t m = 0; m < 4; m++) {
            tg_loader_options options = usual(batch_sizes[b], mixes[m][0], mixes[m][1]);
            check_ranks(&good, &options, b + m);
            check_ranks(&broken, &options, b + m);
            options.drop_last = batch_sizes[b] <= PHOTOS;
            check_ranks(&broken, &options, 9);
        }
}

static void evaluation_is_shared(void **state)
{
    (void)state;
    static const size_t batch_sizes[] = {5, 8, 29, 40};
    for (size_t b = 0; b < sizeof batch_sizes / sizeof *batch_sizes; b++) {
        tg_loader_options options = usual(batch_sizes[b], 0.8, 1); /* which it leaves aside */
        options.train = false;
        check_ranks(&good, &options, 0);
        check_ranks(&broken, &options, 0);
    }
}

static void order_changes_with_the_epoch(void **state)
{
    (void)state;
    static epoch_record epochs[2];
    tg_loader_options options = usual(8, 0.8, 0);
    size_t same = 0;
    for (uint64_t e = 0; e < 2; e++)
        read_ranks(&good, options, 3, e, 0, NULL, &epochs[e]);
    for (size_t i = 0; i < PHOTOS; i++)
        same += epochs[0].sequence[i] == epochs[1].sequence[i];
    assert_true(same < PHOTOS / 3);
}

typedef struct pair_counts {
    size_t lone, both, mixed; /* partner bad, both bad, mixed as ever */
} pair_counts;

/* One epoch: who is not bad, and has no bad partner, is as if all were good; who has a bad partner
 * is as if nothing were mixed. */
static void check_partners(size_t B, double mixup, double cutmix, uint64_t epoch,
                           pair_counts *counts)
{
    static epoch_record whole, plain, holed;
    tg_loader_options options = usual(B, mixup, cutmix);
    read_ranks(&good, options, 1, epoch, 0, NULL, &whole);
    read_ranks(&broken, options, 1, epoch, 0, NULL, &holed);
    options.augment.mixup = options.augment.cutmix = 0;
    read_ranks(&good, options, 1, epoch, 0, NULL, &plain);
    assert_int_equal(holed.skipped, BAD);
    for (size_t place = 0; place < PHOTOS; place++) {
        size_t begin = place / B * B, n = PHOTOS - begin < B ? PHOTOS - begin : B;
        size_t own = whole.sequence[place];
        size_t other = whole.sequence[begin + n - 1 - (place - begin)];
        const sample_record *got = &holed.samples[own];
        if (is_bad(own)) {
            assert_true(got->position == 0);
            counts->both += other != own && is_bad(other);
            continue;
        }
        const epoch_record *want = is_bad(other) ? &plain : &whole;
        assert_memory_equal(got, &want->samples[own], sizeof *got);
        counts->lone += is_bad(other);
        counts->mixed += memcmp(got, &plain.samples[own], sizeof *got) != 0;
    }
}

static void bad_photos_move_no_partners(void **state)
{
    (void)state;
    static const size_t batch_sizes[] = {5, 8, 29, 40};
    pair_counts counts = {0, 0, 0};
    for (size_t b = 0; b < 4; b++)
        for (uint64_t epoch = 0; epoch < 8; epoch++)
            check_partners(batch_sizes[b], epoch % 2 ? 0.8 : 0, epoch % 2 ? 0 : 1, epoch, &counts);
    assert_true(counts.lone > 32 && counts.both > 0 && counts.mixed > 300);
}

/* 29 photos by 14 leave a last batch of one: rank 0 has it, the others a batch of none. Where a
 * batch is more than all photos a rank may have nothing at all. */
static void share_of_nothing(void **state)
{
    (void)state;
    for (int workers = 0; workers < 3; workers++)
        for (int rank = 0; rank < 7; rank++) {
            tg_loader *loader;
            const tg_batch *batches[3], *none;
            tg_loader_options options = usual(14, 0.8, 1);
            options.workers = workers;
            options.rank = rank;
            options.ranks = 7;
            assert_ok(tg_loader_open(&good, &options, &loader));
            assert_ok(tg_loader_start_epoch(loader, 0, 0));
            for (int b = 0; b < 3; b++) {
                assert_ok(tg_loader_next(loader, &batches[b]));
                assert_int_equal(batches[b]->count, b < 2 ? 2 : rank == 0);
                assert_int_equal(batches[b]->skipped, 0);
            }
            assert_int_equal(batches[2]->position, PHOTOS);
            assert_int_equal(tg_loader_next(loader, &none), TG_END);
            for (int b = 0; b < 3; b++)
                tg_loader_release(loader, batches[b]);
            assert_int_equal(tg_loader_next(loader, &none), TG_END);
            assert_ok(tg_loader_start_epoch(loader, 1, PHOTOS - 1));
            assert_ok(tg_loader_next(loader, &none));
            assert_int_equal(none->count, rank == 0);
            tg_loader_close(loader);
        }
    tg_loader_options options = usual(64, 0.8, 1);
    options.ranks = 32;
    options.rank = 31;
    static epoch_record record;
    memset(&record, 0, sizeof record);
    read_rank(&good, &options, 0, 0, NULL, &record);
    assert_int_equal(record.batches, 1);
    assert_int_equal(record.delivered, 0);
}

/* Two of rank 0's 15 photos are bad, none of rank 1's 14: more than a tenth of 15, less than of
 * 29. */
static void bad_share_is_of_the_rank(void **state)
{
    (void)state;
    for (int ranks = 1; ranks <= 2; ranks++)
        for (int rank = 0; rank < ranks; rank++) {
            tg_loader *loader;
            const tg_batch *batch;
            tg_status status;
            tg_dataset first_half = broken; /* without the bad photos 7 and 20 */
            tg_sample samples[PHOTOS];
            memcpy(samples, broken.samples, sizeof samples);
            samples[7] = samples[20] = samples[2];
            first_half.samples = samples;
            tg_loader_options options = usual(10, 0, 0);
            options.train = false;
            options.max_bad_share = 0.1;
            options.rank = rank;
            options.ranks = ranks;
            assert_ok(tg_loader_open(&first_half, &options, &loader));
            assert_ok(tg_loader_start_epoch(loader, 0, 0));
            while ((status = tg_loader_next(loader, &batch)) == TG_OK)
                tg_loader_release(loader, batch);
            if (ranks == 2 && rank == 0)
                assert_error(status, TG_ERROR_INPUT,
                             "2 photos of epoch 0 could not be read so "
                             "far, of 15 in this rank's share");
            else
                assert_int_equal(status, TG_END);
            tg_loader_close(loader);
        }
}

static void check_deal(const tg_loader_options *options, size_t n, bool pairs, size_t *out_most)
{
    int taken[40] = {0};
    size_t total = 0;
    for (int rank = 0; rank < options->ranks; rank++) {
        tg_loader_options own = *options;
        own.rank = rank;
        tg_deal deal = tg_deal_make(&own, n);
        for (size_t i = 0; i < deal.count; i++) {
            size_t place = tg_deal_place(&deal, i);
            assert_true(place < n);
            taken[place]++;
            assert_true(i == 0 || place > tg_deal_place(&deal, i - 1));
            if (pairs)
                assert_int_equal(tg_deal_place(&deal, deal.count - 1 - i), n - 1 - place);
        }
        total += deal.count;
        out_most[rank] = deal.count > out_most[rank] ? deal.count : out_most[rank];
    }
    assert_int_equal(total, n);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(taken[i], 1);
}

/* Every place once, in order, partners together, and no batch has more for a rank than it says. */
static void deals_all(void **state)
{
    (void)state;
    for (int pairs = 0; pairs < 2; pairs++)
        for (int ranks = 1; ranks <= 9; ranks++) {
            size_t most[9] = {0};
            for (size_t n = 1; n <= 40; n++) {
                tg_loader_options options = usual(n, pairs, 0);
                options.ranks = ranks;
                check_deal(&options, n, pairs, most);
                for (int rank = 0; rank < ranks; rank++) {
                    options.rank = rank;
                    assert_int_equal(tg_loader_share(&options), most[rank]);
                    assert_int_equal(tg_deal_epoch(&options, 2 * n),
                                     2 * tg_deal_make(&options, n).count);
                }
            }
        }
}

static void memory_follows_the_share(void **state)
{
    (void)state;
    tg_loader_options whole = usual(8, 0, 0), shared = usual(32, 0, 0);
    shared.ranks = 4;
    for (shared.rank = 0; shared.rank < 4; shared.rank++)
        assert_int_equal(tg_loader_bytes(&shared), tg_loader_bytes(&whole));
}

static void refuses_nonsense(void **state)
{
    (void)state;
    static const int outside[][2] = {{-1, 2}, {2, 2}, {1, 0}, {1, 1}};
    tg_loader *loader = NULL;
    tg_loader_options options = usual(8, 0.8, 0);
    for (size_t i = 0; i < sizeof outside / sizeof *outside; i++) {
        options.rank = outside[i][0];
        options.ranks = outside[i][1];
        assert_error(tg_loader_open(&good, &options, &loader), TG_ERROR_USAGE, "is not 0 to");
    }
    options.rank = 0;
    options.ranks = -3;
    assert_error(tg_loader_open(&good, &options, &loader), TG_ERROR_USAGE, "-3 ranks");
    options.ranks = 5; /* 4 pairs */
    assert_error(tg_loader_open(&good, &options, &loader), TG_ERROR_USAGE,
                 "batch size 8 is too small for 5 ranks");
    assert_error(tg_loader_open(&good, &options, &loader), TG_ERROR_USAGE, "at least 9,");
    options.train = false; /* 8 samples */
    options.ranks = 9;
    assert_error(tg_loader_open(&good, &options, &loader), TG_ERROR_USAGE, "at least 9,");
    assert_null(loader);
    for (size_t n = 8; n <= 9; n++) { /* just enough */
        options = usual(n, n == 9, 0);
        options.ranks = n == 9 ? 5 : 8;
        options.rank = options.ranks - 1;
        assert_ok(tg_loader_open(&good, &options, &loader));
        tg_loader_close(loader);
    }
}

static int make_lists(void **state)
{
    (void)state;
    make_photos("good", false, &good);
    make_photos("broken", true, &broken);
    return 0;
}

static int remove_lists(void **state)
{
    (void)state;
    tg_dataset_done(&good);
    tg_dataset_done(&broken);
    return 0;
}

int main(void)
{
    tg_log_set(ignore_log, NULL, TG_LOG_ERROR);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(deals_all),
        cmocka_unit_test(ranks_share_what_one_sees),
        cmocka_unit_test(evaluation_is_shared),
        cmocka_unit_test(order_changes_with_the_epoch),
        cmocka_unit_test(bad_photos_move_no_partners),
        cmocka_unit_test(share_of_nothing),
        cmocka_unit_test(bad_share_is_of_the_rank),
        cmocka_unit_test(memory_follows_the_share),
        cmocka_unit_test(refuses_nonsense),
    };
    return cmocka_run_group_tests(tests, make_lists, remove_lists);
}
