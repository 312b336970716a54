/* The data set on disk. Each split is built aside and put in place when it is whole, val/ before
 * train/, so a stopped run leaves no half of one. */
#include "data/synth.h"

#include "image/write_jpeg.h"
#include "os/file.h"
#include "os/folder.h"
#include "os/temp.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { THREADS_MAX = 256 };

tg_synth_options tg_synth_options_default(void)
{
    return (tg_synth_options){
        .class_count = 12, .per_class = 200, .val_share = 0.2, .size_px = 64, .threads = 1};
}

int tg_synth_val_count(const tg_synth_options *options)
{
    double share = options->per_class * options->val_share;
    int whole = (int)share;
    /* 1e-9: shares like 0.2 are not exact, and 200 * 0.2 shall be 40. */
    return whole + (share - whole > 1e-9);
}

static tg_status check_range(const char *what, long value, long low, long high)
{
    if (value < low || value > high)
        return tg_fail(TG_ERROR_USAGE, "generated pictures: %s %ld is not in %ld..%ld", what, value,
                       low, high);
    return TG_OK;
}

static tg_status check_options(const tg_synth_options *options)
{
    if (!options->output || !options->output[0])
        return tg_fail(TG_ERROR_USAGE, "generated pictures: no output folder is named");
    TG_TRY(check_range("number of classes", options->class_count, 2, TG_SYNTH_CLASSES));
    TG_TRY(check_range("pictures per class", options->per_class, 1, TG_SYNTH_PER_CLASS_MAX));
    TG_TRY(check_range("image size", options->size_px, TG_SYNTH_SIZE_MIN_PX, TG_SYNTH_SIZE_MAX_PX));
    TG_TRY(check_range("number of threads", options->threads, 1, THREADS_MAX));
    if (!(options->val_share >= 0 && options->val_share <= 1))
        return tg_fail(TG_ERROR_USAGE, "generated pictures: validation share is not in 0..1");
    return TG_OK;
}

/* One call of tg_synth_write, shared by its threads; the lock guards what follows it. */
typedef struct job {
    const tg_synth_options *options;
    tg_new_folder folders[2]; /* by tg_synth_split */
    size_t counts[2];         /* pictures of each class */
    size_t total;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    size_t next, done;
    int running; /* threads */
    tg_status status;
    char message[TG_ERROR_BYTES];
} job;

/* Plain writing: the split is forced to disk as a whole when it is put in place. */
static tg_status write_bytes(const char *path, const uint8_t *bytes, size_t size)
{
    FILE *file = fopen(path, "wb");
    if (!file)
        return tg_fail_errno("create", path);
    bool written = fwrite(bytes, 1, size, file) == size;
    if (fclose(file) != 0 || !written)
        return tg_fail_errno("write", path);
    return TG_OK;
}

/* "<split>/<class>/NNNNN.jpg" in the folder that is being built; from malloc, or NULL. */
static char *picture_path(const job *j, tg_synth_split split, int class_index, long number)
{
    char name[128];
    if (number < 0)
        snprintf(name, sizeof name, "%s", tg_synth_class_name(class_index));
    else
        snprintf(name, sizeof name, "%s/%05ld.jpg", tg_synth_class_name(class_index), number);
    return tg_path_join(j->folders[split].temp_path, name);
}

static tg_status no_memory(void)
{
    return tg_fail(TG_ERROR_MACHINE, "generated pictures: out of memory");
}

/* Picture number `index` of the whole job: all of training, then all of validation. */
static tg_status write_picture(const job *j, size_t index, uint8_t *rgb)
{
    size_t training = j->counts[TG_SYNTH_TRAIN] * (size_t)j->options->class_count;
    tg_synth_split split = index < training ? TG_SYNTH_TRAIN : TG_SYNTH_VAL;
    size_t rank = index < training ? index : index - training;
    int class_index = (int)(rank / j->counts[split]), size_px = j->options->size_px, quality;
    uint32_t number = (uint32_t)(rank % j->counts[split]);
    TG_TRY(tg_synth_draw(j->options->seed, class_index, number, split, size_px, rgb, &quality));
    tg_image image = {.rgb = rgb, .width_px = size_px, .height_px = size_px};
    uint8_t *bytes;
    size_t size;
    TG_TRY(tg_image_write_jpeg(&image, quality, TG_JPEG_420, &bytes, &size));
    char *path = picture_path(j, split, class_index, number);
    tg_status status = path ? write_bytes(path, bytes, size) : no_memory();
    free(path);
    free(bytes);
    return status;
}

/* The next picture to draw, or j->total when there is nothing left to do. */
static size_t take(job *j)
{
    pthread_mutex_lock(&j->lock);
    size_t index = j->status < 0 || j->next >= j->total ? j->total : j->next++;
    pthread_mutex_unlock(&j->lock);
    return index;
}

