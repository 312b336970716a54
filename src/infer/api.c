#include "infer/engine.h"
#include "infer/scores.h"
#include "os/cpu.h"
#include "tagine/tagine.h"

#include <stdlib.h>

struct tagine_predictor {
    tg_engine *engine;
    float *scores; /* [K] */
    size_t *best;  /* [K] */
};

static tagine_status public_status(tg_status status)
{
    return (tagine_status)tg_status_exit_code(status);
}

static int share_of_cores(void)
{
    tg_cpu_share share;
    tg_cpu_share_read("", 0, 0, &share);
    return share.cpus < tg_dev_thread_limit() ? share.cpus : tg_dev_thread_limit();
}

static tg_status open_predictor(const char *model, const tagine_options *options,
                                tagine_predictor *predictor)
{
    if (options && options->threads < 0)
        return tg_fail(TG_ERROR_USAGE, "%d threads: 0 or more are needed", options->threads);
    int threads = options ? options->threads : 0;
    const tg_engine_options engine = {.model = model,
                                      .threads = threads ? threads : share_of_cores(),
                                      .cpu_cap = TG_CPU_AMX,
                                      .dtype = options && options->bfloat16 ? TG_BF16 : TG_F32};
    TG_TRY(tg_engine_open(&engine, &predictor->engine));
    size_t K = tg_engine_info(predictor->engine)->config.num_classes;
    if (K == 0)
        return tg_fail(TG_ERROR_INPUT, "%s: the model has no classes, only features", model);
    predictor->scores = calloc(K, sizeof *predictor->scores);
    predictor->best = calloc(K, sizeof *predictor->best);
    if (!predictor->scores || !predictor->best)
        return tg_fail(TG_ERROR_MACHINE, "out of memory for %zu scores", K);
    return TG_OK;
}

tagine_status tagine_predictor_open(const char *model, const tagine_options *options,
                                    tagine_predictor **out)
{
    if (!model || !out)
        return public_status(tg_fail(TG_ERROR_USAGE, "%s is NULL", model ? "out" : "model"));
    tagine_predictor *predictor = calloc(1, sizeof *predictor);
    if (!predictor)
        return public_status(tg_fail(TG_ERROR_MACHINE, "out of memory"));
    tg_caller_mode caller;
    tg_caller_mode_enter(&caller);
    tg_status status = open_predictor(model, options, predictor);
    tg_caller_mode_leave(&caller);
    if (status < 0) {
        tagine_predictor_close(predictor);
        return public_status(status);
    }
    *out = predictor;
    return TAGINE_OK;
}

void tagine_predictor_close(tagine_predictor *predictor)
{
    if (!predictor)
        return;
    tg_engine_close(predictor->engine);
    free(predictor->scores);
    free(predictor->best);
    free(predictor);
}

size_t tagine_class_count(const tagine_predictor *predictor)
{
    return predictor ? tg_engine_info(predictor->engine)->config.num_classes : 0;
}

const char *tagine_class_name(const tagine_predictor *predictor, size_t class_index)
{
    return class_index < tagine_class_count(predictor)
               ? tg_engine_info(predictor->engine)->class_names[class_index]
               : NULL;
}

/* Of the photo in slot 0. */
static tg_status answer(tagine_predictor *predictor, size_t top, tagine_prediction *out,
                        size_t *out_count)
{
    size_t K = tagine_class_count(predictor);
    tg_engine_output output;
    TG_TRY(tg_engine_forward(predictor->engine, 1, &output));
    if (!tg_scores_finite(output.logits, K))
        return tg_fail(TG_ERROR_INPUT, TG_ENGINE_NOT_FINITE);
    tg_scores_softmax(output.logits, K, predictor->scores);
    size_t count = tg_scores_top(output.logits, K, top, predictor->best);
    for (size_t i = 0; i < count; i++) {
        size_t k = predictor->best[i];
        out[i] = (tagine_prediction){.class_index = k,
                                     .class_name = tagine_class_name(predictor, k),
                                     .score = predictor->scores[k]};
    }
    *out_count = count;
    return TG_OK;
}

static tg_status check_request(const tagine_predictor *predictor, const void *photo,
                               const char *photo_name, size_t top, const tagine_prediction *out,
                               const size_t *out_count)
{
    const char *missing = !predictor        ? "predictor"
                          : !photo          ? photo_name
                          : !out && top > 0 ? "out"
                          : !out_count      ? "out_count"
                                            : NULL;
    return missing ? tg_fail(TG_ERROR_USAGE, "%s is NULL", missing) : TG_OK;
}

tagine_status tagine_predict_file(tagine_predictor *predictor, const char *path, size_t top,
                                  tagine_prediction *out, size_t *out_count)
{
    tg_status status = check_request(predictor, path, "path", top, out, out_count);
    if (status < 0)
        return public_status(status);
    tg_caller_mode caller;
    tg_caller_mode_enter(&caller);
    status = tg_engine_prepare_file(predictor->engine, 0, path, NULL);
    if (status == TG_OK)
        status = answer(predictor, top, out, out_count);
    tg_caller_mode_leave(&caller);
    return public_status(status);
}

tagine_status tagine_predict_bytes(tagine_predictor *predictor, const void *bytes,
                                   size_t byte_count, size_t top, tagine_prediction *out,
                                   size_t *out_count)
{
    tg_status status = check_request(predictor, bytes, "bytes", top, out, out_count);
    if (status < 0)
        return public_status(status);
    tg_caller_mode caller;
    tg_caller_mode_enter(&caller);
    status = tg_engine_prepare_bytes(predictor->engine, 0, bytes, byte_count, NULL);
    if (status == TG_OK)
        status = answer(predictor, top, out, out_count);
    tg_caller_mode_leave(&caller);
    return public_status(status);
}

const char *tagine_error(void)
{
    return tg_error_message();
}
