#include "cli/options_infer.h"

#include "cli/signal.h"

const char *const tg_amp_dtype_names[] = {"bfloat16", "float32", NULL};

#define AT(field) offsetof(tg_infer_choice, field)
const tg_option tg_infer_option_table[TG_INFER_OPTION_COUNT] = {
    {.name = "model",
     .type = TG_OPTION_STRING,
     .offset = AT(model),
     .metavar = "MODEL",
     .help = "model folder, or .safetensors file beside its config.json",
     .flags = TG_OPTION_FILE},
    {.name = "batch-size",
     .letter = 'b',
     .type = TG_OPTION_INT,
     .offset = AT(batch_size),
     .initial = "16",
     .metavar = "N",
     .help = "photos computed at once",
     .low = 1,
     .high = 1 << 16},
    {.name = "amp",
     .type = TG_OPTION_BOOL,
     .offset = AT(amp),
     .help = "compute in --amp-dtype where the machine has it: faster, less exact"},
    {.name = "amp-dtype",
     .type = TG_OPTION_CHOICE,
     .offset = AT(amp_dtype),
     .initial = "bfloat16",
     .choices = tg_amp_dtype_names,
     .metavar = "TYPE",
     .help = "type of activations with --amp"},
};

tg_dtype tg_infer_choice_dtype(const tg_infer_choice *choice)
{
    return choice->amp && choice->amp_dtype == 0 ? TG_BF16 : TG_F32;
}

tg_status tg_infer_choice_check(const tg_infer_choice *choice)
{
    if (!choice->model)
        return tg_fail(TG_ERROR_USAGE, "no model given: --model FOLDER");
    return TG_OK;
}

tg_status tg_infer_choice_open(const tg_infer_choice *choice, const tg_invocation *invocation,
                               tg_engine **out)
{
    TG_TRY(tg_infer_choice_check(choice));
    const tg_engine_options options = {.model = choice->model,
                                       .threads = tg_invocation_threads(invocation),
                                       .cpu_cap = (tg_cpu_level)invocation->common->cpu_isa,
                                       .dtype = tg_infer_choice_dtype(choice),
                                       .batch_size = (size_t)choice->batch_size};
    return tg_engine_open(&options, out);
}

tg_status tg_infer_check_stop(void)
{
    return tg_signal_stop() ? tg_fail(TG_ERROR_STOPPED, "stopped by a signal") : TG_OK;
}
