#include "infer/engine.h"

#include "base/checked.h"
#include "base/log.h"
#include "image/decode.h"
#include "image/transform.h"
#include "infer/network.h"
#include "infer/scores.h"
#include "os/file.h"

#include <assert.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct tg_engine {
    tg_stream *stream;
    tg_network network;
    tg_dtype dtype;
    size_t batch_size, input_floats; /* of one photo */
    tg_arena inputs, step;
    float *input; /* [batch_size,3,H,W] */
    tg_image source, pixels;
    tg_image_scratch scratch;
    char **errors; /* [batch_size]: why a file of this batch has no answer */
};

/* A name for each class, so that nobody has to ask whether there is one. */
static tg_status name_classes(tg_model_info *info)
{
    size_t K = info->config.num_classes;
    if (info->class_names || K == 0)
        return TG_OK;
    info->class_names = calloc(K, sizeof *info->class_names);
    if (!info->class_names)
        return tg_fail(TG_ERROR_MACHINE, "out of memory for %zu class names", K);
    for (; info->class_count < K; info->class_count++)
        if (asprintf(&info->class_names[info->class_count], "%zu", info->class_count) < 0) {
            info->class_names[info->class_count] = NULL;
            return tg_fail(TG_ERROR_MACHINE, "out of memory for %zu class names", K);
        }
    return TG_OK;
}

static tg_status open_network(const tg_engine_options *options, tg_engine *engine)
{
    const tg_network_request request = {.model = options->model,
                                        .shape = {.reg_tokens = -1, .num_classes = -1},
                                        .dtype = engine->dtype};
    if (!tg_network_is_path(options->model))
        return tg_fail(TG_ERROR_INPUT,
                       "model %s: there is no such file or folder; a model folder with trained "
                       "weights is needed",
                       options->model);
    TG_TRY(tg_network_open(&request, tg_kern_select(engine->stream), engine->stream,
                           &engine->network));
    return name_classes(&engine->network.info);
}

static tg_status reserve(tg_engine *engine)
{
    const tg_vit_config *config = &engine->network.info.config;
    size_t B = engine->batch_size, bytes;
    engine->input_floats = 3 * config->img_h * config->img_w;
    if (!tg_mul_size(B, engine->input_floats * sizeof(float), &bytes))
        return tg_fail(TG_ERROR_USAGE, "a batch of %zu photos does not fit into memory", B);
    TG_TRY(tg_arena_init(&engine->inputs, bytes, "inputs"));
    engine->input = tg_arena_alloc(&engine->inputs, bytes);
    engine->errors = calloc(B, sizeof *engine->errors);
    if (!engine->errors)
        return tg_fail(TG_ERROR_MACHINE, "out of memory for a batch of %zu photos", B);
    return tg_arena_init(&engine->step, tg_vit_step_bytes(config, B, engine->dtype, TG_VIT_INFER),
                         "activations");
}

tg_status tg_engine_open(const tg_engine_options *options, tg_engine **out)
{
    tg_status status;
    tg_engine *engine = calloc(1, sizeof *engine);
    if (!engine)
        return tg_fail(TG_ERROR_MACHINE, "out of memory");
    engine->batch_size = options->batch_size ? options->batch_size : 1;
    TG_TRY_GOTO(tg_stream_open_cpu(options->threads, options->cpu_cap, &engine->stream),
                close_engine);
    bool bf16 = options->dtype == TG_BF16 && tg_stream_has_bf16(engine->stream);
    if (options->dtype == TG_BF16 && !bf16)
        tg_log_info("this machine does not compute in bfloat16; float32 is used");
    engine->dtype = bf16 ? TG_BF16 : TG_F32;
    TG_TRY_GOTO(open_network(options, engine), close_engine);
    TG_TRY_GOTO(reserve(engine), close_engine);
    *out = engine;
    return TG_OK;
close_engine:
    tg_engine_close(engine);
    return status;
}

static void forget_errors(tg_engine *engine)
{
    for (size_t b = 0; engine->errors && b < engine->batch_size; b++) {
        free(engine->errors[b]);
        engine->errors[b] = NULL;
    }
}

void tg_engine_close(tg_engine *engine)
{
    if (!engine)
        return;
    forget_errors(engine);
    free(engine->errors);
    tg_network_close(&engine->network);
    tg_arena_done(&engine->step);
    tg_arena_done(&engine->inputs);
    tg_image_done(&engine->source);
    tg_image_done(&engine->pixels);
    tg_image_scratch_done(&engine->scratch);
    tg_stream_close(engine->stream);
    free(engine);
}

