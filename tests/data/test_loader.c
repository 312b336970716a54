/* Batches do not depend on workers, timing or resume; bad photos, stops and limits are survived. */
#include "support/check.h"

#include "base/log.h"
#include "base/rng.h"
#include "data/loader.h"
#include "image/write_jpeg.h"
#include "os/file.h"
#include "os/folder.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { PHOTOS = 46, CLASSES = 3, SIDE = 32, TEACHER = 48 };

static tg_dataset photos, with_bad;
static atomic_int named;
static int threads_allowed = -1; /* -1: any number */

static void count_log(void *user, tg_log_level level, const char *line)
{
    (void)user;
    if (level == TG_LOG_OWN_WARNING && strstr(line, "photo left out"))
        atomic_fetch_add(&named, 1);
}

/* The thread sanitizer's own, which has to see every thread; absent elsewhere. */
extern int __interceptor_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                                        void *(*run)(void *), void *argument) __attribute__((weak));

/* Stands before the C library's, so that starting a thread can be made to fail. */
int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                   void *argument)
{
    int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    *(void **)&real = dlsym(RTLD_NEXT, "pthread_create");
    if (__interceptor_pthread_create)
        real = __interceptor_pthread_create;
    if (threads_allowed == 0)
        return EAGAIN;
    if (threads_allowed > 0)
        threads_allowed--;
    return real(thread, attributes, run, argument);
}

static void write_photo(const char *path, int seed)
{
    uint8_t rgb[60 * 50 * 3];
    uint8_t *bytes;
    size_t size;
    int width = 40 + seed % 20, height = 30 + seed % 17;
    for (int i = 0; i < width * height * 3; i++)
        rgb[i] = (uint8_t)(seed * 37 + i / 90 + (i % 3) * 40);
    tg_image image = tg_image_view(rgb, width, height);
    assert_ok(tg_image_write_jpeg(&image, 90, TG_JPEG_420, &bytes, &size));
    assert_ok(tg_file_write(path, bytes, size));
    free(bytes);
}

/* PHOTOS good photos; the second root has 3 broken ones more. */
static void make_photos(const char *name, bool bad, tg_dataset *out)
{
    char path[4096], root[2048];
    snprintf(root, sizeof root, "%s/%s", tg_test_temp_dir(), name);
    for (int c = 0; c < CLASSES; c++) {
        snprintf(path, sizeof path, "%s/c%d", root, c);
        assert_ok(tg_folder_make(path));
    }
    for (int i = 0; i < PHOTOS; i++) {
        snprintf(path, sizeof path, "%s/c%d/%02d.jpg", root, i % CLASSES, i);
        write_photo(path, i);
    }
    for (int i = 0; bad && i < 3; i++) {
        snprintf(path, sizeof path, "%s/c1/%02d_bad.jpg", root, i * 7);
        assert_ok(tg_file_write(path, "not a photo", i == 0 ? 0 : 11));
    }
    tg_dataset_options options = {.root = root};
    assert_ok(tg_dataset_open(&options, out));
}

static tg_loader_options usual(int workers)
{
    tg_loader_options options = {.batch_size = 8,
                                 .workers = workers,
                                 .prefetch = 2,
                                 .seed = 5,
                                 .train = true,
                                 .augment = tg_augment_default(),
                                 .preprocess = tg_preprocess_default(SIDE),
                                 .has_teacher = true,
                                 .teacher_preprocess = tg_preprocess_default(TEACHER),
                                 .num_classes = CLASSES,
                                 .max_bad_share = 0.1};
    options.augment.color_jitter = 0.4;
    options.augment.reprob = 0.5;
    options.augment.reprob_pixel = true;
    options.augment.mixup = 0.5;
    options.augment.cutmix = 1;
    options.augment.smoothing = 0.1;
    return options;
}

static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        hash = (hash ^ ((const unsigned char *)bytes)[i]) * 0x100000001B3u;
    return hash;
}

