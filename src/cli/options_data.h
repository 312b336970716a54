/* options_data.h - the options that name photos and their splits, and opening what they name.
 *
 * They fill a tg_data_choice (train/options.h).
 * --data DIR with --train-split and --val-split as folder names below it ("train+more"); when --val-split
 * is a number in (0,1), that share of the training split is held out. DIR without a folder "train" is one
 * folder of classes.
 */
#ifndef TG_CLI_OPTIONS_DATA_H
#define TG_CLI_OPTIONS_DATA_H

#include "base/option.h"
#include "data/dataset.h"
#include "train/options.h"

#include <stdbool.h>

enum { TG_DATA_OPTION_COUNT = 3 };
extern const tg_option tg_data_option_table[TG_DATA_OPTION_COUNT];

/* For a command that scores one split: --data and --val-split alone. */
enum { TG_SCORED_OPTION_COUNT = 2 };
extern const tg_option tg_scored_option_table[TG_SCORED_OPTION_COUNT];

typedef enum tg_data_part { TG_DATA_TRAIN, TG_DATA_VAL } tg_data_part;

/* Opens one part. `seed` decides a cut share; class_names (NULL: made from this part) rule. */
tg_status tg_data_choice_open(const tg_data_choice *choice, tg_data_part part, uint64_t seed,
                              const char *const *class_names, size_t class_count,
                              tg_dataset *out) TG_MUST_CHECK;
/* Both parts under the training part's class list; *out_val stays empty when there is no validation
 * part. Both must be zeroed; the caller ends both also after an error. */
tg_status tg_data_choice_open_both(const tg_data_choice *choice, uint64_t seed,
                                   tg_dataset *out_train, tg_dataset *out_val) TG_MUST_CHECK;
/* False for "none", and for the usual "val" where DIR has no such folder; anything else was asked
 * for, and opening it says what is missing. */
bool tg_data_choice_has_val(const tg_data_choice *choice);
/* For a command that reads the training part alone: TG_ERROR_USAGE for a --val-split that names a
 * split other than the usual "val". */
tg_status tg_data_choice_refuse_val(const tg_data_choice *choice) TG_MUST_CHECK;

#endif