const tg_model_info *tg_engine_info(const tg_engine *engine)
{
    return &engine->network.info;
}

tg_status tg_engine_prepare_bytes(tg_engine *engine, size_t slot, const void *bytes, size_t count,
                                  const float **out_input)
{
    assert(slot < engine->batch_size);
    const tg_preprocess *preprocess = &engine->network.info.preprocess;
    float *input = engine->input + slot * engine->input_floats;
    tg_decode_options decode = tg_decode_options_default();
    decode.exif_orientation = preprocess->exif_orientation;
    TG_TRY(tg_image_decode(bytes, count, &decode, &engine->scratch, &engine->source, NULL));
    TG_TRY(
        tg_preprocess_image(preprocess, &engine->source, &engine->scratch, &engine->pixels, input));
    if (out_input)
        *out_input = input;
    return TG_OK;
}

tg_status tg_engine_prepare_file(tg_engine *engine, size_t slot, const char *path,
                                 const float **out_input)
{
    char *bytes;
    size_t count;
    TG_TRY(
        tg_file_read(path, tg_decode_options_default().max_bytes, &bytes, &count)); /* names it */
    tg_status status = count ? tg_engine_prepare_bytes(engine, slot, bytes, count, out_input)
                             : tg_fail(TG_ERROR_INPUT, "the file is empty");
    free(bytes);
    return status < 0 ? tg_fail_prefix(status, "%s", path) : TG_OK;
}

tg_status tg_engine_forward(tg_engine *engine, size_t B, tg_engine_output *out)
{
    assert(B <= engine->batch_size);
    const tg_vit_input input = {.B = B, .image = engine->input};
    tg_vit_output answer;
    TG_TRY(tg_stream_adopt(engine->stream));
    tg_arena_release(&engine->step, 0);
    TG_TRY(tg_vit_forward(engine->network.vit, &engine->step, &input, TG_VIT_INFER, &answer));
    *out = (tg_engine_output){.logits = answer.logits, .feature = answer.feature};
    return TG_OK;
}

/* Prepares the files of one batch into neighbouring slots; *out_B: how many could be. A bad photo
 * has no answer; a fault of the machine says nothing about the photo, and ends the run. */
static tg_status prepare_files(tg_engine *engine, const char *const *paths, size_t count,
                               size_t *out_B)
{
    size_t B = 0;
    for (size_t i = 0; i < count; i++) {
        tg_status status = tg_engine_prepare_file(engine, B, paths[i], NULL);
        if (status == TG_OK) {
            B++;
            continue;
        }
        if (status != TG_ERROR_INPUT)
            return status;
        engine->errors[i] = strdup(tg_error_message());
        if (!engine->errors[i])
            return tg_fail(TG_ERROR_MACHINE, "out of memory");
    }
    *out_B = B;
    return TG_OK;
}

static tg_status deliver(tg_engine *engine, size_t first, size_t count,
                         const tg_engine_output *output, tg_engine_receive receive, void *user)
{
    const tg_vit_config *config = &engine->network.info.config;
    size_t K = config->num_classes, C = config->embed_dim, b = 0;
    for (size_t i = 0; i < count; i++) {
        tg_engine_answer answer = {.index = first + i, .error = engine->errors[i]};
        if (!answer.error) {
            answer.logits = output->logits ? output->logits + b * K : NULL;
            answer.feature = output->feature + b * C;
            b++;
            if (!tg_scores_finite(answer.feature, C) ||
                (answer.logits && !tg_scores_finite(answer.logits, K)))
                answer = (tg_engine_answer){.index = first + i, .error = TG_ENGINE_NOT_FINITE};
        }
        TG_TRY(receive(user, &answer));
    }
    return TG_OK;
}

tg_status tg_engine_run_files(tg_engine *engine, const char *const *paths, size_t count,
                              tg_engine_receive receive, void *user)
{
    tg_status status = TG_OK;
    for (size_t first = 0; first < count && status == TG_OK; first += engine->batch_size) {
        size_t left = count - first, n = left < engine->batch_size ? left : engine->batch_size;
        size_t B = 0;
        tg_engine_output output = {0};
        status = prepare_files(engine, paths + first, n, &B);
        if (status == TG_OK && B)
            status = tg_engine_forward(engine, B, &output);
        if (status == TG_OK)
            status = deliver(engine, first, n, &output, receive, user);
        forget_errors(engine);
    }
    return status;
}
