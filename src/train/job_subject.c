/* What is trained on what, for the run's records. */
#include "train/job_parts.h"

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

void tg_job_tell_subject(tg_job *job)
{
    tg_run_subject subject = {.train_images = job->train.count,
                              .val_images = job->val.count,
                              .classes = job->student.info.config.num_classes,
                              .student = view_of(&job->student.info.preprocess)};
    if (job->stored_preprocess.width_px)
        subject.stored = view_of(&job->stored_preprocess);
    if (job->teacher.vit)
        subject.teacher = view_of(&job->teacher_preprocess);
    if (job->watch->subject)
        job->watch->subject(job->watch->user, &subject);
}
