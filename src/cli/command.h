/* command.h - what a command of the program is, and how it is called.
 *
 * Each command is one constant tg_command in its own file, listed in commands.c. Its groups say
 * where in the command's settings struct their options go; main.c allocates that struct, fills it
 * from defaults, --config file and arguments, and calls run. The common options (options_common.h)
 * are added to every command.
 *
 * run returns a status; main.c prints the recorded message and turns it into the exit code, and a
 * TG_ERROR_STOPPED into 128 + the signal. Results go to standard output through console.h; nothing
 * else is printed there.
 */
#ifndef TG_CLI_COMMAND_H
#define TG_CLI_COMMAND_H

#include "base/option.h"
#include "base/status.h"
#include "cli/options_common.h"
#include "os/cpu.h"

#include <stddef.h>

typedef struct tg_command_group {
    const char *title;
    const tg_option *options;
    size_t count;
    size_t offset; /* of the group's struct inside the settings struct */
} tg_command_group;

/* A line to be typed or a file, and what it is good for. */
typedef struct tg_command_note {
    const char *what; /* "tagine plan --amp", "OUTPUT/run.json" */
    const char *why;  /* a few words without full stop */
} tg_command_note;

/* What of the machine a command's time depends on; it decides which common options it has. */
typedef enum tg_command_work {
    TG_COMMAND_COMPUTES, /* --threads and --cpu-isa */
    TG_COMMAND_THREADS,  /* --threads */
    TG_COMMAND_PRINTS    /* neither */
} tg_command_work;

typedef struct tg_invocation tg_invocation;

typedef struct tg_command {
    const char *name;        /* "train", "data check" */
    const char *arguments;   /* what stands behind the options: "FILE...", or "" */
    const char *summary;     /* one line without full stop */
    const char *description; /* paragraphs for --help and the man page, split by blank lines */
    const tg_command_note *examples; /* lines that run as they stand, in the order of the commands;
                                        ended by an empty one, or NULL */
    const tg_command_note *files;    /* for the man page, likewise */
    const char *see_also; /* "eval, data stats"; those of its family need no word. NULL: none */
    tg_command_work work;
    const tg_command_group *groups;
    size_t group_count;
    size_t settings_bytes;
    size_t arguments_min, arguments_max; /* how many arguments that are no options */
    tg_status (*run)(const tg_invocation *invocation);
} tg_command;

struct tg_invocation {
    const tg_command *command;
    const tg_common_options *common;
    const void *settings;         /* the command's struct */
    const char *const *arguments; /* those that are no options, in order */
    size_t argument_count;
    const tg_options *options; /* for tg_options_print (job.yaml) and tg_options_source */
};

/* Every command, in the order of --help; *out_count of them. */
const tg_command *const *tg_commands(size_t *out_count);
/* The command called exactly `name`, or NULL. */
const tg_command *tg_command_find(const char *name);

enum { TG_COMMAND_GROUPS_MAX = 16 };
/* The option groups of a command with those it shares with others last, for help, completion and man pages.
 * settings and common may be NULL there. Returns how many were written. */
size_t tg_command_groups(const tg_command *command, void *settings, tg_common_options *common,
                         tg_option_group out[TG_COMMAND_GROUPS_MAX]);

/* The text of `tagine COMMAND --help` and of `tagine --help`. */
void tg_command_help(const tg_command *command, tg_text *out);
void tg_program_help(tg_text *out);

/* This process's share of the machine, a scheduler's word included. */
void tg_invocation_share(tg_cpu_share *out);
/* Compute threads for this run: --threads, or this process's share of the machine's cores. */
int tg_invocation_threads(const tg_invocation *invocation);

#define TG_PROGRAM_VERSION "0.1.0"
#define TG_COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

#endif
