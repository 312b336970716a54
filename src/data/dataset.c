#include "data/dataset.h"

#include "base/checked.h"
#include "base/log.h"
#include "base/rng.h"
#include "data/quote.h"
#include "data/scan.h"
#include "os/file.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct tg_dataset_storage {
    char bytes[1]; /* every path, one after the other */
};

typedef struct sort_key { /* class names by name, for look-ups */
    const char *name;
    int32_t label;
} sort_key;

static tg_status out_of_memory(void)
{
    return tg_fail(TG_ERROR_MACHINE, "out of memory for the list of photos");
}

static tg_status check_options(const tg_dataset_options *options)
{
    if (!options->root || !options->root[0])
        return tg_fail(TG_ERROR_USAGE, "no data folder given");
    if (!(options->val_share >= 0 && options->val_share < 1))
        return tg_fail(TG_ERROR_USAGE, "validation share %g is outside 0 to 1", options->val_share);
    if (options->part != 0 && options->part != 1)
        return tg_fail(TG_ERROR_USAGE, "part %d of a data set is neither 0 (training) nor 1",
                       options->part);
    return TG_OK;
}

/* Scans the split folders that `split` names, or the root itself. */
static tg_status scan_parts(const tg_dataset_options *options, tg_scan *scan)
{
    bool unlabelled = options->unlabelled != 0;
    if (!options->split)
        return tg_scan_part(scan, options->root, 0, unlabelled);
    const char *name = options->split;
    for (uint32_t part = 0;; part++) {
        size_t length = strcspn(name, "+");
        char *one = strndup(name, length);
        char *path = one ? tg_path_join(options->root, one) : NULL;
        tg_status status = TG_OK;
        if (!path)
            status = out_of_memory();
        else if (length == 0)
            status = tg_fail(TG_ERROR_USAGE, "empty name in the split '%s'", options->split);
        else
            status = tg_scan_part(scan, path, part, unlabelled);
        free(one);
        free(path);
        TG_TRY(status);
        if (name[length] == 0)
            return TG_OK;
        name += length + 1;
    }
}

static int compare_keys(const void *a, const void *b)
{
    return strcmp(((const sort_key *)a)->name, ((const sort_key *)b)->name);
}

static bool is_whole_number(const char *name)
{
    return name[0] && strspn(name, "0123456789") == strlen(name);
}

/* -1, 0, 1 for numbers of any length. */
static int compare_numbers(const char *a, const char *b)
{
    a += strspn(a, "0");
    b += strspn(b, "0");
    size_t length_a = strlen(a), length_b = strlen(b);
    if (length_a != length_b)
        return length_a < length_b ? -1 : 1;
    return strcmp(a, b);
}

static void warn_of_number_order(const tg_dataset *dataset)
{
    bool differs = false;
    for (size_t i = 0; i < dataset->class_count; i++) {
        if (!is_whole_number(dataset->class_names[i]))
            return;
        if (i > 0 && compare_numbers(dataset->class_names[i - 1], dataset->class_names[i]) > 0)
            differs = true;
    }
    if (differs)
        tg_log_warning("data: class names are numbers in the order of text (\"10\" before \"2\"): "
                       "class index and name differ; the saved class list is what counts");
}

/* Copies `count` names; the caller's list, or the sorted folder names. */
static tg_status copy_names(const sort_key *keys, size_t count, tg_dataset *out)
{
    out->class_names = calloc(count ? count : 1, sizeof *out->class_names);
    if (!out->class_names)
        return out_of_memory();
    for (size_t i = 0; i < count; i++) {
        out->class_names[i] = strdup(keys[i].name);
        if (!out->class_names[i])
            return out_of_memory();
        out->class_count = i + 1;
    }
    return TG_OK;
}