static uint64_t hash_batch(uint64_t hash, const tg_batch *batch)
{
    size_t n = batch->count;
    hash = hash_bytes(hash, batch->image, n * 3 * SIDE * SIDE * sizeof(float));
    if (batch->teacher_image)
        hash = hash_bytes(hash, batch->teacher_image, n * 3 * TEACHER * TEACHER * sizeof(float));
    hash = hash_bytes(hash, batch->target, n * CLASSES * sizeof(float));
    hash = hash_bytes(hash, batch->label, n * sizeof *batch->label);
    hash = hash_bytes(hash, batch->sample_index, n * sizeof *batch->sample_index);
    return hash_bytes(hash, &batch->position, sizeof batch->position);
}

/* Reads an epoch from `first` to its end; returns the checksum of its batches. */
static uint64_t read_epoch(tg_loader *loader, uint64_t epoch, uint64_t first, size_t *out_count)
{
    const tg_batch *batch;
    uint64_t hash = 0xCBF29CE484222325u;
    size_t count = 0;
    tg_status status;
    assert_ok(tg_loader_start_epoch(loader, epoch, first));
    while ((status = tg_loader_next(loader, &batch)) == TG_OK) {
        hash = hash_batch(hash, batch);
        count += batch->count;
        tg_loader_release(loader, batch);
    }
    assert_int_equal(status, TG_END);
    if (out_count)
        *out_count = count;
    return hash;
}

static void delay(void *user, uint64_t epoch, uint64_t sample)
{
    const int *salt = user;
    tg_rng rng = tg_rng_init((uint64_t)*salt, epoch, sample, TG_RNG_TEST);
    struct timespec pause = {0, (long)tg_rng_below(&rng, 2000000)};
    nanosleep(&pause, NULL);
}

/* 0, 1, 4 and 8 workers with random delays: every bit of every batch is the same. */
static void workers_change_nothing(void **state)
{
    (void)state;
    static const int workers[] = {0, 1, 4, 8};
    uint64_t want[2] = {0, 0};
    for (int w = 0; w < 4; w++) {
        tg_loader *loader;
        size_t count;
        int salt = w;
        tg_loader_options options = usual(workers[w]);
        options.before_photo = delay;
        options.before_photo_user = &salt;
        options.prefetch = (size_t)w + 1;
        options.max_bad_share = 0.5;
        assert_ok(tg_loader_open(&with_bad, &options, &loader));
        assert_int_equal(tg_loader_batches_per_epoch(loader), 7);
        for (uint64_t epoch = 0; epoch < 2; epoch++) {
            uint64_t got = read_epoch(loader, epoch, 0, &count);
            assert_int_equal(count, PHOTOS);
            if (w == 0)
                want[epoch] = got;
            assert_true(got == want[epoch]);
        }
        tg_loader_close(loader);
    }
    assert_true(want[0] != want[1]);
}

/* Other numbers of workers before, within and behind every batch, also none and many, with random delays and one batch
 * lent meanwhile: every bit is the same. */
static void workers_change_while_it_runs(void **state)
{
    (void)state;
    static const int plan[] = {3, 0, 8, 1, 0, 0, 5, 2};
    enum { PLAN = sizeof plan / sizeof plan[0], EPOCHS = 4 };
    tg_loader *loader, *changing;
    tg_loader_options options = usual(1);
    int salt = 9, at = 0;
    options.max_bad_share = 0.5;
    assert_ok(tg_loader_open(&with_bad, &options, &loader));
    options.before_photo = delay;
    options.before_photo_user = &salt;
    assert_ok(tg_loader_open(&with_bad, &options, &changing));
    for (uint64_t epoch = 0; epoch < EPOCHS; epoch++) {
        const tg_batch *batch;
        uint64_t hash = 0xCBF29CE484222325u;
        tg_status status;
        assert_ok(tg_loader_start_epoch(changing, epoch, 0));
        while ((status = tg_loader_next(changing, &batch)) == TG_OK) {
            assert_ok(tg_loader_set_workers(changing, plan[at++ % PLAN]));
            hash = hash_batch(hash, batch);
            if (at % 3 == 0)
                assert_ok(tg_loader_set_workers(changing, plan[at++ % PLAN]));
            tg_loader_release(changing, batch);
            assert_int_equal(tg_loader_workers(changing), plan[(at - 1) % PLAN]);
        }
        assert_int_equal(status, TG_END);
        assert_true(hash == read_epoch(loader, epoch, 0, NULL));
    }
    assert_ok(tg_loader_set_workers(changing, 0));
    tg_loader_close(changing); /* with all of them waiting */
    tg_loader_close(loader);
}

