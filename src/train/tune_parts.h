/* tune_parts.h - what a bed knows (tune_bed.h) and what a trial needs of it; for tune_*.c only. */
#ifndef TG_TRAIN_TUNE_PARTS_H
#define TG_TRAIN_TUNE_PARTS_H

#include "train/job_parts.h"
#include "train/tune_bed.h"

struct tg_tune_bed {
    tg_train_options options;
    tg_train_watch watch;
    tg_comm *comm;
    const tg_kern *kern;
    tg_dtype dtype;
    tg_dataset data; /* photos, or class names alone */
    bool has_photos;
    tg_model_info student, teacher;
    bool has_teacher;
    double photo_px, program_bytes;
    int64_t start_ns;
    double elapsed_s; /* at the last agreement */
};

/* The options with a setting in them. */
tg_train_options tg_tune_bed_options(const tg_tune_bed *bed, const tg_tune_setting *setting);
tg_status tg_tune_bed_predict(void *bed, const tg_tune_setting *setting,
                              double *out_bytes) TG_MUST_CHECK;
/* tg_tune_ops.measure (tune_trial.c). */
tg_status tg_tune_bed_measure(void *bed, const tg_tune_setting *setting, double seconds,
                              tg_tune_trial *out) TG_MUST_CHECK;
/* What this rank could still take, and has. */
double tg_tune_bed_room(const tg_tune_bed *bed);

#endif
