#include "kern/cpu/entries.h"

static const tg_kern table = {
    .name = "cpu",
    .span_rows = 256,
    .linear =
        {
            .weight_new = tg_cpu_weight_new,
            .weight_free = tg_cpu_weight_free,
            .weight_bytes = tg_cpu_weight_bytes,
            .weight_refresh = tg_cpu_weight_refresh,
            .forward = tg_cpu_linear_forward,
            .backward_input = tg_cpu_linear_backward_input,
            .backward_weight = tg_cpu_linear_backward_weight,
        },
    .mlp =
        {
            .forward = tg_cpu_mlp_forward,
            .backward = tg_cpu_mlp_backward,
            .backward_weights = tg_cpu_mlp_backward_weights,
        },
    .norm =
        {
            .forward = tg_cpu_norm_forward,
            .backward = tg_cpu_norm_backward,
            .gather = tg_cpu_norm_gather,
        },
    .attention =
        {
            .forward = tg_cpu_attention_forward,
            .backward = tg_cpu_attention_backward,
        },
    .patch =
        {
            .forward = tg_cpu_patch_forward,
        },
    .tokens =
        {
            .assemble = tg_cpu_tokens_assemble,
            .assemble_backward = tg_cpu_tokens_assemble_backward,
            .mean = tg_cpu_tokens_mean,
            .mean_backward = tg_cpu_tokens_mean_backward,
            .from_f32 = tg_cpu_tokens_from_f32,
            .to_f32 = tg_cpu_tokens_to_f32,
        },
    .loss =
        {
            .cross_entropy = tg_cpu_loss_cross_entropy,
            .kl = tg_cpu_loss_kl,
            .squared_error = tg_cpu_loss_squared_error,
        },
    .optim =
        {
            .adamw = tg_cpu_optim_adamw,
            .sum_squares = tg_cpu_optim_sum_squares,
            .average = tg_cpu_optim_average,
        },
};

const tg_kern *tg_kern_select(const tg_stream *stream)
{
    (void)stream; /* one table: every entry looks at the stream's level itself */
    return &table;
}