/* The number asked for cannot be had, or makes no sense: it goes on with those that there are. */
static void more_workers_do_not_start(void **state)
{
    (void)state;
    tg_loader *loader;
    size_t count;
    tg_loader_options options = usual(1);
    assert_ok(tg_loader_open(&photos, &options, &loader));
    threads_allowed = 1;
    tg_status status = tg_loader_set_workers(loader, 4);
    threads_allowed = -1;
    assert_error(status, TG_ERROR_MACHINE, "worker 3 of 4");
    assert_int_equal(tg_loader_workers(loader), 2);
    assert_error(tg_loader_set_workers(loader, -1), TG_ERROR_USAGE, "-1 loader workers");
    assert_error(tg_loader_set_workers(loader, 1025), TG_ERROR_USAGE, "1025");
    assert_int_equal(tg_loader_workers(loader), 2);
    read_epoch(loader, 0, 0, &count);
    assert_int_equal(count, PHOTOS);
    tg_loader_close(loader);
}

/* Stop after any batch of epoch 2 and start again there: the rest is the same. */
static void resume_continues(void **state)
{
    (void)state;
    tg_loader_options options = usual(2);
    tg_loader *whole, *resumed;
    uint64_t after[8];
    uint64_t stop_at[8];
    const tg_batch *batch;
    int n = 0;
    assert_ok(tg_loader_open(&photos, &options, &whole));
    assert_ok(tg_loader_open(&photos, &options, &resumed));
    assert_ok(tg_loader_start_epoch(whole, 2, 0));
    while (tg_loader_next(whole, &batch) == TG_OK) {
        after[n] = hash_batch(0, batch);
        stop_at[n++] = batch->position;
        tg_loader_release(whole, batch);
    }
    assert_int_equal(n, 6);
    for (int i = 0; i + 1 < n; i++) {
        assert_ok(tg_loader_start_epoch(resumed, 2, stop_at[i]));
        assert_ok(tg_loader_next(resumed, &batch));
        assert_true(hash_batch(0, batch) == after[i + 1]);
        tg_loader_release(resumed, batch);
    }
    assert_ok(tg_loader_start_epoch(resumed, 2, PHOTOS));
    assert_int_equal(tg_loader_next(resumed, &batch), TG_END);
    assert_error(tg_loader_start_epoch(resumed, 2, PHOTOS + 1), TG_ERROR_USAGE, "behind the end");
    tg_loader_close(whole);
    tg_loader_close(resumed);
}

/* Each photo once per epoch, in another order each epoch; evaluation in file order, all of them. */
static void each_photo_once(void **state)
{
    (void)state;
    uint64_t order[3][PHOTOS];
    for (int pass = 0; pass < 3; pass++) {
        tg_loader *loader;
        const tg_batch *batch;
        tg_loader_options options = usual(3);
        bool seen[PHOTOS] = {false};
        size_t n = 0;
        options.train = pass < 2;
        options.drop_last = pass == 2; /* has no effect on evaluation */
        assert_ok(tg_loader_open(&photos, &options, &loader));
        assert_ok(tg_loader_start_epoch(loader, (uint64_t)pass, 0));
        while (tg_loader_next(loader, &batch) == TG_OK) {
            assert_int_equal((uintptr_t)batch->image % 64, 0);
            for (size_t i = 0; i < batch->count; i++) {
                uint64_t index = batch->sample_index[i];
                assert_false(seen[index]);
                seen[index] = true;
                order[pass][n++] = index;
                assert_int_equal(batch->label[i], photos.samples[index].label);
                if (pass == 2)
                    assert_true(batch->target[i * CLASSES + (size_t)batch->label[i]] == 1);
            }
            tg_loader_release(loader, batch);
        }
        assert_int_equal(n, PHOTOS);
        tg_loader_close(loader);
    }
    size_t equal = 0;
    for (size_t i = 0; i < PHOTOS; i++) {
        equal += order[0][i] == order[1][i];
        assert_int_equal(order[2][i], i);
    }
    assert_true(equal < PHOTOS / 4);
}

