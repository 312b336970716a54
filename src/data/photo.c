#include "data/photo.h"

#include "data/augment_plan.h"
#include "data/quote.h"
#include "image/resize.h"
#include "image/transform.h"
#include "os/clock.h"
#include "trace/trace.h"
#include "os/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static tg_status reserve(tg_photo_file *file, size_t bytes)
{
    if (bytes <= file->capacity)
        return TG_OK;
    unsigned char *grown = malloc(bytes);
    if (!grown)
        return tg_fail(TG_ERROR_MACHINE, "out of memory for a file of %zu bytes", bytes);
    free(file->bytes);
    file->bytes = grown;
    file->capacity = bytes;
    return TG_OK;
}

static tg_status read_open_file(tg_photo_file *file, int fd, uint64_t max_bytes)
{
    struct stat info;
    if (fstat(fd, &info) != 0)
        return tg_fail(tg_file_read_fault(errno), "cannot read: %s", strerror(errno));
    if (!S_ISREG(info.st_mode))
        return tg_fail(TG_ERROR_INPUT, "not a regular file");
    if ((uint64_t)info.st_size > max_bytes)
        return tg_fail(TG_ERROR_INPUT, "file of %lld bytes is above the limit of %llu",
                       (long long)info.st_size, (unsigned long long)max_bytes);
    TG_TRY(reserve(file, (size_t)info.st_size));
    file->count = 0;
    while (file->count < (size_t)info.st_size) {
        ssize_t n = read(fd, file->bytes + file->count, (size_t)info.st_size - file->count);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return tg_fail(tg_file_read_fault(errno), "cannot read: %s", strerror(errno));
        if (n == 0)
            break;
        file->count += (size_t)n;
    }
    return file->count > 0 ? TG_OK : tg_fail(TG_ERROR_INPUT, "the file is empty");
}

tg_status tg_photo_file_read(tg_photo_file *file, const char *path, uint64_t max_bytes)
{
    char quoted[TG_QUOTE_BYTES];
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe must not block us */
    if (fd < 0)
        return tg_fail(tg_file_read_fault(errno), "%s: cannot open: %s", tg_quote(path, quoted),
                       strerror(errno));
    tg_status status = read_open_file(file, fd, max_bytes);
    close(fd);
    return status < 0 ? tg_fail_prefix(status, "%s", tg_quote(path, quoted)) : TG_OK;
}

void tg_photo_file_done(tg_photo_file *file)
{
    if (!file)
        return;
    free(file->bytes);
    *file = (tg_photo_file){0};
}

/* Whether the crop looks the same to both before their own normalisation. */
static bool same_pixels(const tg_preprocess *a, const tg_preprocess *b)
{
    return a->width_px == b->width_px && a->height_px == b->height_px &&
           a->interpolation == b->interpolation && memcmp(a->mean, b->mean, sizeof a->mean) == 0;
}

/* Resizes the crop and carries out the plan for one of the two networks. */
static tg_status train_pixels(tg_photo_maker *maker, const tg_augment_plan *plan,
                              const tg_image_box *box, const tg_preprocess *input,
                              tg_image *out_pixels)
{
    const tg_resize_spec spec = {.width_px = input->width_px,
                                 .height_px = input->height_px,
                                 .filter = input->interpolation,
                                 .box = *box};
    TG_TRY(tg_image_resize(&maker->source, &spec, &maker->scratch, out_pixels));
    return tg_augment_plan_pixels(plan, input, &maker->scratch, out_pixels);
}

/* A part of the work on one photo is over; returns when. */
static int64_t trace(const tg_photo_maker *maker, const char *name, int64_t begin, size_t bytes)
{
    if (!tg_trace_attached())
        return tg_clock_ns();
    tg_trace_end(&(tg_trace_key){.name = name, .threads = maker->siblings}, begin, 0,
                 (double)bytes);
    return tg_clock_ns();
}

