#include "data/survey.h"

#include "data/photo.h"
#include "image/resize.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define MAX_WORKERS 1024

typedef struct survey {
    const char *const *paths;
    size_t count;
    tg_photo_facts *facts;
    atomic_size_t next;
    atomic_bool failed;
} survey;

typedef struct surveyor {
    survey *shared;
    pthread_t thread;
    tg_photo_maker maker;
    tg_image small;
    tg_status status;
    char message[TG_ERROR_BYTES];
} surveyor;

/* 128 bits over 8 bytes at a time; equal hashes are confirmed by comparing the files. */
static void hash_content(const unsigned char *bytes, size_t n, uint64_t out[2])
{
    uint64_t a = 0x9E3779B97F4A7C15u ^ n, b = 0xC2B2AE3D27D4EB4Fu + n;
    for (size_t i = 0; i < n; i += 8) {
        uint64_t word = 0;
        memcpy(&word, bytes + i, n - i < 8 ? n - i : 8);
        a = (a ^ word) * 0xFF51AFD7ED558CCDu;
        a ^= a >> 32;
        b = (b + word) * 0xC4CEB9FE1A85EC53u;
        b ^= b >> 29;
    }
    out[0] = a;
    out[1] = b;
}

static void sum_pixels(const tg_image *image, tg_photo_facts *facts)
{
    const size_t n = (size_t)image->width_px * (size_t)image->height_px;
    for (size_t i = 0; i < n; i++)
        for (int c = 0; c < 3; c++) {
            uint64_t value = image->rgb[i * 3 + (size_t)c];
            facts->sum[c] += value;
            facts->square_sum[c] += value * value;
        }
}

static int gray_of(const uint8_t *rgb)
{
    return 19595 * rgb[0] + 38470 * rgb[1] + 7471 * rgb[2];
}

static tg_status describe_look(surveyor *self, tg_photo_facts *facts)
{
    tg_resize_spec spec = {
        .width_px = TG_SURVEY_SIDE + 1, .height_px = TG_SURVEY_SIDE, .filter = TG_BILINEAR};
    TG_TRY(tg_image_resize(&self->maker.source, &spec, &self->maker.scratch, &self->small));
    for (int y = 0; y < TG_SURVEY_SIDE; y++)
        for (int x = 0; x < TG_SURVEY_SIDE; x++) {
            const uint8_t *at = self->small.rgb + (y * (TG_SURVEY_SIDE + 1) + x) * 3;
            facts->look = facts->look << 1 | (gray_of(at) < gray_of(at + 3));
        }
    spec.width_px = TG_SURVEY_SIDE;
    TG_TRY(tg_image_resize(&self->maker.source, &spec, &self->maker.scratch, &self->small));
    memcpy(facts->thumbnail, self->small.rgb, sizeof facts->thumbnail);
    return TG_OK;
}

static tg_status look_at(surveyor *self, const char *path, tg_photo_facts *facts)
{
    tg_decode_options options = tg_decode_options_default();
    tg_decode_report report = {0};
    TG_TRY(tg_photo_file_read(&self->maker.file, path, options.max_bytes));
    facts->bytes = self->maker.file.count;
    hash_content(self->maker.file.bytes, self->maker.file.count, facts->content);
    TG_TRY(tg_image_decode(self->maker.file.bytes, self->maker.file.count, &options,
                           &self->maker.scratch, &self->maker.source, &report));
    facts->width_px = self->maker.source.width_px;
    facts->height_px = self->maker.source.height_px;
    facts->orientation = report.orientation;
    facts->format = report.format;
    facts->has_alpha = report.has_alpha;
    if (report.warning_count > 0) {
        facts->message = strdup(report.warning);
        if (!facts->message)
            return tg_fail(TG_ERROR_MACHINE, "out of memory for a warning");
    }
    sum_pixels(&self->maker.source, facts);
    return describe_look(self, facts);
}

static tg_status survey_one(surveyor *self, size_t index)
{
    tg_photo_facts *facts = &self->shared->facts[index];
    tg_status status = look_at(self, self->shared->paths[index], facts);
    if (status != TG_ERROR_INPUT)
        return status;
    free(facts->message);
    facts->bad = true;
    facts->message = strdup(tg_error_message());
    return facts->message ? TG_OK : tg_fail(TG_ERROR_MACHINE, "out of memory for a message");
}

static void *run_surveyor(void *argument)
{
    surveyor *self = argument;
    survey *shared = self->shared;
    while (!atomic_load(&shared->failed)) {
        size_t index = atomic_fetch_add(&shared->next, 1);
        if (index >= shared->count)
            break;
        self->status = survey_one(self, index);
        if (self->status < 0) {
            strcpy(self->message, tg_error_message());
            atomic_store(&shared->failed, true);
        }
    }
    tg_photo_maker_done(&self->maker);
    tg_image_done(&self->small);
    return NULL;
}

/* The calling thread works too, so one worker needs no thread and a thread fewer does no harm. */
static tg_status run_all(survey *shared, int workers)
{
    surveyor *crew = calloc((size_t)workers, sizeof *crew);
    tg_status status = TG_OK;
    int started = 1;
    if (!crew)
        return tg_fail(TG_ERROR_MACHINE, "out of memory for %d threads", workers);
    for (int i = 0; i < workers; i++)
        crew[i].shared = shared;
    while (started < workers &&
           pthread_create(&crew[started].thread, NULL, run_surveyor, &crew[started]) == 0)
        started++;
    run_surveyor(&crew[0]);
    for (int i = 1; i < started; i++)
        pthread_join(crew[i].thread, NULL);
    for (int i = 0; i < started && status >= 0; i++)
        if (crew[i].status < 0)
            status = tg_fail(crew[i].status, "%s", crew[i].message);
    free(crew);
    return status;
}

tg_status tg_survey_photos(const char *const *paths, size_t count, int workers,
                           tg_photo_facts **out)
{
    if (workers < 1 || workers > MAX_WORKERS)
        return tg_fail(TG_ERROR_USAGE, "%d threads are not 1 to %d", workers, MAX_WORKERS);
    survey shared = {.paths = paths, .count = count};
    shared.facts = calloc(count ? count : 1, sizeof *shared.facts);
    if (!shared.facts)
        return tg_fail(TG_ERROR_MACHINE, "out of memory to look at %zu photos", count);
    tg_status status = run_all(&shared, workers);
    if (status < 0) {
        tg_survey_done(shared.facts, count);
        return status;
    }
    *out = shared.facts;
    return TG_OK;
}

void tg_survey_done(tg_photo_facts *facts, size_t count)
{
    if (!facts)
        return;
    for (size_t i = 0; i < count; i++)
        free(facts[i].message);
    free(facts);
}