/* Three of 49 are bad: counted each epoch, named once; fatal when strict or above the share. */
static void bad_photos(void **state)
{
    (void)state;
    tg_loader *loader;
    const tg_batch *batch;
    tg_loader_stats stats;
    size_t count;
    tg_status status = TG_OK;
    tg_loader_options options = usual(3);
    atomic_store(&named, 0);
    assert_ok(tg_loader_open(&with_bad, &options, &loader));
    for (uint64_t epoch = 0; epoch < 3; epoch++) {
        read_epoch(loader, epoch, 0, &count);
        assert_int_equal(count, PHOTOS);
    }
    tg_loader_get_stats(loader, &stats);
    assert_int_equal(stats.skipped, 9);
    assert_int_equal(stats.decoded, 3 * PHOTOS);
    assert_int_equal(atomic_load(&named), 3);
    tg_loader_close(loader);

    options.max_bad_share = 0.05; /* of 49: two are allowed */
    assert_ok(tg_loader_open(&with_bad, &options, &loader));
    assert_ok(tg_loader_start_epoch(loader, 0, 0));
    while ((status = tg_loader_next(loader, &batch)) == TG_OK)
        tg_loader_release(loader, batch);
    assert_error(status, TG_ERROR_INPUT, "3 photos of epoch 0");
    tg_loader_close(loader);

    options.max_bad_share = 0; /* none may be bad */
    assert_ok(tg_loader_open(&with_bad, &options, &loader));
    assert_ok(tg_loader_start_epoch(loader, 0, 0));
    while ((status = tg_loader_next(loader, &batch)) == TG_OK)
        tg_loader_release(loader, batch);
    assert_error(status, TG_ERROR_INPUT, "the allowed share of 0;");
    tg_loader_close(loader);

    options.strict = true;
    assert_ok(tg_loader_open(&with_bad, &options, &loader));
    assert_ok(tg_loader_start_epoch(loader, 0, 0));
    while ((status = tg_loader_next(loader, &batch)) == TG_OK)
        tg_loader_release(loader, batch);
    assert_error(status, TG_ERROR_INPUT, "_bad.jpg");
    assert_error(tg_loader_next(loader, &batch), TG_ERROR_INPUT, "_bad.jpg");
    tg_loader_close(loader);
}

/* Abandoned in the middle, closed at any time: nothing hangs. */
static void stops_at_any_time(void **state)
{
    (void)state;
    for (int i = 0; i < 40; i++) {
        tg_loader *loader;
        const tg_batch *batch;
        tg_loader_options options = usual(i % 2 ? 8 : 2);
        assert_ok(tg_loader_open(&with_bad, &options, &loader));
        if (i % 5 > 0)
            assert_ok(tg_loader_start_epoch(loader, 0, 0));
        for (int k = 0; k < i % 5 - 1; k++) {
            assert_ok(tg_loader_next(loader, &batch));
            if (k % 2)
                tg_loader_release(loader, batch);
        }
        if (i % 3 == 0)
            assert_ok(tg_loader_start_epoch(loader, 1, 8));
        tg_loader_close(loader);
    }
    tg_loader_close(NULL);
}

