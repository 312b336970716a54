#include "train/job_parts.h"

#include "base/log.h"
#include "base/rng.h"
#include "ckpt/naming.h"
#include "os/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static tg_status copy_names(char *const *names, size_t count, tg_model_info *info)
{
    for (size_t i = 0; i < info->class_count; i++)
        free(info->class_names[i]);
    free(info->class_names);
    info->class_count = 0;
    info->class_names = calloc(count ? count : 1, sizeof *info->class_names);
    if (!info->class_names)
        return tg_fail(TG_ERROR_MACHINE, "out of memory for %zu class names", count);
    for (; info->class_count < count; info->class_count++) {
        info->class_names[info->class_count] = strdup(names[info->class_count]);
        if (!info->class_names[info->class_count])
            return tg_fail(TG_ERROR_MACHINE, "out of memory for %zu class names", count);
    }
    return TG_OK;
}

static void override_preprocess(const tg_preprocess_choice *choice, const tg_vit_config *config,
                                tg_preprocess *out)
{
    out->width_px = (int)config->img_w;
    out->height_px = (int)config->img_h;
    if (!isnan(choice->crop_pct))
        out->crop_pct = choice->crop_pct;
    if (choice->interpolation >= 0)
        out->interpolation = (tg_interpolation)choice->interpolation;
    for (int i = 0; i < 3; i++) {
        if (choice->has_mean)
            out->mean[i] = (float)choice->mean[i];
        if (choice->has_std)
            out->std[i] = (float)choice->std[i];
    }
}

tg_status tg_job_teacher_request(const tg_train_options *options, tg_dtype dtype,
                                 tg_network_request *out)
{
    const char *path = options->distill.teacher;
    if (!tg_network_is_path(path))
        return tg_fail(TG_ERROR_INPUT,
                       "--teacher %s: there is no such file or folder; a model folder with trained "
                       "weights is needed, a name alone has none",
                       path);
    *out = (tg_network_request){
        .model = path, .shape = {.reg_tokens = -1, .num_classes = -1}, .dtype = dtype};
    return TG_OK;
}

static tg_status open_teacher(tg_job *job)
{
    tg_network_request request;
    if (!job->options->distill.teacher)
        return TG_OK;
    TG_TRY(tg_job_teacher_request(job->options, job->dtype, &request));
    tg_status status = tg_network_open(&request, job->kern, job->stream, &job->teacher);
    if (status < 0)
        return tg_fail_prefix(status, "teacher");
    job->teacher_preprocess = job->teacher.info.preprocess;
    return TG_OK;
}

/* Classes of the student: the data's, or the teacher's when the photos have no labels. */
static size_t class_count(const tg_job *job)
{
    if (job->train.class_names)
        return job->train.class_count;
    return job->teacher.vit ? job->teacher.info.config.num_classes : 0;
}

static bool wants_projection(const tg_job *job)
{
    return job->teacher.vit && job->options->distill.objective.kd == TG_KD_FEATURE;
}

/* Room behind the model for W [C_t,C_s] and b [C_t]. */
static tg_status projection_floats(const tg_job *job, const tg_network_request *request,
                                   size_t *out)
{
    *out = 0;
    if (!wants_projection(job))
        return TG_OK;
    tg_model_info info = {0};
    TG_TRY(tg_network_describe(request, &info));
    size_t C_t = job->teacher.info.config.embed_dim, C_s = info.config.embed_dim;
    tg_model_info_done(&info);
    *out = tg_memory_projection_floats(C_s, C_t);
    return TG_OK;
}

/* Hugging Face's DeiT without a teacher's head has its distillation token all the same. It is read as a
 * register (ckpt/), and no name asks for it. */
static bool has_spare_token(const tg_model_info *info)
{
    return info->naming == TG_NAMING_HF && tg_naming_hf_kind(&info->config) == TG_HF_DEIT &&
           info->config.reg_tokens == 1;
}