static void report(job *j, tg_status status, bool leaving)
{
    pthread_mutex_lock(&j->lock);
    if (status < 0 && j->status == TG_OK) {
        j->status = status;
        snprintf(j->message, sizeof j->message, "%s", tg_error_message());
    }
    j->done += status == TG_OK && !leaving;
    j->running -= leaving;
    pthread_cond_signal(&j->changed);
    pthread_mutex_unlock(&j->lock);
}

static void *work(void *argument)
{
    job *j = argument;
    size_t side = (size_t)j->options->size_px;
    uint8_t *rgb = malloc(side * side * 3);
    tg_status status = rgb ? TG_OK : no_memory();
    for (size_t index; status == TG_OK && (index = take(j)) < j->total;) {
        status = write_picture(j, index, rgb);
        if (status == TG_OK)
            report(j, status, false);
    }
    free(rgb);
    report(j, status, true);
    return NULL;
}

/* Tells the caller how far the threads are until all have left. */
static void follow(job *j, tg_synth_progress progress, void *context)
{
    size_t told = 0;
    pthread_mutex_lock(&j->lock);
    while (j->running > 0 || told < j->done) {
        if (told == j->done) {
            pthread_cond_wait(&j->changed, &j->lock);
            continue;
        }
        told = j->done;
        bool call = progress && j->status == TG_OK;
        pthread_mutex_unlock(&j->lock);
        tg_status status = call ? progress(context, told, j->total) : TG_OK;
        pthread_mutex_lock(&j->lock);
        if (status < 0 && j->status == TG_OK) {
            j->status = status;
            snprintf(j->message, sizeof j->message, "%s", tg_error_message());
        }
    }
    pthread_mutex_unlock(&j->lock);
}

static tg_status run_threads(job *j, tg_synth_progress progress, void *context)
{
    pthread_t threads[THREADS_MAX];
    int started = 0;
    pthread_mutex_init(&j->lock, NULL);
    pthread_cond_init(&j->changed, NULL);
    for (int want = j->options->threads; started < want; started++) {
        pthread_mutex_lock(&j->lock);
        j->running++;
        pthread_mutex_unlock(&j->lock);
        int error = pthread_create(&threads[started], NULL, work, j);
        if (error) {
            report(j,
                   tg_fail(TG_ERROR_MACHINE, "cannot start drawing thread %d: %s", started + 1,
                           strerror(error)),
                   true);
            break;
        }
    }
    follow(j, progress, context);
    for (int i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    pthread_cond_destroy(&j->changed);
    pthread_mutex_destroy(&j->lock);
    return j->status < 0 ? tg_fail(j->status, "%s", j->message) : TG_OK;
}

/* Begins OUTPUT/<name> aside, with its empty class folders. */
static tg_status begin_split(job *j, tg_synth_split split)
{
    char *path = tg_path_join(j->options->output, split == TG_SYNTH_TRAIN ? "train" : "val");
    tg_status status = path ? TG_OK : no_memory();
    if (status == TG_OK && access(path, F_OK) == 0)
        status = tg_fail(TG_ERROR_USAGE,
                         "%s exists already: name another folder for the generated pictures, or "
                         "remove it",
                         path);
    if (status == TG_OK)
        status = tg_new_folder_open(path, &j->folders[split]);
    free(path);
    for (int k = 0; status == TG_OK && k < j->options->class_count; k++) {
        path = picture_path(j, split, k, -1);
        status = path ? tg_folder_make(path) : no_memory();
        free(path);
    }
    return status;
}

tg_status tg_synth_write(const tg_synth_options *options, tg_synth_progress progress, void *context)
{
    TG_TRY(check_options(options));
    job j = {.options = options,
             .counts = {(size_t)options->per_class, (size_t)tg_synth_val_count(options)}};
    j.total = (j.counts[0] + j.counts[1]) * (size_t)options->class_count;
    TG_TRY(tg_folder_make(options->output));
    TG_TRY(tg_temp_clean(options->output));
    tg_status status;
    TG_TRY_GOTO(begin_split(&j, TG_SYNTH_TRAIN), discard);
    TG_TRY_GOTO(begin_split(&j, TG_SYNTH_VAL), discard);
    TG_TRY_GOTO(run_threads(&j, progress, context), discard);
    if (j.counts[TG_SYNTH_VAL] > 0)
        TG_TRY_GOTO(tg_new_folder_commit(&j.folders[TG_SYNTH_VAL]), discard);
    TG_TRY_GOTO(tg_new_folder_commit(&j.folders[TG_SYNTH_TRAIN]), discard);
discard:
    tg_new_folder_discard(&j.folders[TG_SYNTH_VAL]);
    tg_new_folder_discard(&j.folders[TG_SYNTH_TRAIN]);
    return status;
}
