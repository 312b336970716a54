#include "cli/options_common.h"

/* In the order of tg_cpu_level, so that the index is the level. */
static const char *const ISA_NAMES[] = {"portable", "avx2", "avx512", "avx512_bf16", "amx", NULL};
_Static_assert(sizeof ISA_NAMES / sizeof ISA_NAMES[0] == TG_CPU_LEVEL_COUNT + 1, "a name a level");

#define AT(field) offsetof(tg_common_options, field)
const tg_option tg_compute_option_table[TG_COMPUTE_OPTION_COUNT] = {
    {.name = "threads",
     .type = TG_OPTION_INT,
     .offset = AT(threads),
     .initial = "auto",
     .metavar = "N|auto",
     .help = "compute threads; auto: the cores this process may use (affinity, cgroup, Slurm)",
     .low = 1,
     .high = 4096,
     .flags = TG_OPTION_AUTO},
    {.name = "cpu-isa",
     .type = TG_OPTION_CHOICE,
     .offset = AT(cpu_isa),
     .initial = "amx",
     .choices = ISA_NAMES,
     .metavar = "LEVEL",
     .help = "highest instruction set to use, if the machine has it"},
};

const tg_option tg_common_option_table[] = {
    {.name = "config",
     .type = TG_OPTION_STRING,
     .offset = AT(config),
     .metavar = "FILE",
     .help = "read options from a YAML file; the command line wins",
     .flags = TG_OPTION_FILE | TG_OPTION_NO_CONFIG},
    {.name = "print-config",
     .type = TG_OPTION_BOOL,
     .offset = AT(print_config),
     .help = "print every option as resolved, as YAML, and leave",
     .flags = TG_OPTION_NO_CONFIG},
    {.name = "json",
     .type = TG_OPTION_BOOL,
     .offset = AT(json),
     .help = "machine-readable output, one JSON object a line"},
    {.name = "quiet",
     .letter = 'q',
     .type = TG_OPTION_BOOL,
     .offset = AT(quiet),
     .help = "no log and no progress, only results and errors"},
    {.name = "verbose",
     .letter = 'v',
     .type = TG_OPTION_BOOL,
     .offset = AT(verbose),
     .help = "log details too"},
    {.name = "help",
     .letter = 'h',
     .type = TG_OPTION_BOOL,
     .offset = AT(help),
     .help = "show this help and leave",
     .flags = TG_OPTION_NO_CONFIG},
};
const size_t tg_common_option_count =
    sizeof tg_common_option_table / sizeof tg_common_option_table[0];
