#include "train/tune_parts.h"

#include "base/log.h"
#include "os/clock.h"
#include "os/memory.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIB 1048576.0

/* Classes of a model that has none of its own, as those pretrained without labels. */
enum { DEFAULT_CLASSES = 1000, NAME_BYTES = 32 };

tg_train_options tg_tune_bed_options(const tg_tune_bed *bed, const tg_tune_setting *setting)
{
    tg_train_options o = bed->options;
    const double bucket = setting->bucket_mib * MIB;
    const double first = (double)o.ranks.first_bucket_bytes / (double)o.ranks.bucket_bytes;
    o.recipe.batch_size = setting->batch_size;
    o.threads = setting->threads;
    o.data.workers = setting->workers;
    o.ranks.bucket_bytes = (size_t)bucket;
    o.ranks.first_bucket_bytes = (size_t)(first * bucket);
    return o;
}

static size_t group_batch(const tg_tune_bed *bed, const tg_tune_setting *setting)
{
    const int64_t whole = bed->options.recipe.global_batch_size;
    return whole ? (size_t)whole : (size_t)setting->batch_size * (size_t)bed->comm->size;
}

static tg_preprocess input_of(const tg_model_info *info)
{
    tg_preprocess input = info->preprocess;
    input.width_px = (int)info->config.img_w;
    input.height_px = (int)info->config.img_h;
    return input;
}

tg_status tg_tune_bed_predict(void *user, const tg_tune_setting *setting, double *out_bytes)
{
    const tg_tune_bed *bed = user;
    const tg_train_options o = tg_tune_bed_options(bed, setting);
    tg_loader_options loader = {.batch_size = group_batch(bed, setting),
                                .rank = bed->comm->rank,
                                .ranks = bed->comm->size,
                                .workers = setting->workers,
                                .train = true,
                                .preprocess = input_of(&bed->student),
                                .has_teacher = bed->has_teacher,
                                .num_classes = bed->student.config.num_classes};
    if (bed->has_teacher)
        loader.teacher_preprocess = input_of(&bed->teacher);
    const tg_memory_request request = {.student = &bed->student.config,
                                       .teacher = bed->has_teacher ? &bed->teacher.config : NULL,
                                       .feature = o.distill.objective.kd == TG_KD_FEATURE,
                                       .kern = bed->kern,
                                       .dtype = bed->dtype,
                                       .average = o.recipe.model_ema,
                                       .loader = &loader,
                                       .photos = bed->data.count,
                                       .photo_px = bed->photo_px,
                                       .exchange = o.ranks,
                                       .program_bytes = bed->program_bytes};
    tg_memory memory;
    TG_TRY(tg_memory_predict(&request, &memory));
    *out_bytes = tg_memory_total(&memory);
    return TG_OK;
}

double tg_tune_bed_room(const tg_tune_bed *bed)
{
    return tg_memory_available(tg_job_ranks_here(bed->comm)) + (double)tg_memory_rss_bytes();
}

static tg_status look_at_machine(tg_tune_bed *bed)
{
    tg_stream *stream;
    TG_TRY(tg_stream_open_cpu(1, bed->options.cpu_cap, &stream));
    bed->kern = tg_kern_select(stream);
    bed->dtype = bed->options.recipe.amp && tg_stream_has_bf16(stream) ? TG_BF16 : TG_F32;
    if (bed->options.recipe.amp && bed->dtype != TG_BF16)
        tg_log_warning("--amp: this machine has no bf16 instructions, computing in float32");
    bed->options.recipe.amp = bed->dtype == TG_BF16; /* said once, not in every trial */
    tg_stream_close(stream);
    return TG_OK;
}

static tg_status read_teacher(tg_tune_bed *bed)
{
    tg_network_request request;
    if (!bed->options.distill.teacher)
        return TG_OK;
    TG_TRY(tg_job_teacher_request(&bed->options, bed->dtype, &request));
    tg_status status = tg_network_describe(&request, &bed->teacher);
    if (status < 0)
        return tg_fail_prefix(status, "teacher");
    bed->has_teacher = true;
    return TG_OK;
}

/* The student with `classes`, or as it is (-1). */
static tg_status describe_student(tg_tune_bed *bed, int64_t classes)
{
    const tg_model_choice *choice = &bed->options.model;
    const bool start = choice->initial_checkpoint && *choice->initial_checkpoint;
    tg_network_request request = {.model = start ? choice->initial_checkpoint : choice->model,
                                  .shape = tg_model_choice_shape(choice),
                                  .fresh_head = true,
                                  .trainable = true,
                                  .dtype = bed->dtype};
    request.shape.num_classes = classes;
    tg_model_info_done(&bed->student);
    bed->student = (tg_model_info){0};
    return tg_network_describe(&request, &bed->student);
}

/* Class names stand for data that is not there: the teacher's, so that both know the same ones. */
static tg_status name_classes(tg_tune_bed *bed, size_t count)
{
    const bool alike =
        bed->has_teacher && bed->teacher.class_names && bed->teacher.config.num_classes == count;
    bed->data.class_names = calloc(count ? count : 1, sizeof *bed->data.class_names);
    if (!bed->data.class_names)
        return tg_fail(TG_ERROR_MACHINE, "out of memory for %zu class names", count);
    for (; bed->data.class_count < count; bed->data.class_count++) {
        char name[NAME_BYTES];
        snprintf(name, sizeof name, "%zu", bed->data.class_count);
        char *copy = strdup(alike ? bed->teacher.class_names[bed->data.class_count] : name);
        if (!copy)
            return tg_fail(TG_ERROR_MACHINE, "out of memory for %zu class names", count);
        bed->data.class_names[bed->data.class_count] = copy;
    }
    return TG_OK;
}

