#include "data/loader.h"

#include "base/checked.h"
#include "base/log.h"
#include "base/rng.h"
#include "data/deal.h"
#include "data/photo.h"
#include "data/quote.h"
#include "data/slot.h"
#include "os/clock.h"
#include "os/thread_name.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#if defined(__SSE2__)
#include <immintrin.h>
#endif

#define DEFAULT_PREFETCH 2
#define MAX_WORKERS 1024
#define STALL_SECONDS 30

struct tg_loader {
    const tg_dataset *dataset;
    tg_loader_options options;
    tg_arena arena;
    tg_slot *slots; /* batch number n lives in slot n % slot_count */
    size_t slot_count;
    uint32_t *order; /* NULL: file order */
    bool *named;     /* [dataset count] bad photos that the log has named */
    uint64_t dealt;  /* photos of an epoch that are this rank's */

    pthread_mutex_t mutex; /* guards all below */
    pthread_cond_t work, parked, ready, idle;
    bool has_locks;
    bool stop, paused; /* workers end; workers claim nothing */
    size_t busy;       /* workers that hold a photo */
    bool started;
    uint64_t epoch, first, batches;         /* of the epoch under way */
    uint64_t assigned, claiming, delivered; /* batch numbers; each one is the next */
    uint64_t epoch_skipped;
    tg_status failed;
    char message[TG_ERROR_BYTES];

    pthread_t *threads;
    int thread_count; /* that were started: tg_loader_set_workers parks those beyond `active` */
    int active, next_index;
    tg_photo_maker inline_maker; /* of the consumer when there are no workers */
    atomic_uint_fast64_t photos_decoded, photos_skipped;
    atomic_int_fast64_t wait_ns, decode_ns, transform_ns;
};

/* Subnormal numbers make vector code many times slower. */
static void flush_subnormals(void)
{
#if defined(__SSE2__)
    _mm_setcsr(_mm_getcsr() | 0x8040u); /* flush to zero, denormals are zero */
#elif defined(__aarch64__)
    uint64_t control;
    __asm__ volatile("mrs %0, fpcr" : "=r"(control));
    __asm__ volatile("msr fpcr, %0" ::"r"(control | (UINT64_C(1) << 24)));
#endif
}

static size_t prefetch_slots(const tg_loader_options *options)
{
    return (options->prefetch > 0 ? options->prefetch : DEFAULT_PREFETCH) + 1;
}

size_t tg_loader_share(const tg_loader_options *options)
{
    size_t full = tg_deal_make(options, options->batch_size).count;
    /* the middle of an odd batch is dealt like a pair, so one sample less can give a rank more */
    size_t less =
        options->batch_size > 1 ? tg_deal_make(options, options->batch_size - 1).count : 0;
    return full > less ? full : less;
}

size_t tg_loader_bytes(const tg_loader_options *options)
{
    size_t total;
    size_t slot = tg_slot_bytes(options);
    if (slot == SIZE_MAX || !tg_mul_size(slot, prefetch_slots(options), &total))
        return SIZE_MAX;
    return total;
}

static bool augments(const tg_loader_options *options)
{
    return options->train && !options->evaluation_view;
}

/* Makes photo `at` of the slot. Runs without the lock. */
static tg_status make_photo(const tg_loader *loader, const tg_slot *slot, size_t at,
                            tg_photo_maker *maker)
{
    const tg_loader_options *options = &loader->options;
    const tg_batch *batch = &slot->batch;
    const tg_preprocess *own = &options->preprocess, *teacher = &options->teacher_preprocess;
    const uint64_t position = slot->first + tg_deal_place(&slot->deal, at);
    const uint64_t sample = loader->order ? loader->order[position] : position;
    const size_t floats = 3 * (size_t)own->width_px * (size_t)own->height_px;
    float *teacher_image = NULL;
    if (batch->teacher_image)
        teacher_image =
            batch->teacher_image + at * 3 * (size_t)teacher->width_px * (size_t)teacher->height_px;
    batch->label[at] = loader->dataset->samples[sample].label;
    batch->sample_index[at] = sample;
    if (options->before_photo)
        options->before_photo(options->before_photo_user, loader->epoch, sample);
    tg_photo_recipe recipe = {.augment = augments(options) ? &options->augment : NULL,
                              .preprocess = own,
                              .teacher = options->has_teacher ? teacher : NULL,
                              .seed = options->seed,
                              .epoch = loader->epoch};
    return tg_photo_make(maker, &recipe, loader->dataset->samples[sample].path, sample,
                         batch->image + at * floats, teacher_image);
}