/* The first way in which stored weights are not of the architecture that was named. */
static tg_status compare_architecture(const tg_model_choice *choice, const tg_model_info *info,
                                      const tg_vit_config *named)
{
    const tg_vit_config *stored = &info->config;
    size_t registers = stored->reg_tokens;
    if (has_spare_token(info) && named->reg_tokens == 0)
        registers = 0;
    const struct {
        const char *what;
        size_t stored, named;
    } traits[] = {
        {"width", stored->embed_dim, named->embed_dim},
        {"depth", stored->depth, named->depth},
        {"heads", stored->num_heads, named->num_heads},
        {"patch", stored->patch, named->patch},
        {"class tokens", stored->class_token, named->class_token},
        {"distillation tokens", stored->dist_token, named->dist_token},
        {"register tokens", registers, named->reg_tokens},
        {"LayerScale", stored->layer_scale, named->layer_scale},
        {"average pooling", stored->pool == TG_POOL_AVG, named->pool == TG_POOL_AVG},
    };
    for (size_t i = 0; i < sizeof traits / sizeof traits[0]; i++)
        if (traits[i].stored != traits[i].named)
            return tg_fail(TG_ERROR_USAGE,
                           "--initial-checkpoint %s holds another architecture (%s: %zu) than "
                           "--model %s asks for (%zu); leave --model out to take the stored one",
                           choice->initial_checkpoint, traits[i].what, traits[i].stored,
                           choice->model, traits[i].named);
    return TG_OK;
}

/* The start has to be a place of weights, not a name, which would start from fresh ones. --model beside --initial-checkpoint is a name, and the weights must be of that architecture:
 * nothing is loaded that was not asked for. */
static tg_status check_start(const tg_job *job)
{
    const tg_model_choice *choice = &job->options->model;
    const char *start = choice->initial_checkpoint;
    tg_vit_config named;
    tg_model_info stored;
    if (!start || !*start)
        return TG_OK;
    if (!tg_network_is_path(start))
        return tg_fail(TG_ERROR_INPUT,
                       "--initial-checkpoint %s: there is no such file or folder; weights to start "
                       "from are needed, and fresh ones are what --model NAME alone gives",
                       start);
    if (!choice->model)
        return TG_OK;
    if (tg_network_is_path(choice->model))
        return tg_fail(
            TG_ERROR_USAGE,
            "--model %s and --initial-checkpoint %s: both are places of weights to start "
            "from; give one of them",
            choice->model, start);
    TG_TRY(tg_vit_config_preset(choice->model, &named));
    TG_TRY(tg_model_read_info(start, &stored));
    tg_status status = compare_architecture(choice, &stored, &named);
    tg_model_info_done(&stored);
    return status;
}

static tg_status open_student(tg_job *job)
{
    const tg_model_choice *choice = &job->options->model;
    bool start = choice->initial_checkpoint && *choice->initial_checkpoint;
    tg_network_request request = {.model = start ? choice->initial_checkpoint : choice->model,
                                  .shape = tg_model_choice_shape(choice),
                                  .fresh_head = true,
                                  .trainable = true,
                                  .dtype = job->dtype,
                                  .seed = (uint64_t)job->options->recipe.seed};
    request.shape.num_classes = (int64_t)class_count(job);
    if (choice->num_classes >= 0 && (size_t)choice->num_classes != class_count(job))
        return tg_fail(TG_ERROR_USAGE, "--num-classes %lld, but the data has %zu classes",
                       (long long)choice->num_classes, class_count(job));
    TG_TRY(check_start(job));
    TG_TRY(projection_floats(job, &request, &request.extra_floats));
    TG_TRY(tg_network_open(&request, job->kern, job->stream, &job->student));
    tg_model_info *info = &job->student.info;
    if (job->options->model.initial_checkpoint || tg_network_is_path(choice->model))
        job->stored_preprocess = info->preprocess;
    override_preprocess(&job->options->preprocess, &info->config, &info->preprocess);
    if (job->train.class_names)
        return copy_names(job->train.class_names, job->train.class_count, info);
    if (job->teacher.vit && job->teacher.info.class_names)
        return copy_names(job->teacher.info.class_names, job->teacher.info.class_count, info);
    return TG_OK;
}

