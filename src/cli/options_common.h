/* options_common.h - the options that commands share: every command has the common ones, those that
 * compute also the first, or both, of the compute ones (tg_command_work). */
#ifndef TG_CLI_OPTIONS_COMMON_H
#define TG_CLI_OPTIONS_COMMON_H

#include "base/option.h"
#include "dev/dev.h"

typedef struct tg_common_options {
    const char *config; /* YAML file, or NULL */
    bool print_config, json, quiet, verbose, help;
    int64_t threads; /* TG_OPTION_AUTO_VALUE: this process's share of the cores */
    int cpu_isa;     /* highest tg_cpu_level to use */
} tg_common_options;

enum { TG_COMPUTE_OPTION_COUNT = 2 };
/* --threads, --cpu-isa: in tg_common_options as well. */
extern const tg_option tg_compute_option_table[TG_COMPUTE_OPTION_COUNT];
extern const tg_option tg_common_option_table[];
extern const size_t tg_common_option_count;

#endif
