/* options_infer.h - the options that name a trained model and how it is computed, for eval, predict
 * and embed. */
#ifndef TG_CLI_OPTIONS_INFER_H
#define TG_CLI_OPTIONS_INFER_H

#include "base/option.h"
#include "cli/command.h"
#include "infer/engine.h"

#include <stdbool.h>

typedef struct tg_infer_choice {
    const char *model;
    int64_t batch_size;
    bool amp;
    int amp_dtype; /* bfloat16, float32 */
} tg_infer_choice;

enum { TG_INFER_OPTION_COUNT = 4 };
extern const tg_option tg_infer_option_table[TG_INFER_OPTION_COUNT];
/* "bfloat16", "float32", NULL: choices of --amp-dtype. */
extern const char *const tg_amp_dtype_names[];

/* The type asked for. */
tg_dtype tg_infer_choice_dtype(const tg_infer_choice *choice);
/* TG_ERROR_USAGE when no model was given. */
tg_status tg_infer_choice_check(const tg_infer_choice *choice) TG_MUST_CHECK;
tg_status tg_infer_choice_open(const tg_infer_choice *choice, const tg_invocation *invocation,
                               tg_engine **out) TG_MUST_CHECK;
/* TG_ERROR_STOPPED once a signal asked to stop. */
tg_status tg_infer_check_stop(void) TG_MUST_CHECK;

#endif