static tg_status make_train(tg_photo_maker *maker, const tg_photo_recipe *recipe, uint64_t sample,
                            float *out_image, float *out_teacher)
{
    const tg_preprocess *own = recipe->preprocess, *teacher = recipe->teacher;
    tg_decode_options decode = tg_decode_options_default();
    tg_decode_report report;
    tg_image_box box;
    decode.exif_orientation = own->exif_orientation;
    int64_t start = tg_clock_ns();
    TG_TRY(tg_image_probe(maker->file.bytes, maker->file.count, &decode, &report));
    tg_augment_plan plan =
        tg_augment_plan_make(recipe->augment, own, report.width_px, report.height_px, recipe->seed,
                             recipe->epoch, sample);
    int width = own->width_px, height = own->height_px;
    if (teacher) {
        width = teacher->width_px > width ? teacher->width_px : width;
        height = teacher->height_px > height ? teacher->height_px : height;
    }
    TG_TRY(tg_image_decode_region(maker->file.bytes, maker->file.count, &decode, plan.crop, width,
                                  height, TG_IMAGE_REDUCE_RESERVE, &maker->scratch, &maker->source,
                                  &box, NULL));
    int64_t decoded = trace(maker, "decode", start, maker->file.count);
    TG_TRY(train_pixels(maker, &plan, &box, own, &maker->pixels));
    tg_image_to_tensor(&maker->pixels, own->mean, own->std, false, out_image);
    tg_augment_plan_erase(&plan, recipe->augment->reprob_pixel, own->width_px, own->height_px,
                          out_image);
    if (teacher) {
        tg_image *pixels = &maker->pixels;
        if (!same_pixels(own, teacher)) {
            pixels = &maker->teacher_pixels;
            TG_TRY(train_pixels(maker, &plan, &box, teacher, pixels));
        }
        tg_image_to_tensor(pixels, teacher->mean, teacher->std, false, out_teacher);
        tg_augment_plan_erase(&plan, recipe->augment->reprob_pixel, teacher->width_px,
                              teacher->height_px, out_teacher);
    }
    maker->decode_ns += decoded - start;
    maker->transform_ns += trace(maker, "transform", decoded, 0) - decoded;
    return TG_OK;
}

static tg_status make_eval(tg_photo_maker *maker, const tg_photo_recipe *recipe, float *out_image,
                           float *out_teacher)
{
    const tg_preprocess *own = recipe->preprocess;
    tg_decode_options decode = tg_decode_options_default();
    decode.exif_orientation = own->exif_orientation;
    int64_t start = tg_clock_ns();
    TG_TRY(tg_image_decode(maker->file.bytes, maker->file.count, &decode, &maker->scratch,
                           &maker->source, NULL));
    int64_t decoded = trace(maker, "decode", start, maker->file.count);
    TG_TRY(tg_preprocess_image(own, &maker->source, &maker->scratch, &maker->pixels, out_image));
    if (recipe->teacher)
        TG_TRY(tg_preprocess_image(recipe->teacher, &maker->source, &maker->scratch,
                                   &maker->teacher_pixels, out_teacher));
    maker->decode_ns += decoded - start;
    maker->transform_ns += trace(maker, "transform", decoded, 0) - decoded;
    return TG_OK;
}

tg_status tg_photo_make(tg_photo_maker *maker, const tg_photo_recipe *recipe, const char *path,
                        uint64_t sample, float *out_image, float *out_teacher)
{
    char quoted[TG_QUOTE_BYTES];
    int64_t start = tg_clock_ns();
    TG_TRY(tg_photo_file_read(&maker->file, path, tg_decode_options_default().max_bytes));
    maker->decode_ns = trace(maker, "read", start, maker->file.count) - start;
    maker->transform_ns = 0;
    tg_status status = recipe->augment ? make_train(maker, recipe, sample, out_image, out_teacher)
                                       : make_eval(maker, recipe, out_image, out_teacher);
    return status < 0 ? tg_fail_prefix(status, "%s", tg_quote(path, quoted)) : TG_OK;
}

void tg_photo_maker_done(tg_photo_maker *maker)
{
    if (!maker)
        return;
    tg_photo_file_done(&maker->file);
    tg_image_done(&maker->source);
    tg_image_done(&maker->pixels);
    tg_image_done(&maker->teacher_pixels);
    tg_image_scratch_done(&maker->scratch);
    *maker = (tg_photo_maker){0};
}
