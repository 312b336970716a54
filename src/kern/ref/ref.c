#include "kern/ref/ref.h"

static const tg_kern table = {
    .name = "ref",
    .linear =
        {
            .weight_new = tg_ref_weight_new,
            .weight_free = tg_ref_weight_free,
            .weight_bytes = tg_ref_weight_bytes,
            .weight_refresh = tg_ref_weight_refresh,
            .forward = tg_ref_linear_forward,
            .backward_input = tg_ref_linear_backward_input,
            .backward_weight = tg_ref_linear_backward_weight,
        },
    .mlp =
        {
            .forward = tg_ref_mlp_forward,
            .backward = tg_ref_mlp_backward,
            .backward_weights = tg_ref_mlp_backward_weights,
        },
    .norm =
        {
            .forward = tg_ref_norm_forward,
            .backward = tg_ref_norm_backward,
            .gather = tg_ref_norm_gather,
        },
    .attention =
        {
            .forward = tg_ref_attention_forward,
            .backward = tg_ref_attention_backward,
        },
    .patch =
        {
            .forward = tg_ref_patch_forward,
        },
    .tokens =
        {
            .assemble = tg_ref_tokens_assemble,
            .assemble_backward = tg_ref_tokens_assemble_backward,
            .mean = tg_ref_tokens_mean,
            .mean_backward = tg_ref_tokens_mean_backward,
            .from_f32 = tg_ref_tokens_from_f32,
            .to_f32 = tg_ref_tokens_to_f32,
        },
    .loss =
        {
            .cross_entropy = tg_ref_loss_cross_entropy,
            .kl = tg_ref_loss_kl,
            .squared_error = tg_ref_loss_squared_error,
        },
    .optim =
        {
            .adamw = tg_ref_optim_adamw,
            .sum_squares = tg_ref_optim_sum_squares,
            .average = tg_ref_optim_average,
        },
};

const tg_kern *tg_kern_ref(void)
{
    return &table;
}
