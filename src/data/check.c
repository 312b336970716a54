#include "data/check.h"

#include "data/grow.h"
#include "data/photo.h"
#include "data/survey.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define THUMBNAIL_LEVELS 6 /* mean difference of near duplicates */
#define MAX_NEAR_BITS 3    /* four bands of 16 bits: one is equal when 3 bits differ */
#define BAND_REACH 500     /* neighbours looked at in one band, so that plain pictures stay cheap */
#define NONE SIZE_MAX

/* All photos of all splits as one list. */
typedef struct checker {
    const tg_check_options *options;
    size_t count;
    const char **paths;
    int32_t *labels;
    size_t *splits;
    size_t *twins; /* the earlier photo that this one repeats; NONE */
    size_t *order; /* work space for sorting */
    tg_photo_facts *facts;
    tg_check_result result;
    size_t capacity;
} checker;

tg_check_options tg_check_options_default(void)
{
    return (tg_check_options){
        .workers = 1, .tiny_px = 32, .huge_pixels = 50000000, .near_bits = 3, .imbalance = 10};
}

const char *tg_check_kind_name(tg_check_kind kind)
{
    static const char *const names[TG_CHECK_KIND_COUNT] = {
        "broken", "odd", "tiny", "huge", "duplicate", "near_duplicate", "small_class"};
    return kind < TG_CHECK_KIND_COUNT ? names[kind] : "unknown";
}

/* Adds a finding; `detail` (or NULL) is copied. */
static tg_status append(checker *self, tg_check_finding finding, const char *detail)
{
    tg_check_result *result = &self->result;
    TG_TRY(tg_grow((void **)&result->findings, &self->capacity, result->count + 1,
                   sizeof *result->findings));
    if (detail && !(finding.detail = strdup(detail)))
        return tg_fail(TG_ERROR_MACHINE, "out of memory for a finding");
    result->findings[result->count++] = finding;
    result->counts[finding.kind]++;
    return TG_OK;
}

/* A finding about photo `index`, with its twin if it has one. */
static tg_status add_photo(checker *self, tg_check_kind kind, size_t index, const char *detail)
{
    size_t twin = self->twins[index];
    tg_check_finding finding = {.kind = kind,
                                .split = self->options->splits[self->splits[index]].name,
                                .path = self->paths[index]};
    if (kind == TG_CHECK_DUPLICATE || kind == TG_CHECK_NEAR_DUPLICATE) {
        finding.other = self->paths[twin];
        finding.leak = self->splits[index] != self->splits[twin];
        finding.conflict = self->labels[index] != self->labels[twin];
        self->result.leaks += finding.leak;
        self->result.conflicts += finding.conflict;
    }
    return append(self, finding, detail);
}

static tg_status find_bad(checker *self, tg_check_kind kind)
{
    char detail[64];
    for (size_t i = 0; i < self->count; i++) {
        const tg_photo_facts *facts = &self->facts[i];
        uint64_t pixels = (uint64_t)facts->width_px * (uint64_t)facts->height_px;
        bool tiny =
            facts->width_px < self->options->tiny_px || facts->height_px < self->options->tiny_px;
        bool found = kind == TG_CHECK_BROKEN ? facts->bad
                     : facts->bad            ? false
                     : kind == TG_CHECK_ODD  ? facts->message != NULL
                     : kind == TG_CHECK_TINY ? tiny
                                             : pixels > self->options->huge_pixels;
        if (!found)
            continue;
        snprintf(detail, sizeof detail, "%d x %d px", facts->width_px, facts->height_px);
        bool says_why = kind == TG_CHECK_BROKEN || kind == TG_CHECK_ODD;
        TG_TRY(add_photo(self, kind, i, says_why ? facts->message : detail));
    }
    return TG_OK;
}

static int compare_content(const void *a, const void *b, void *user)
{
    const checker *self = user;
    size_t i = *(const size_t *)a, k = *(const size_t *)b;
    int by_hash =
        memcmp(self->facts[i].content, self->facts[k].content, sizeof self->facts[i].content);
    if (by_hash != 0)
        return by_hash;
    return i < k ? -1 : i > k;
}