static tg_status invent_classes(tg_tune_bed *bed)
{
    int64_t count = bed->options.model.num_classes;
    if (count < 0 && bed->has_teacher && bed->options.distill.objective.kd != TG_KD_FEATURE)
        count = (int64_t)bed->teacher.config.num_classes;
    if (count < 0)
        count = (int64_t)bed->student.config.num_classes;
    if (count == 0)
        count = DEFAULT_CLASSES;
    return name_classes(bed, (size_t)count);
}

static tg_status list_photos(tg_tune_bed *bed)
{
    tg_job job = {.options = &bed->options, .comm = bed->comm};
    tg_status status = tg_job_open_data(&job);
    tg_dataset_done(&job.val);
    bed->data = job.train; /* zeroed, or what there is of it */
    TG_TRY(status);
    bed->has_photos = true;
    bed->photo_px = tg_job_photo_px(&bed->data);
    return TG_OK;
}

static tg_status look_at_job(tg_tune_bed *bed)
{
    TG_TRY(read_teacher(bed));
    TG_TRY(describe_student(bed, bed->options.model.num_classes));
    TG_TRY(bed->options.data.data ? list_photos(bed) : invent_classes(bed));
    const size_t classes =
        bed->data.class_names ? bed->data.class_count : bed->teacher.config.num_classes;
    return describe_student(bed, (int64_t)classes);
}

/* Ranks try the same things: what the one with the fewest cores would. */
static tg_status agree_on_cores(tg_tune_bed *bed)
{
    const int mine[2] = {bed->options.threads, tg_train_options_workers(&bed->options)};
    int(*all)[2] = calloc((size_t)bed->comm->size, sizeof *all);
    if (!all)
        return tg_fail(TG_ERROR_MACHINE, "out of memory for %d ranks", bed->comm->size);
    tg_status status = tg_comm_meet(bed->comm, "threads", mine, sizeof mine, all);
    bed->options.data.workers = mine[1];
    for (int r = 0; r < bed->comm->size && status == TG_OK; r++) {
        if (all[r][0] < bed->options.threads)
            bed->options.threads = all[r][0];
        if (all[r][1] < bed->options.data.workers)
            bed->options.data.workers = all[r][1];
    }
    free(all);
    return status;
}

tg_status tg_tune_bed_open(const tg_train_options *options, int (*stop)(void *user), void *user,
                           tg_tune_bed **out)
{
    tg_tune_bed *bed = calloc(1, sizeof *bed);
    if (!bed)
        return tg_fail(TG_ERROR_MACHINE, "out of memory for trials");
    bed->options = *options;
    bed->watch = (tg_train_watch){.user = user, .stop = stop};
    bed->comm = options->comm ? options->comm : tg_comm_self();
    bed->options.comm = bed->comm;
    bed->start_ns = tg_clock_ns();
    tg_status status = look_at_machine(bed);
    if (status == TG_OK)
        status = look_at_job(bed);
    bed->program_bytes = (double)tg_memory_rss_bytes();
    status = tg_comm_agree(bed->comm, "opening the job", status);
    if (status == TG_OK)
        status = agree_on_cores(bed);
    if (status < 0)
        tg_tune_bed_close(bed);
    else
        *out = bed;
    return status;
}

void tg_tune_bed_close(tg_tune_bed *bed)
{
    if (!bed)
        return;
    if (bed->has_photos) {
        tg_dataset_done(&bed->data);
    } else if (bed->data.class_names) {
        for (size_t i = 0; i < bed->data.class_count; i++)
            free(bed->data.class_names[i]);
        free(bed->data.class_names);
    }
    tg_model_info_done(&bed->student);
    tg_model_info_done(&bed->teacher);
    free(bed);
}

static double elapsed(void *user)
{
    return ((const tg_tune_bed *)user)->elapsed_s;
}

tg_tune_ops tg_tune_bed_ops(tg_tune_bed *bed)
{
    return (tg_tune_ops){.user = bed,
                         .predict = tg_tune_bed_predict,
                         .measure = tg_tune_bed_measure,
                         .elapsed = elapsed};
}

tg_tune_setting tg_tune_bed_given(const tg_tune_bed *bed)
{
    const tg_train_options *o = &bed->options;
    const int64_t whole = o->recipe.global_batch_size, ranks = bed->comm->size;
    return (tg_tune_setting){.batch_size =
                                 whole ? (whole + ranks - 1) / ranks : o->recipe.batch_size,
                             .threads = o->threads,
                             .workers = tg_train_options_workers(o),
                             .bucket_mib = (double)o->ranks.bucket_bytes / MIB};
}

int64_t tg_tune_bed_most(const tg_tune_bed *bed)
{
    return bed->has_photos ? (int64_t)(bed->data.count / (size_t)bed->comm->size) : 0;
}

tg_status tg_tune_bed_available(tg_tune_bed *bed, double *out_bytes)
{
    const double mine = tg_tune_bed_room(bed);
    double *all = calloc((size_t)bed->comm->size, sizeof *all);
    if (!all)
        return tg_fail(TG_ERROR_MACHINE, "out of memory for %d ranks", bed->comm->size);
    tg_status status = tg_comm_meet(bed->comm, "memory", &mine, sizeof mine, all);
    if (status == TG_OK) {
        *out_bytes = mine;
        for (int r = 0; r < bed->comm->size; r++)
            *out_bytes = fmin(*out_bytes, all[r]);
    }
    free(all);
    return status;
}

const char *tg_tune_bed_model(const tg_tune_bed *bed)
{
    return bed->student.config.architecture;
}

tg_dtype tg_tune_bed_dtype(const tg_tune_bed *bed)
{
    return bed->dtype;
}

size_t tg_tune_bed_photos(const tg_tune_bed *bed)
{
    return bed->has_photos ? bed->data.count : 0;
}