/* Counts what became of the photo. Call under the lock, on the thread that made it. */
static void record_photo(tg_loader *loader, tg_slot *slot, size_t at, tg_status status,
                         const tg_photo_maker *maker)
{
    if (status >= 0) {
        atomic_fetch_add(&loader->photos_decoded, 1);
        atomic_fetch_add(&loader->decode_ns, maker->decode_ns);
        atomic_fetch_add(&loader->transform_ns, maker->transform_ns);
    } else if (status == TG_ERROR_INPUT && !loader->options.strict) {
        bool *named = &loader->named[slot->batch.sample_index[at]];
        slot->bad[at] = true;
        atomic_fetch_add(&loader->photos_skipped, 1);
        if (!*named)
            tg_log_own_warning("data: photo left out: %s", tg_error_message());
        *named = true;
    } else {
        tg_slot_fail(slot, at, status, tg_error_message());
    }
    slot->finished++;
}

/* The slot whose next photo is to be made, or NULL. Call under the lock. */
static tg_slot *claimable(tg_loader *loader)
{
    tg_slot *slot = &loader->slots[loader->claiming % loader->slot_count];
    if (loader->paused || loader->claiming == loader->assigned)
        return NULL;
    /* only the last batch can have nothing for this rank: it is never passed over */
    return slot->claimed < slot->planned ? slot : NULL;
}

/* Takes, makes and records one photo; the last of a batch is followed by its finishing touches. */
static void work_once(tg_loader *loader, tg_slot *slot, tg_photo_maker *maker)
{
    size_t at = slot->claimed++;
    if (slot->claimed == slot->planned)
        loader->claiming++;
    loader->busy++;
    maker->siblings = loader->active;
    pthread_mutex_unlock(&loader->mutex);
    tg_status status = make_photo(loader, slot, at, maker);
    pthread_mutex_lock(&loader->mutex);
    record_photo(loader, slot, at, status, maker);
    if (slot->finished == slot->planned) {
        pthread_mutex_unlock(&loader->mutex);
        const int64_t begin = tg_trace_begin();
        tg_slot_finish(slot, &loader->options, loader->epoch);
        tg_trace_end(&(tg_trace_key){.name = "finish", .threads = maker->siblings}, begin, 0, 0);
        pthread_mutex_lock(&loader->mutex);
        slot->state = TG_SLOT_READY;
        pthread_cond_signal(&loader->ready);
    }
    if (--loader->busy == 0)
        pthread_cond_signal(&loader->idle);
}

/* Until the worker is wanted again, without the memory of its largest photo. Call under the lock. */
static void park(tg_loader *loader, int index, tg_photo_maker *maker)
{
    tg_photo_maker_done(maker);
    *maker = (tg_photo_maker){0};
    while (!loader->stop && index >= loader->active)
        pthread_cond_wait(&loader->parked, &loader->mutex);
}

static void attach_worker(const tg_loader *loader, int index)
{
    if (loader->options.trace && index < tg_trace_threads(loader->options.trace))
        tg_trace_attach(loader->options.trace, index);
}

static void *run_worker(void *argument)
{
    tg_loader *loader = argument;
    tg_photo_maker maker = {0};
    tg_thread_name_set(TG_THREAD_LOADER);
    flush_subnormals();
    pthread_mutex_lock(&loader->mutex);
    const int index = loader->next_index++;
    attach_worker(loader, index);
    while (!loader->stop) {
        tg_slot *slot = claimable(loader);
        if (index >= loader->active)
            park(loader, index, &maker);
        else if (slot)
            work_once(loader, slot, &maker);
        else
            pthread_cond_wait(&loader->work, &loader->mutex);
    }
    pthread_mutex_unlock(&loader->mutex);
    tg_trace_attach(NULL, 0);
    tg_photo_maker_done(&maker);
    return NULL;
}

/* Gives free slots their batches, in order. Call under the lock. */
static void assign_slots(tg_loader *loader)
{
    const size_t B = loader->options.batch_size;
    while (loader->assigned < loader->batches) {
        tg_slot *slot = &loader->slots[loader->assigned % loader->slot_count];
        uint64_t first = loader->first + loader->assigned * B;
        uint64_t left = loader->dataset->count - first;
        if (slot->state != TG_SLOT_FREE)
            break;
        tg_slot_begin(slot, &loader->options, first, left < B ? (size_t)left : B);
        loader->assigned++;
    }
    pthread_cond_broadcast(&loader->work);
}

