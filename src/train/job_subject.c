/* What is trained on what, for the run's records. */
#include "train/job_parts.h"

#include <stdlib.h>

static tg_run_view view_of(const tg_preprocess *p)
{
    tg_run_view view = {
        .width_px = p->width_px,
        .height_px = p->height_px,
        .crop_pct = p->crop_pct,
        .interpolation = p->interpolation == TG_BILINEAR ? "bilinear" : "bicubic",
        .crop_mode = p->crop_mode == TG_CROP_SQUASH ? "squash" : "center",
    };
    for (int i = 0; i < 3; i++) {
        view.mean[i] = (double)p->mean[i];
        view.std[i] = (double)p->std[i];
    }
    return view;
}

/* Photos of the smallest class that has any, and of the largest; both stay 0 where nothing is labelled, or memory is
 * short: it is for the records alone. */
static void count_classes(const tg_dataset *data, tg_run_subject *out)
{
    uint64_t *counts = data->class_count ? calloc(data->class_count, sizeof *counts) : NULL;
    for (size_t i = 0; counts && i < data->count; i++)
        if (data->samples[i].label >= 0)
            counts[data->samples[i].label]++;
    for (size_t c = 0; counts && c < data->class_count; c++) {
        if (counts[c] > out->class_most)
            out->class_most = counts[c];
        if (counts[c] && (!out->class_least || counts[c] < out->class_least))
            out->class_least = counts[c];
    }
    free(counts);
}

void tg_job_tell_subject(tg_job *job)
{
    tg_run_subject subject = {.train_images = job->train.count,
                              .val_images = job->val.count,
                              .classes = job->student.info.config.num_classes,
                              .student = view_of(&job->student.info.preprocess)};
    count_classes(&job->train, &subject);
    if (job->stored_preprocess.width_px)
        subject.stored = view_of(&job->stored_preprocess);
    if (job->teacher.vit)
        subject.teacher = view_of(&job->teacher_preprocess);
    if (job->watch->subject)
        job->watch->subject(job->watch->user, &subject);
}