/* Whether two files hold the same bytes now. */
static tg_status same_files(checker *self, size_t a, size_t b, bool *out)
{
    tg_photo_file first = {0}, second = {0};
    *out = false;
    tg_status status = tg_photo_file_read(&first, self->paths[a], UINT64_MAX);
    if (status >= 0)
        status = tg_photo_file_read(&second, self->paths[b], UINT64_MAX);
    if (status >= 0)
        *out = first.count == second.count && memcmp(first.bytes, second.bytes, first.count) == 0;
    tg_photo_file_done(&first);
    tg_photo_file_done(&second);
    return status == TG_ERROR_MACHINE ? status : TG_OK; /* a file that went away has no twin */
}

static tg_status find_duplicates(checker *self)
{
    for (size_t i = 0; i < self->count; i++)
        self->order[i] = i;
    qsort_r(self->order, self->count, sizeof *self->order, compare_content, self);
    for (size_t at = 1, first = 0; at < self->count; at++) {
        size_t i = self->order[first], k = self->order[at];
        bool same = false;
        if (self->facts[i].bytes > 0 && memcmp(self->facts[i].content, self->facts[k].content,
                                               sizeof self->facts[i].content) == 0)
            TG_TRY(same_files(self, i, k, &same));
        if (same)
            self->twins[k] = i;
        else
            first = at;
    }
    for (size_t i = 0; i < self->count; i++)
        if (self->twins[i] != NONE)
            TG_TRY(add_photo(self, TG_CHECK_DUPLICATE, i, NULL));
    return TG_OK;
}

typedef struct band_user {
    const checker *self;
    int shift;
} band_user;

static unsigned band_of(const checker *self, size_t i, int shift)
{
    return (unsigned)(self->facts[i].look >> shift) & 0xFFFFu;
}

static int compare_band(const void *a, const void *b, void *user)
{
    const band_user *band = user;
    size_t i = *(const size_t *)a, k = *(const size_t *)b;
    unsigned x = band_of(band->self, i, band->shift), y = band_of(band->self, k, band->shift);
    if (x != y)
        return x < y ? -1 : 1;
    return i < k ? -1 : i > k;
}

static bool looks_alike(const checker *self, size_t i, size_t k)
{
    const tg_photo_facts *a = &self->facts[i], *b = &self->facts[k];
    int difference = 0;
    const int n = (int)sizeof a->thumbnail;
    if (__builtin_popcountll(a->look ^ b->look) > self->options->near_bits)
        return false;
    for (int p = 0; p < n; p++)
        difference += abs(a->thumbnail[p] - b->thumbnail[p]);
    return difference <= THUMBNAIL_LEVELS * n;
}

/* Pairs whose hashes agree in one band of 16 bits. The earliest twin is kept. */
static void find_in_band(checker *self, int shift, size_t *near)
{
    band_user band = {self, shift};
    size_t n = 0;
    for (size_t i = 0; i < self->count; i++)
        if (!self->facts[i].bad && self->twins[i] == NONE)
            self->order[n++] = i;
    qsort_r(self->order, n, sizeof *self->order, compare_band, &band);
    for (size_t at = 0; at < n; at++) {
        size_t i = self->order[at];
        for (size_t next = at + 1; next < n && next <= at + BAND_REACH; next++) {
            size_t k = self->order[next];
            if (band_of(self, i, shift) != band_of(self, k, shift))
                break;
            if (i < near[k] && looks_alike(self, i, k))
                near[k] = i;
        }
    }
}

static tg_status find_near(checker *self)
{
    if (self->options->near_bits < 0 || self->count == 0)
        return TG_OK;
    size_t *near = malloc(self->count * sizeof *near);
    if (!near)
        return tg_fail(TG_ERROR_MACHINE, "out of memory to compare photos");
    for (size_t i = 0; i < self->count; i++)
        near[i] = NONE;
    for (int shift = 0; shift < 64; shift += 16)
        find_in_band(self, shift, near);
    tg_status status = TG_OK;
    for (size_t i = 0; i < self->count && status >= 0; i++) {
        if (near[i] == NONE)
            continue;
        self->twins[i] = near[i];
        status = add_photo(self, TG_CHECK_NEAR_DUPLICATE, i, NULL);
    }
    free(near);
    return status;
}