static uint64_t batches_from(const tg_loader *loader, uint64_t first)
{
    const tg_loader_options *options = &loader->options;
    uint64_t left = loader->dataset->count - first;
    if (options->train && options->drop_last)
        return left / options->batch_size;
    return left / options->batch_size + (left % options->batch_size != 0);
}

uint64_t tg_loader_batches_per_epoch(const tg_loader *loader)
{
    return batches_from(loader, 0);
}

static tg_status check_labels(const tg_dataset *dataset, size_t K)
{
    char quoted[TG_QUOTE_BYTES];
    for (size_t i = 0; i < dataset->count; i++) {
        const tg_sample *sample = &dataset->samples[i];
        if (sample->label >= 0 ? (size_t)sample->label < K || K == 0 : K == 0)
            continue;
        return tg_fail(TG_ERROR_INPUT, "%s: label %d is outside 0 to %zu",
                       tg_quote(sample->path, quoted), sample->label, K - 1);
    }
    return TG_OK;
}

static tg_status check_workers(int workers)
{
    if (workers < 0 || workers > MAX_WORKERS)
        return tg_fail(TG_ERROR_USAGE, "%d loader workers are not 0 to %d", workers, MAX_WORKERS);
    return TG_OK;
}

static tg_status check_options(const tg_dataset *dataset, const tg_loader_options *options)
{
    if (options->batch_size < 1)
        return tg_fail(TG_ERROR_USAGE, "batch size 0");
    TG_TRY(tg_deal_check(options));
    TG_TRY(check_workers(options->workers));
    if (!(options->max_bad_share >= 0 && options->max_bad_share <= 1))
        return tg_fail(TG_ERROR_USAGE, "allowed share of bad photos %g is outside 0 to 1",
                       options->max_bad_share);
    if (options->train)
        TG_TRY(tg_augment_check(&options->augment));
    if (dataset->count == 0 ||
        (options->train && options->drop_last && dataset->count < options->batch_size))
        return tg_fail(
            TG_ERROR_USAGE,
            "no batch in an epoch: %zu photos, batch size %zu%s; take a smaller batch or "
            "more photos",
            dataset->count, options->batch_size,
            options->drop_last ? ", a part-batch at the end is dropped" : "");
    if (dataset->count > UINT32_MAX)
        return tg_fail(TG_ERROR_USAGE, "%zu photos are more than 2^32 - 1", dataset->count);
    if (tg_loader_bytes(options) == SIZE_MAX)
        return tg_fail(TG_ERROR_USAGE, "batches of %zu photos of %d x %d do not fit memory",
                       options->batch_size, options->preprocess.width_px,
                       options->preprocess.height_px);
    return check_labels(dataset, options->num_classes);
}

static tg_status init_locks(tg_loader *loader)
{
    pthread_condattr_t monotonic;
    if (pthread_condattr_init(&monotonic) != 0)
        return tg_fail(TG_ERROR_MACHINE, "cannot make the loader's locks");
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&loader->mutex, NULL); /* these cannot fail on Linux */
    pthread_cond_init(&loader->work, NULL);
    pthread_cond_init(&loader->parked, NULL);
    pthread_cond_init(&loader->idle, NULL);
    pthread_cond_init(&loader->ready, &monotonic);
    pthread_condattr_destroy(&monotonic);
    loader->has_locks = true;
    return TG_OK;
}

static tg_status init_memory(tg_loader *loader)
{
    const size_t photos = loader->dataset->count;
    loader->slot_count = prefetch_slots(&loader->options);
    loader->slots = calloc(loader->slot_count, sizeof *loader->slots);
    loader->named = calloc(photos, sizeof *loader->named);
    if (loader->options.train)
        loader->order = malloc(photos * sizeof *loader->order);
    if (!loader->slots || !loader->named || (loader->options.train && !loader->order))
        return tg_fail(TG_ERROR_MACHINE, "out of memory for a loader of %zu photos", photos);
    TG_TRY(tg_arena_init(&loader->arena, tg_loader_bytes(&loader->options), "loader batches"));
    for (size_t i = 0; i < loader->slot_count; i++)
        TG_TRY(tg_slot_init(&loader->slots[i], &loader->options, &loader->arena));
    return TG_OK;
}

