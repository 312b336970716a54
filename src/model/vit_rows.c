#include "model/vit_state.h"

/* Rows of the smallest part of a thread: with parameter gradients to sum, a chunk of those. */
enum { GRAIN_INFER = 32, GRAIN_TRAIN = TG_NORM_CHUNK };

typedef struct stage {
    tg_vit *vit;
    tg_vit_span_body body;
    void *user;
} stage;

static tg_status run_part(tg_stream *stream, size_t begin, size_t end, void *user)
{
    const stage *s = user;
    const size_t most = s->vit->kern->span_rows ? s->vit->kern->span_rows : end - begin;
    for (size_t first = begin; first < end; first += most) {
        const tg_vit_span span = {.stream = stream,
                                  .first = first,
                                  .rows = end - first < most ? end - first : most,
                                  .scratch = begin};
        TG_TRY(s->body(s->vit, &span, s->user));
    }
    return TG_OK;
}

tg_status tg_vit_row_wise(tg_vit *vit, size_t R, tg_vit_span_body body, void *user)
{
    const size_t grain = vit->tape.mode == TG_VIT_TRAIN ? GRAIN_TRAIN : GRAIN_INFER;
    stage s = {vit, body, user};
    /* too few rows to share: the threads share each operation instead */
    if (vit->stream && R < grain * (size_t)tg_stream_threads(vit->stream))
        return run_part(vit->stream, 0, R, &s);
    return tg_stream_share(vit->stream, R, grain, run_part, &s);
}