static void refuses_nonsense(void **state)
{
    (void)state;
    tg_loader *loader;
    const tg_batch *batch;
    tg_loader_options options = usual(1);
    options.batch_size = 0;
    assert_error(tg_loader_open(&photos, &options, &loader), TG_ERROR_USAGE, "batch size");
    options = usual(-1);
    assert_error(tg_loader_open(&photos, &options, &loader), TG_ERROR_USAGE, "workers");
    options = usual(1);
    options.batch_size = 64;
    options.drop_last = true;
    assert_error(tg_loader_open(&photos, &options, &loader), TG_ERROR_USAGE, "46 photos");
    options = usual(1);
    options.num_classes = 2;
    assert_error(tg_loader_open(&photos, &options, &loader), TG_ERROR_INPUT, "label 2");
    options.num_classes = CLASSES;
    options.batch_size = SIZE_MAX / 8;
    assert_error(tg_loader_open(&photos, &options, &loader), TG_ERROR_USAGE, "memory");
    options = usual(1);
    options.prefetch = 1;
    assert_ok(tg_loader_open(&photos, &options, &loader));
    assert_error(tg_loader_next(loader, &batch), TG_ERROR_USAGE, "start_epoch");
    assert_ok(tg_loader_start_epoch(loader, 0, 0));
    assert_ok(tg_loader_next(loader, &batch));
    assert_ok(tg_loader_next(loader, &batch));
    assert_error(tg_loader_next(loader, &batch), TG_ERROR_USAGE, "lent");
    tg_loader_close(loader);
}

static atomic_int kept_subnormals, looked;

static void look_at_subnormals(void *user, uint64_t epoch, uint64_t sample)
{
    (void)user;
    (void)epoch;
    (void)sample;
    volatile float tiny = 1e-39f;
    atomic_fetch_add(&looked, 1);
    atomic_fetch_add(&kept_subnormals, tiny * 1.0f != 0);
}

/* Subnormal numbers are zero on every worker. */
static void workers_flush_subnormals(void **state)
{
    (void)state;
    tg_loader *loader;
    tg_loader_options options = usual(3);
    options.before_photo = look_at_subnormals;
    assert_ok(tg_loader_open(&photos, &options, &loader));
    read_epoch(loader, 0, 0, NULL);
    tg_loader_close(loader);
    assert_int_equal(atomic_load(&looked), PHOTOS);
#if defined(__SSE2__) || defined(__aarch64__)
    assert_int_equal(atomic_load(&kept_subnormals), 0);
#endif
}

static void thread_does_not_start(void **state)
{
    (void)state;
    for (int allowed = 0; allowed < 3; allowed++) {
        tg_loader *loader = NULL;
        tg_loader_options options = usual(3);
        threads_allowed = allowed;
        tg_status status = tg_loader_open(&photos, &options, &loader);
        threads_allowed = -1;
        assert_error(status, TG_ERROR_MACHINE, "of 3");
        assert_null(loader);
    }
}