/* The names of the folders found, in bytewise order, each once. */
static tg_status names_from_folders(const tg_scan *scan, tg_dataset *out)
{
    size_t count = 0;
    sort_key *keys = calloc(scan->class_count ? scan->class_count : 1, sizeof *keys);
    if (!keys)
        return out_of_memory();
    for (size_t i = 0; i < scan->class_count; i++)
        keys[i].name = scan->classes[i].name;
    if (scan->class_count > 1)
        qsort(keys, scan->class_count, sizeof *keys, compare_keys);
    for (size_t i = 0; i < scan->class_count; i++)
        if (count == 0 || strcmp(keys[count - 1].name, keys[i].name) != 0)
            keys[count++] = keys[i];
    tg_status status = copy_names(keys, count, out);
    free(keys);
    return status;
}

static tg_status names_from_options(const tg_dataset_options *options, tg_dataset *out)
{
    sort_key *keys = calloc(options->class_count, sizeof *keys);
    if (!keys)
        return out_of_memory();
    for (size_t i = 0; i < options->class_count; i++)
        keys[i].name = options->class_names[i];
    tg_status status = copy_names(keys, options->class_count, out);
    free(keys);
    return status;
}

/* Gives every class folder its index; -1 where the ruling list lacks the name. */
static tg_status set_labels(const tg_dataset *dataset, tg_scan *scan)
{
    tg_status status = TG_OK;
    sort_key *keys = calloc(dataset->class_count ? dataset->class_count : 1, sizeof *keys);
    if (!keys)
        return out_of_memory();
    for (size_t i = 0; i < dataset->class_count; i++)
        keys[i] = (sort_key){dataset->class_names[i], (int32_t)i};
    if (dataset->class_count > 1)
        qsort(keys, dataset->class_count, sizeof *keys, compare_keys);
    for (size_t i = 1; i < dataset->class_count && status >= 0; i++)
        if (strcmp(keys[i - 1].name, keys[i].name) == 0)
            status = tg_fail(TG_ERROR_INPUT, "the class list names '%s' twice", keys[i].name);
    for (size_t i = 0; i < scan->class_count && status >= 0; i++) {
        sort_key wanted = {scan->classes[i].name, -1};
        const sort_key *found =
            bsearch(&wanted, keys, dataset->class_count, sizeof *keys, compare_keys);
        scan->classes[i].label = found ? found->label : -1;
    }
    free(keys);
    return status;
}

/* A folder that the ruling list does not know is an error if it holds photos. */
static tg_status refuse_unknown_classes(const tg_scan *scan)
{
    char quoted[TG_QUOTE_BYTES];
    for (size_t i = 0; i < scan->class_count; i++) {
        if (scan->classes[i].label >= 0)
            continue;
        tg_scan below = {0};
        tg_status status = tg_scan_part(&below, scan->classes[i].path, 0, true);
        size_t photos = below.photo_count;
        tg_scan_done(&below);
        TG_TRY(status);
        tg_quote(scan->classes[i].path, quoted);
        if (photos > 0)
            return tg_fail(TG_ERROR_INPUT,
                           "class folder %s (%zu photos) is not in the class list of the training "
                           "split or model: rename it, move it away, or train with it",
                           quoted, photos);
        tg_log_warning("data: empty folder %s is not in the class list; passed over", quoted);
    }
    return TG_OK;
}

static tg_status label_folders(const tg_dataset_options *options, tg_scan *scan, tg_dataset *out)
{
    char quoted[TG_QUOTE_BYTES];
    if (scan->class_count == 0)
        return tg_fail(TG_ERROR_INPUT,
                       "no class folder in %s%s%s (%zu photos lie in it directly): labels are the "
                       "names of folders; for photos without labels say so",
                       tg_quote(options->root, quoted), options->split ? ", split " : "",
                       options->split ? options->split : "", scan->passed_over.stray);
    if (options->class_names && options->class_count > 0)
        TG_TRY(names_from_options(options, out));
    else
        TG_TRY(names_from_folders(scan, out));
    if (out->class_count > INT32_MAX)
        return tg_fail(TG_ERROR_INPUT, "%zu classes are too many", out->class_count);
    TG_TRY(set_labels(out, scan));
    TG_TRY(refuse_unknown_classes(scan));
    if (!options->class_names)
        warn_of_number_order(out);
    return tg_scan_classes(scan);
}

