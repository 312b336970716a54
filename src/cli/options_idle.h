/* options_idle.h - options of training that were given and have no effect beside the others.
 *
 * One warning a line for each, in the log: "--model-ema-decay has no effect without --model-ema". An option
 * counts as given when it stands on the command line, or in a settings file with a value other than its
 * default (job.yaml names them all).
 */
#ifndef TG_CLI_OPTIONS_IDLE_H
#define TG_CLI_OPTIONS_IDLE_H

#include "base/option.h"
#include "cli/options_train.h"

/* `settings`: as parsed, before tg_train_settings_resolve. */
void tg_train_settings_warn_idle(const tg_options *options, const tg_train_settings *settings);

#endif
