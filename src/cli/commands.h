/* commands.h - one constant for each command; its file has the same name, or the first word of it. */
#ifndef TG_CLI_COMMANDS_H
#define TG_CLI_COMMANDS_H

#include "cli/command.h"

extern const tg_command tg_command_train;
extern const tg_command tg_command_distill;
extern const tg_command tg_command_eval;
extern const tg_command tg_command_predict;
extern const tg_command tg_command_embed;
extern const tg_command tg_command_data_check;
extern const tg_command tg_command_data_stats;
extern const tg_command tg_command_data_synth;
extern const tg_command tg_command_plan;
extern const tg_command tg_command_tune_train;
extern const tg_command tg_command_tune_distill;
extern const tg_command tg_command_bench_train;
extern const tg_command tg_command_bench_distill;
extern const tg_command tg_command_bench_infer;
extern const tg_command tg_command_bench_loader;
extern const tg_command tg_command_bench_comm;
extern const tg_command tg_command_diagnose;
extern const tg_command tg_command_report;
extern const tg_command tg_command_compare;
extern const tg_command tg_command_watch;
extern const tg_command tg_command_monitor;
extern const tg_command tg_command_metrics;
extern const tg_command tg_command_profile;
extern const tg_command tg_command_completion;
extern const tg_command tg_command_man;

#endif
