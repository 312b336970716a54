/* options_model.h - the options that name a model and change its shape, for every command that
 * takes one. They fill a tg_model_choice (train/options.h). */
#ifndef TG_CLI_OPTIONS_MODEL_H
#define TG_CLI_OPTIONS_MODEL_H

#include "base/option.h"
#include "train/options.h"

enum { TG_MODEL_OPTION_COUNT = 9 };
extern const tg_option tg_model_option_table[TG_MODEL_OPTION_COUNT];

/* The shape that the model (a name, or what its config.json says) and the overrides give. */
tg_status tg_model_choice_config(const tg_model_choice *choice, tg_vit_config *out) TG_MUST_CHECK;

#endif