static long resident_kib(void)
{
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%*s %ld", &pages), 1);
    fclose(file);
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static int open_handles(void)
{
    int count = 0;
    for (int fd = 0; fd < 256; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

/* 50 epochs with few handles and bad files: memory and handles stay what they were. */
static void nothing_leaks(void **state)
{
    (void)state;
    struct rlimit before, few;
    tg_loader *loader;
    tg_loader_options options = usual(4);
    long early = 0;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    few = before;
    few.rlim_cur = 64;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    assert_ok(tg_loader_open(&with_bad, &options, &loader));
    int handles = open_handles();
    for (uint64_t epoch = 0; epoch < 50; epoch++) {
        read_epoch(loader, epoch, 0, NULL);
        if (epoch == 5)
            early = resident_kib();
    }
    long late = resident_kib();
    assert_true(early > 0 && late > 0);
    assert_int_equal(open_handles(), handles);
    tg_loader_close(loader);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    /* the sanitizers keep freed memory for a while; they find leaks by themselves */
    assert_true(late - early < early / 20 + 512);
#endif
}

/* Real photos, where they are: all are read, at the usual size. */
static void real_photos(void **state)
{
    (void)state;
    char root[4096];
    tg_dataset dataset;
    tg_loader *loader;
    const tg_batch *batch;
    size_t count = 0;
    if (!tg_test_shared_dir())
        skip();
    snprintf(root, sizeof root, "%s/data/food", tg_test_shared_dir());
    tg_dataset_options where = {.root = root, .split = "val"};
    assert_ok(tg_dataset_open(&where, &dataset));
    tg_loader_options options = {.batch_size = 32,
                                 .workers = 2,
                                 .preprocess = tg_preprocess_default(96),
                                 .num_classes = dataset.class_count,
                                 .strict = true};
    assert_int_equal(dataset.class_count, 20);
    assert_ok(tg_loader_open(&dataset, &options, &loader));
    assert_ok(tg_loader_start_epoch(loader, 0, 0));
    while (tg_loader_next(loader, &batch) == TG_OK) {
        for (size_t i = 0; i < batch->count * 3 * 96 * 96; i++)
            assert_true(batch->image[i] > -3 && batch->image[i] < 3);
        count += batch->count;
        tg_loader_release(loader, batch);
    }
    assert_int_equal(count, dataset.count);
    assert_true(count > 500);
    tg_loader_close(loader);
    tg_dataset_done(&dataset);
}

/* Odd, broken and hostile files: every one is either delivered or counted, in both transforms, and
 * those that must be refused are not delivered. */
static void odd_photos(void **state)
{
    (void)state;
    static const char *const refused[] = {
        "bomb_65500x65500.jpg", "zero_height.jpg", "bad_ihdr.png", "text.jpg", "empty.jpg",
        "soi_only.jpg"};
    char root[4096];
    tg_dataset dataset;
    tg_loader *loader;
    const tg_batch *batch;
    if (!tg_test_shared_dir())
        skip();
    snprintf(root, sizeof root, "%s/data/food/odd", tg_test_shared_dir());
    tg_dataset_options where = {.root = root, .unlabelled = 1};
    assert_ok(tg_dataset_open(&where, &dataset));
    for (int train = 0; train < 2; train++) {
        tg_loader_options options = usual(2);
        size_t delivered = 0, skipped = 0;
        options.num_classes = 0;
        options.train = train == 1;
        options.max_bad_share = 1;
        assert_ok(tg_loader_open(&dataset, &options, &loader));
        assert_ok(tg_loader_start_epoch(loader, 0, 0));
        while (tg_loader_next(loader, &batch) == TG_OK) {
            delivered += batch->count;
            skipped += batch->skipped;
            assert_null(batch->target);
            for (size_t i = 0; i < batch->count; i++)
                for (size_t r = 0; r < sizeof refused / sizeof *refused; r++)
                    assert_null(strstr(dataset.samples[batch->sample_index[i]].path, refused[r]));
            tg_loader_release(loader, batch);
        }
        assert_int_equal(delivered + skipped, dataset.count);
        assert_true(delivered > 30 && skipped >= 6);
        tg_loader_close(loader);
    }
    tg_dataset_done(&dataset);
}

static int remove_lists(void **state)
{
    (void)state;
    tg_dataset_done(&photos);
    tg_dataset_done(&with_bad);
    return 0;
}

static int make_lists(void **state)
{
    (void)state;
    make_photos("good", false, &photos);
    make_photos("bad", true, &with_bad);
    return 0;
}

int main(void)
{
    tg_log_set(count_log, NULL, TG_LOG_INFO);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(workers_change_nothing),
        cmocka_unit_test(workers_change_while_it_runs),
        cmocka_unit_test(more_workers_do_not_start),
        cmocka_unit_test(resume_continues),
        cmocka_unit_test(each_photo_once),
        cmocka_unit_test(bad_photos),
        cmocka_unit_test(stops_at_any_time),
        cmocka_unit_test(refuses_nonsense),
        cmocka_unit_test(thread_does_not_start),
        cmocka_unit_test(workers_flush_subnormals),
        cmocka_unit_test(nothing_leaks),
        cmocka_unit_test(real_photos),
        cmocka_unit_test(odd_photos),
    };
    return cmocka_run_group_tests(tests, make_lists, remove_lists);
}