/* The optimizer's table: the model's tensors, then the projection's. */
static tg_status build_table(tg_job *job)
{
    const tg_param_table *model = &job->student.table;
    for (size_t i = 0; i < model->count; i++) {
        const tg_param *p = &model->items[i];
        TG_TRY(tg_param_add(&job->table, p->name, p->ndim, p->shape, p->layer, p->decay));
    }
    if (!wants_projection(job))
        return TG_OK;
    size_t shape[2] = {job->teacher.info.config.embed_dim, job->student.info.config.embed_dim};
    int top = (int)job->student.info.config.depth + 1;
    TG_TRY(tg_param_add(&job->table, "kd_projection.weight", 2, shape, top, true));
    return tg_param_add(&job->table, "kd_projection.bias", 1, shape, top, false);
}

static tg_status open_projection(tg_job *job)
{
    if (!wants_projection(job))
        return TG_OK;
    const tg_param *w = tg_param_find(&job->table, "kd_projection.weight");
    const tg_param *b = tg_param_find(&job->table, "kd_projection.bias");
    job->projection = (tg_projection){.bias = job->student.params + b->offset,
                                      .C_s = w->shape[1],
                                      .C_t = w->shape[0],
                                      .dtype = job->dtype};
    tg_rng rng = tg_rng_init((uint64_t)job->options->recipe.seed, 1, job->table.count, TG_RNG_INIT);
    float *weight = job->student.params + w->offset;
    for (size_t i = 0; i < w->count; i++)
        weight[i] = (float)(tg_rng_normal(&rng) / sqrt((double)w->shape[1]));
    TG_TRY(job->kern->linear.weight_new(job->stream, w->shape[0], w->shape[1], job->dtype, true,
                                        &job->projection.weight));
    return job->kern->linear.weight_refresh(job->stream, job->projection.weight, weight);
}

static tg_status refuse_classes(const tg_job *job)
{
    return tg_fail(TG_ERROR_INPUT,
                   "the teacher (%zu classes) and the student (%zu classes) do not know the same "
                   "classes; fine-tune the teacher on this data first, or use --kd-loss feature",
                   job->teacher.info.config.num_classes, job->student.info.config.num_classes);
}

/* Which of the teacher's logits belongs to which class of the student. */
static tg_status match_classes(tg_job *job)
{
    if (!job->teacher.vit || job->options->distill.objective.kd == TG_KD_FEATURE)
        return TG_OK;
    const tg_model_info *teacher = &job->teacher.info, *student = &job->student.info;
    size_t K = student->config.num_classes, K_t = teacher->config.num_classes;
    if (!teacher->class_names || !student->class_names) {
        if (K != K_t)
            return refuse_classes(job);
        if (!teacher->class_names && job->train.class_names)
            tg_log_warning(
                "the teacher has no class names: its %zu classes are taken in the order "
                "of the data's folders; its accuracy, below, tells whether that is right",
                K_t);
        return TG_OK;
    }
    job->teacher_class = calloc(K ? K : 1, sizeof *job->teacher_class);
    job->teacher_labels = calloc(K_t ? K_t : 1, sizeof *job->teacher_labels);
    if (!job->teacher_class || !job->teacher_labels)
        return tg_fail(TG_ERROR_MACHINE, "out of memory for the class lists");
    bool same;
    if (!tg_classes_match(student->class_names, K, teacher->class_names, K_t, job->teacher_class,
                          &same))
        return refuse_classes(job);
    for (size_t k = 0; k < K_t; k++)
        job->teacher_labels[k] = UINT32_MAX;
    for (size_t k = 0; k < K; k++)
        job->teacher_labels[job->teacher_class[k]] = (uint32_t)k;
    if (!same)
        tg_log_info("the teacher's %zu classes are taken in the student's order, by name", K_t);
    return TG_OK;
}

tg_status tg_job_open_networks(tg_job *job)
{
    const double before = (double)tg_memory_heap_bytes();
    TG_TRY(open_teacher(job));
    job->teacher_heap_bytes = (double)tg_memory_heap_bytes() - before;
    TG_TRY(open_student(job));
    TG_TRY(build_table(job));
    TG_TRY(open_projection(job));
    job->student_heap_bytes = (double)tg_memory_heap_bytes() - before - job->teacher_heap_bytes;
    return match_classes(job);
}
