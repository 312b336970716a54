#include "cli/commands.h"

#include <string.h>

static const tg_command *const COMMANDS[] = {
    /* clang-format off */ /* one a line */
    &tg_command_train,
    &tg_command_distill,
    &tg_command_eval,
    &tg_command_predict,
    &tg_command_embed,
    &tg_command_data_check,
    &tg_command_data_stats,
    &tg_command_data_synth,
    &tg_command_plan,
    &tg_command_tune_train,
    &tg_command_tune_distill,
    &tg_command_bench_train,
    &tg_command_bench_distill,
    &tg_command_bench_infer,
    &tg_command_bench_loader,
    &tg_command_bench_comm,
    &tg_command_profile,
    &tg_command_diagnose,
    &tg_command_report,
    &tg_command_compare,
    &tg_command_watch,
    &tg_command_metrics,
    &tg_command_monitor,
    &tg_command_completion,
    &tg_command_man,
    /* clang-format on */
};

const tg_command *const *tg_commands(size_t *out_count)
{
    *out_count = TG_COUNT_OF(COMMANDS);
    return COMMANDS;
}

const tg_command *tg_command_find(const char *name)
{
    for (size_t i = 0; i < TG_COUNT_OF(COMMANDS); i++)
        if (strcmp(COMMANDS[i]->name, name) == 0)
            return COMMANDS[i];
    return NULL;
}

/* How many options of tg_compute_option_table a command has. */
static size_t compute_options(const tg_command *command)
{
    static const size_t COUNTS[] = {[TG_COMMAND_COMPUTES] = TG_COMPUTE_OPTION_COUNT,
                                    [TG_COMMAND_THREADS] = 1,
                                    [TG_COMMAND_PRINTS] = 0};
    return COUNTS[command->work];
}

size_t tg_command_groups(const tg_command *command, void *settings, tg_common_options *common,
                         tg_option_group out[TG_COMMAND_GROUPS_MAX])
{
    size_t count = 0;
    for (; count < command->group_count && count < TG_COMMAND_GROUPS_MAX - 2; count++) {
        const tg_command_group *group = &command->groups[count];
        out[count] =
            (tg_option_group){.title = group->title,
                              .options = group->options,
                              .count = group->count,
                              .target = settings ? (char *)settings + group->offset : NULL};
    }
    if (compute_options(command))
        out[count++] = (tg_option_group){.title = "Computing",
                                         .options = tg_compute_option_table,
                                         .count = compute_options(command),
                                         .target = common};
    out[count++] = (tg_option_group){.title = "Common",
                                     .options = tg_common_option_table,
                                     .count = tg_common_option_count,
                                     .target = common};
    return count;
}