static int compare_photos(const void *a, const void *b)
{
    const tg_scan_photo *x = a, *y = b;
    if (x->part != y->part)
        return x->part < y->part ? -1 : 1;
    if (x->label != y->label)
        return x->label < y->label ? -1 : 1;
    return strcmp(x->path, y->path);
}

typedef struct ranked {
    uint64_t hash;
    size_t index; /* of the photo */
    int32_t label;
} ranked;

static int compare_ranked(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    if (x->label != y->label)
        return x->label < y->label ? -1 : 1;
    if (x->hash != y->hash)
        return x->hash < y->hash ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

/* The path below the folder of its split, so that a split given as the root is cut alike. */
static const char *path_in_split(const tg_dataset_options *options, const tg_scan_photo *photo)
{
    const char *name = options->split, *path = photo->path + strlen(options->root);
    path += strspn(path, "/");
    for (uint32_t part = 0; name && part < photo->part; part++)
        name += strcspn(name, "+") + 1;
    if (name)
        path += strcspn(name, "+");
    return path + strspn(path, "/");
}

/* FNV-1a of that path, stirred with the seed. */
static uint64_t split_hash(const tg_dataset_options *options, const tg_scan_photo *photo)
{
    uint64_t hash = 0xCBF29CE484222325u;
    for (const char *c = path_in_split(options, photo); *c; c++)
        hash = (hash ^ (unsigned char)*c) * 0x100000001B3u;
    tg_rng rng = tg_rng_init(options->seed, 0, hash, TG_RNG_SPLIT);
    uint64_t high = tg_rng_u32(&rng);
    return high << 32 | tg_rng_u32(&rng);
}

static size_t val_count(size_t n, double share)
{
    size_t wanted = (size_t)((double)n * share + 0.5);
    if (n < 2)
        return 0;
    return wanted < 1 ? 1 : wanted > n - 1 ? n - 1 : wanted;
}

/* Marks what is not in the wanted part by part = UINT32_MAX. */
static tg_status cut_share(const tg_dataset_options *options, tg_scan *scan)
{
    size_t n = scan->photo_count;
    ranked *order = malloc((n ? n : 1) * sizeof *order);
    if (!order)
        return out_of_memory();
    for (size_t i = 0; i < n; i++)
        order[i] = (ranked){split_hash(options, &scan->photos[i]), i, scan->photos[i].label};
    if (n > 1)
        qsort(order, n, sizeof *order, compare_ranked);
    for (size_t first = 0, last; first < n; first = last) {
        for (last = first + 1; last < n && order[last].label == order[first].label; last++)
            ;
        size_t val = val_count(last - first, options->val_share);
        for (size_t i = first; i < last; i++)
            if ((i - first < val) != (options->part == 1))
                scan->photos[order[i].index].part = UINT32_MAX;
    }
    free(order);
    return TG_OK;
}

/* Moves the kept photos into the data set: one block for all paths. */
static tg_status store_photos(const tg_scan *scan, tg_dataset *out)
{
    size_t count = 0, bytes = sizeof *out->storage;
    for (size_t i = 0; i < scan->photo_count; i++) {
        if (scan->photos[i].part == UINT32_MAX)
            continue;
        count++;
        bytes += strlen(scan->photos[i].path) + 1;
    }
    out->storage = malloc(bytes);
    out->samples = calloc(count ? count : 1, sizeof *out->samples);
    if (!out->storage || !out->samples)
        return out_of_memory();
    char *at = out->storage->bytes;
    for (size_t i = 0; i < scan->photo_count; i++) {
        if (scan->photos[i].part == UINT32_MAX)
            continue;
        size_t length = strlen(scan->photos[i].path) + 1;
        memcpy(at, scan->photos[i].path, length);
        out->samples[out->count++] = (tg_sample){at, scan->photos[i].label};
        at += length;
    }
    return TG_OK;
}

/* One line naming the classes that have no photo here. */
static tg_status warn_of_empty_classes(const tg_dataset_options *options, const tg_dataset *dataset)
{
    char names[512] = "", quoted[TG_QUOTE_BYTES];
    size_t used = 0, empty = 0;
    size_t *counts = calloc(dataset->class_count ? dataset->class_count : 1, sizeof *counts);
    if (!counts)
        return out_of_memory();
    for (size_t i = 0; i < dataset->count; i++)
        if (dataset->samples[i].label >= 0)
            counts[dataset->samples[i].label]++;
    for (size_t i = 0; i < dataset->class_count; i++) {
        if (counts[i] > 0)
            continue;
        tg_quote(dataset->class_names[i], quoted);
        if (used + strlen(quoted) + 8 < sizeof names)
            used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", empty ? ", " : "",
                                     quoted);
        else if (used + 5 < sizeof names)
            used += (size_t)snprintf(names + used, sizeof names - used, ", ...");
        empty++;
    }
    free(counts);
    if (empty > 0)
        tg_log_warning("data: %s%s: %zu of %zu classes have no photo (their indices stay): %s",
                       options->split ? "split " : "", options->split ? options->split : "root",
                       empty, dataset->class_count, names);
    return TG_OK;
}