static tg_status find_small_classes(checker *self, const tg_check_split *split)
{
    const tg_dataset *dataset = split->dataset;
    size_t largest = 0;
    char detail[96];
    size_t *counts = calloc(dataset->class_count ? dataset->class_count : 1, sizeof *counts);
    tg_status status = TG_OK;
    if (!counts)
        return tg_fail(TG_ERROR_MACHINE, "out of memory to count classes");
    for (size_t i = 0; i < dataset->count; i++)
        if (dataset->samples[i].label >= 0 && ++counts[dataset->samples[i].label] > largest)
            largest = counts[dataset->samples[i].label];
    for (size_t c = 0; c < dataset->class_count && status >= 0; c++) {
        if ((double)counts[c] * self->options->imbalance >= (double)largest)
            continue;
        snprintf(detail, sizeof detail, "%zu photos, the largest class has %zu", counts[c],
                 largest);
        status = append(self,
                        (tg_check_finding){.kind = TG_CHECK_SMALL_CLASS,
                                           .split = split->name,
                                           .path = dataset->class_names[c]},
                        detail);
    }
    free(counts);
    return status;
}

static tg_status join_splits(checker *self)
{
    const tg_check_options *options = self->options;
    for (size_t s = 0; s < options->split_count; s++)
        self->count += options->splits[s].dataset->count;
    size_t n = self->count ? self->count : 1, at = 0;
    self->paths = calloc(n, sizeof *self->paths);
    self->labels = calloc(n, sizeof *self->labels);
    self->splits = calloc(n, sizeof *self->splits);
    self->twins = calloc(n, sizeof *self->twins);
    self->order = calloc(n, sizeof *self->order);
    if (!self->paths || !self->labels || !self->splits || !self->twins || !self->order)
        return tg_fail(TG_ERROR_MACHINE, "out of memory to check %zu photos", self->count);
    for (size_t s = 0; s < options->split_count; s++)
        for (size_t i = 0; i < options->splits[s].dataset->count; i++, at++) {
            self->paths[at] = options->splits[s].dataset->samples[i].path;
            self->labels[at] = options->splits[s].dataset->samples[i].label;
            self->splits[at] = s;
            self->twins[at] = NONE;
        }
    self->result.photos = self->count;
    return TG_OK;
}

static tg_status find_all(checker *self)
{
    TG_TRY(join_splits(self));
    TG_TRY(tg_survey_photos(self->paths, self->count, self->options->workers, &self->facts));
    for (tg_check_kind kind = TG_CHECK_BROKEN; kind <= TG_CHECK_HUGE; kind++)
        TG_TRY(find_bad(self, kind));
    TG_TRY(find_duplicates(self));
    TG_TRY(find_near(self));
    for (size_t s = 0; s < self->options->split_count; s++)
        TG_TRY(find_small_classes(self, &self->options->splits[s]));
    return TG_OK;
}

tg_status tg_data_check(const tg_check_options *options, tg_check_result *out)
{
    checker self = {.options = options};
    if (options->split_count == 0)
        return tg_fail(TG_ERROR_USAGE, "nothing to check");
    if (options->near_bits > MAX_NEAR_BITS || !(options->imbalance >= 1))
        return tg_fail(TG_ERROR_USAGE, "check: near_bits %d is above %d, or imbalance %g below 1",
                       options->near_bits, MAX_NEAR_BITS, options->imbalance);
    tg_status status = find_all(&self);
    tg_survey_done(self.facts, self.count);
    free(self.paths);
    free(self.labels);
    free(self.splits);
    free(self.twins);
    free(self.order);
    if (status < 0)
        tg_check_result_done(&self.result);
    else
        *out = self.result;
    return status;
}

void tg_check_result_done(tg_check_result *result)
{
    if (!result)
        return;
    for (size_t i = 0; i < result->count; i++)
        free(result->findings[i].detail);
    free(result->findings);
    *result = (tg_check_result){0};
}