/* Signals stay with the program's own threads: they are blocked while workers are made. */
static int start_threads(tg_loader *loader, int wanted)
{
    sigset_t all, before;
    int error = 0;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (error == 0 && loader->thread_count < wanted) {
        error = pthread_create(&loader->threads[loader->thread_count], NULL, run_worker, loader);
        if (error == 0)
            loader->thread_count++;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

/* As many threads as are wanted, those that run already among them. */
static tg_status start_workers(tg_loader *loader, int wanted)
{
    if (wanted <= loader->thread_count)
        return TG_OK;
    pthread_t *threads = realloc(loader->threads, (size_t)wanted * sizeof *threads);
    if (!threads)
        return tg_fail(TG_ERROR_MACHINE, "out of memory for %d loader workers", wanted);
    loader->threads = threads;
    const int error = start_threads(loader, wanted);
    if (error != 0)
        return tg_fail(TG_ERROR_MACHINE,
                       "cannot start loader worker %d of %d: %s; ask for fewer workers",
                       loader->thread_count + 1, wanted, strerror(error));
    return TG_OK;
}

static void activate(tg_loader *loader, int workers)
{
    pthread_mutex_lock(&loader->mutex);
    loader->active = workers;
    pthread_cond_broadcast(&loader->parked);
    pthread_cond_broadcast(&loader->work);
    pthread_mutex_unlock(&loader->mutex);
}

tg_status tg_loader_set_workers(tg_loader *loader, int workers)
{
    TG_TRY(check_workers(workers));
    tg_status status = start_workers(loader, workers);
    activate(loader, workers < loader->thread_count ? workers : loader->thread_count);
    return status;
}

int tg_loader_workers(const tg_loader *loader)
{
    return loader->active;
}

tg_status tg_loader_open(const tg_dataset *dataset, const tg_loader_options *options,
                         tg_loader **out)
{
    TG_TRY(check_options(dataset, options));
    tg_loader *loader = calloc(1, sizeof *loader);
    if (!loader)
        return tg_fail(TG_ERROR_MACHINE, "out of memory for a loader");
    loader->dataset = dataset;
    loader->options = *options;
    loader->dealt = tg_deal_epoch(options, dataset->count);
    tg_status status;
    TG_TRY_GOTO(init_locks(loader), close_loader);
    TG_TRY_GOTO(init_memory(loader), close_loader);
    TG_TRY_GOTO(tg_loader_set_workers(loader, options->workers), close_loader);
    *out = loader;
    return TG_OK;
close_loader:
    tg_loader_close(loader);
    return status;
}

tg_status tg_loader_start_epoch(tg_loader *loader, uint64_t epoch, uint64_t first)
{
    if (first > loader->dataset->count)
        return tg_fail(TG_ERROR_USAGE, "position %llu is behind the end of an epoch of %zu photos",
                       (unsigned long long)first, loader->dataset->count);
    pthread_mutex_lock(&loader->mutex);
    loader->paused = true;
    while (loader->busy > 0)
        pthread_cond_wait(&loader->idle, &loader->mutex);
    if (loader->order) {
        tg_rng rng = tg_rng_init(loader->options.seed, epoch, 0, TG_RNG_SHUFFLE);
        tg_rng_permutation(&rng, loader->order, (uint32_t)loader->dataset->count);
    }
    for (size_t i = 0; i < loader->slot_count; i++)
        loader->slots[i].state = TG_SLOT_FREE;
    loader->epoch = epoch;
    loader->first = first;
    loader->batches = batches_from(loader, first);
    loader->assigned = loader->claiming = loader->delivered = 0;
    loader->epoch_skipped = 0;
    loader->failed = TG_OK;
    loader->started = true;
    loader->paused = false;
    assign_slots(loader);
    pthread_mutex_unlock(&loader->mutex);
    return TG_OK;
}

/* Names what is waited for. Call under the lock. */
static void warn_of_stall(const tg_loader *loader, const tg_slot *slot, int64_t seconds)
{
    tg_log_own_warning(
        "data: no batch for %lld s: %zu of %zu photos of the batch at position %llu of "
        "epoch %llu are finished, %zu workers are reading",
        (long long)seconds, slot->finished, slot->planned, (unsigned long long)slot->first,
        (unsigned long long)loader->epoch, loader->busy);
}

/* Waits for the slot under the lock. Without workers the consumer makes what nobody has claimed; what workers had
 * begun before they were parked, they finish. */
static void wait_ready(tg_loader *loader, tg_slot *slot)
{
    int64_t start = tg_clock_ns();
    while (slot->state != TG_SLOT_READY) {
        struct timespec until;
        if (loader->active == 0 && slot->claimed < slot->planned) {
            work_once(loader, slot, &loader->inline_maker);
            continue;
        }
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_sec += STALL_SECONDS;
        if (pthread_cond_timedwait(&loader->ready, &loader->mutex, &until) == ETIMEDOUT)
            warn_of_stall(loader, slot, (tg_clock_ns() - start) / 1000000000);
    }
}

static tg_status fail_loader(tg_loader *loader, tg_status status, const char *message)
{
    loader->failed = status;
    loader->paused = true;
    if (message != loader->message)
        snprintf(loader->message, sizeof loader->message, "%s", message);
    return tg_fail(status, "%s", loader->message);
}

/* The batch as the consumer gets it, or the error that stands in its place. */
static tg_status deliver(tg_loader *loader, tg_slot *slot, const tg_batch **out)
{
    const double allowed = loader->options.max_bad_share * (double)loader->dealt;
    if (slot->error < 0)
        return fail_loader(loader, slot->error, slot->message);
    loader->epoch_skipped += slot->batch.skipped;
    if ((double)loader->epoch_skipped > allowed) {
        snprintf(loader->message, sizeof loader->message,
                 "%llu photos of epoch %llu could not be read so far, of %llu in %s: more than the "
                 "allowed share of %g; the log names them",
                 (unsigned long long)loader->epoch_skipped, (unsigned long long)loader->epoch,
                 (unsigned long long)loader->dealt,
                 loader->options.ranks > 1 ? "this rank's share" : "all",
                 loader->options.max_bad_share);
        return fail_loader(loader, TG_ERROR_INPUT, loader->message);
    }
    slot->state = TG_SLOT_LENT;
    loader->delivered++;
    *out = &slot->batch;
    return TG_OK;
}

static tg_status next_locked(tg_loader *loader, const tg_batch **out)
{
    if (!loader->started)
        return tg_fail(TG_ERROR_USAGE, "loader: next before start_epoch");
    if (loader->failed < 0)
        return fail_loader(loader, loader->failed, loader->message);
    if (loader->delivered == loader->batches)
        return TG_END;
    if (loader->delivered == loader->assigned)
        return tg_fail(TG_ERROR_USAGE, "loader: all %zu batches are lent; release one first",
                       loader->slot_count);
    tg_slot *slot = &loader->slots[loader->delivered % loader->slot_count];
    int64_t start = tg_clock_ns();
    wait_ready(loader, slot);
    atomic_fetch_add(&loader->wait_ns, tg_clock_ns() - start);
    return deliver(loader, slot, out);
}

tg_status tg_loader_next(tg_loader *loader, const tg_batch **out)
{
    pthread_mutex_lock(&loader->mutex);
    tg_status status = next_locked(loader, out);
    pthread_mutex_unlock(&loader->mutex);
    return status;
}

void tg_loader_release(tg_loader *loader, const tg_batch *batch)
{
    if (!batch)
        return;
    pthread_mutex_lock(&loader->mutex);
    for (size_t i = 0; i < loader->slot_count; i++)
        if (&loader->slots[i].batch == batch && loader->slots[i].state == TG_SLOT_LENT)
            loader->slots[i].state = TG_SLOT_FREE;
    assign_slots(loader);
    pthread_mutex_unlock(&loader->mutex);
}

void tg_loader_get_stats(const tg_loader *loader, tg_loader_stats *out)
{
    tg_loader *counters = (tg_loader *)loader; /* atomic_load wants it writable in C11 */
    out->decoded = atomic_load(&counters->photos_decoded);
    out->skipped = atomic_load(&counters->photos_skipped);
    out->wait_ns = atomic_load(&counters->wait_ns);
    out->decode_ns = atomic_load(&counters->decode_ns);
    out->transform_ns = atomic_load(&counters->transform_ns);
}

static void stop_workers(tg_loader *loader)
{
    pthread_mutex_lock(&loader->mutex);
    loader->stop = true;
    pthread_cond_broadcast(&loader->work);
    pthread_cond_broadcast(&loader->parked);
    pthread_mutex_unlock(&loader->mutex);
    for (int i = 0; i < loader->thread_count; i++)
        pthread_join(loader->threads[i], NULL);
    pthread_cond_destroy(&loader->work);
    pthread_cond_destroy(&loader->parked);
    pthread_cond_destroy(&loader->ready);
    pthread_cond_destroy(&loader->idle);
    pthread_mutex_destroy(&loader->mutex);
}

void tg_loader_close(tg_loader *loader)
{
    if (!loader)
        return;
    if (loader->has_locks)
        stop_workers(loader);
    tg_photo_maker_done(&loader->inline_maker);
    tg_arena_done(&loader->arena);
    free(loader->threads);
    free(loader->slots);
    free(loader->named);
    free(loader->order);
    free(loader);
}