static tg_status fill(const tg_dataset_options *options, tg_scan *scan, tg_dataset *out)
{
    char quoted[TG_QUOTE_BYTES];
    TG_TRY(scan_parts(options, scan));
    if (!options->unlabelled)
        TG_TRY(label_folders(options, scan, out));
    tg_scan_report(scan);
    if (scan->photo_count > 1)
        qsort(scan->photos, scan->photo_count, sizeof *scan->photos, compare_photos);
    if (options->val_share > 0)
        TG_TRY(cut_share(options, scan));
    TG_TRY(store_photos(scan, out));
    out->passed_over = scan->passed_over;
    if (out->count == 0 && scan->passed_over.stray > 0)
        return tg_fail(
            TG_ERROR_INPUT,
            "no photo in the folders of %s%s%s, but %zu beside them: labels are the names "
            "of folders, so photos belong in one for each class",
            tg_quote(options->root, quoted), options->split ? ", split " : "",
            options->split ? options->split : "", scan->passed_over.stray);
    if (out->count == 0)
        return tg_fail(TG_ERROR_INPUT,
                       "no photo in %s%s%s%s: jpg, jpeg, png, webp, heic and heif are looked for",
                       tg_quote(options->root, quoted), options->split ? ", split " : "",
                       options->split ? options->split : "",
                       scan->photo_count > 0 ? " after the validation share was cut" : "");
    return warn_of_empty_classes(options, out);
}

tg_status tg_dataset_open(const tg_dataset_options *options, tg_dataset *out)
{
    tg_dataset dataset = {0};
    tg_scan scan = {0};
    TG_TRY(check_options(options));
    tg_status status = fill(options, &scan, &dataset);
    tg_scan_done(&scan);
    if (status < 0) {
        tg_dataset_done(&dataset);
        return status;
    }
    *out = dataset;
    return TG_OK;
}

tg_status tg_dataset_has_classes(const tg_dataset_options *options, bool *out)
{
    tg_dataset_options labelled = *options;
    tg_scan scan = {0};
    labelled.unlabelled = 0;
    TG_TRY(check_options(&labelled));
    tg_status status = scan_parts(&labelled, &scan);
    for (size_t i = 0; i < scan.class_count; i++)
        scan.classes[i].label = 0; /* all are entered */
    if (status == TG_OK)
        status = tg_scan_classes(&scan);
    if (status == TG_OK)
        *out = scan.photo_count > 0;
    tg_scan_done(&scan);
    return status;
}

void tg_dataset_done(tg_dataset *dataset)
{
    if (!dataset)
        return;
    for (size_t i = 0; i < dataset->class_count; i++)
        free(dataset->class_names[i]);
    free(dataset->class_names);
    free(dataset->samples);
    free(dataset->storage);
    *dataset = (tg_dataset){0};
}
