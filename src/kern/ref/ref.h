/* ref.h - the parts of the reference table, one per contract header in kern/.
 *
 * Plain C on one thread; the stream is ignored. attention allocates a few rows per call. */
#ifndef TG_KERN_REF_REF_H
#define TG_KERN_REF_REF_H

#include "kern/kern.h"

/* The reference's weight: the matrix rounded to the compute dtype, and a row of scratch. */
struct tg_weight {
    size_t out_features, in_features;
    tg_dtype compute;
    bool fresh;  /* refreshed since it was made */
    float *w;    /* [out,in] */
    double *row; /* [in] scratch */
};

tg_status tg_ref_weight_new(tg_stream *stream, size_t out_features, size_t in_features,
                            tg_dtype compute, bool trainable, tg_weight **out);
void tg_ref_weight_free(tg_weight *weight);
size_t tg_ref_weight_bytes(size_t out_features, size_t in_features, tg_dtype compute,
                           bool trainable);
tg_status tg_ref_weight_refresh(tg_stream *stream, tg_weight *weight, const float *w);
tg_status tg_ref_linear_forward(tg_stream *stream, tg_weight *weight, size_t R, const void *x,
                                const float *bias, void *out_y, tg_dtype y_dtype);
tg_status tg_ref_linear_backward_input(tg_stream *stream, tg_weight *weight, size_t R,
                                       const void *dy, void *out_dx);
tg_status tg_ref_linear_backward_weight(tg_stream *stream, tg_weight *weight, size_t R,
                                        const void *x, const void *dy, float *dw, float *dbias,
                                        bool accumulate);
tg_status tg_ref_mlp_forward(tg_stream *stream, tg_weight *w1, tg_weight *w2,
                             const tg_mlp_forward *args);
tg_status tg_ref_mlp_backward(tg_stream *stream, tg_weight *w1, tg_weight *w2,
                              const tg_mlp_backward *args);
tg_status tg_ref_mlp_backward_weights(tg_stream *stream, tg_weight *w1, tg_weight *w2,
                                      const tg_mlp_weights *args);
void tg_ref_norm_forward(tg_stream *stream, const tg_norm_forward *args);
void tg_ref_norm_backward(tg_stream *stream, const tg_norm_backward *args);
void tg_ref_norm_gather(tg_stream *stream, const tg_norm_gather *args);
tg_status tg_ref_attention_forward(tg_stream *stream, const tg_attention_shape *s, const void *qkv,
                                   void *out_o, float *out_lse);
tg_status tg_ref_attention_backward(tg_stream *stream, const tg_attention_shape *s, const void *qkv,
                                    const void *o, const float *lse, const void *d_o,
                                    void *out_dqkv);
void tg_ref_patch_forward(tg_stream *stream, const tg_patch_shape *s, const float *image,
                          void *out_patches);
void tg_ref_tokens_assemble(tg_stream *stream, const tg_tokens_shape *s, const void *patch,
                            const float *prefix, const float *pos, float *out_x);
void tg_ref_tokens_assemble_backward(tg_stream *stream, const tg_tokens_shape *s, const float *dx,
                                     void *out_dpatch, float *dprefix, float *dpos,
                                     bool accumulate);
void tg_ref_tokens_mean(tg_stream *stream, size_t B, size_t T, size_t C, size_t first,
                        const float *x, float *out_mean);
void tg_ref_tokens_mean_backward(tg_stream *stream, size_t B, size_t T, size_t C, size_t first,
                                 const float *d_out, float *dres, bool dres_zero);
void tg_ref_tokens_from_f32(tg_stream *stream, size_t n, const float *x, tg_dtype dtype, void *out);
void tg_ref_tokens_to_f32(tg_stream *stream, size_t n, const void *x, tg_dtype dtype, float *out);
void tg_ref_loss_cross_entropy(tg_stream *stream, size_t B, size_t K, const float *logits,
                               const float *target, float weight, float *out_loss,
                               float *out_dlogits, bool accumulate);
void tg_ref_loss_kl(tg_stream *stream, size_t B, size_t K, const float *student,
                    const float *teacher, float temperature, float weight, float *out_loss,
                    float *out_dlogits, bool accumulate);
void tg_ref_loss_squared_error(tg_stream *stream, size_t B, size_t K, const float *x,
                               const float *y, float weight, float *out_loss, float *out_dx,
                               bool accumulate);
void tg_ref_optim_adamw(tg_stream *stream, size_t n, float *p, const float *g, float *m, float *v,
                        const tg_adamw *hyper);
double tg_ref_optim_sum_squares(tg_stream *stream, size_t n, const float *x);
void tg_ref_optim_average(tg_stream *stream, size_t n, float *e, const float *p, float decay);

#endif
