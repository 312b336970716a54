/* option.h - the option table: one description of a command's settings, used for the command line,
 * the YAML file, --help, --print-config, shell completion and man pages.
 *
 * A command lists groups; a group lists options and the struct they are stored in. Each option says
 * its name, type, default and help, and where in the struct its value goes:
 *
 *   type              field             command line                         YAML
 *   TG_OPTION_BOOL    bool              --amp, --no-amp, --amp=false         amp: true
 *   TG_OPTION_INT     int64_t           --epochs 5, --epochs=5               epochs: 5
 *   TG_OPTION_DOUBLE  double            --lr 1e-3                            lr: 0.001
 *   TG_OPTION_STRING  const char *      --output DIR (NULL when unset)       output: runs/a
 *   TG_OPTION_CHOICE  int               --opt adamw (index into choices)     opt: adamw
 *   TG_OPTION_DOUBLES tg_option_doubles --mean 0.5 0.5 0.5, --mean 0.5,0.5   mean: [0.5, 0.5, 0.5]
 *
 * Numbers behind "=" have commas between: --mean=0.5 0.5 is refused with the two ways to write it.
 * One letter stands behind one dash: -j 4, -j4; switches also together: -qv.
 * Names may be written with '_' for '-'. "--" ends the options. An option given twice takes the
 * last value. A value that itself begins with "--" is written --name=VALUE. The command line wins
 * over the file wherever --config stands. Numbers are read under the C locale. An INT with flag
 * TG_OPTION_AUTO also takes "auto" (stored as TG_OPTION_AUTO_VALUE); a DOUBLE without default is
 * NAN until set, an INT without default is 0.
 *
 * States  tg_options_init (defaults are stored) -> parse_arguments -> parse_yaml -> ... -> done.
 * Errors  TG_ERROR_USAGE with the option, the value and what is allowed, and for an unknown name
 * the nearest one; the same from a YAML file with file, line and column. Memory  tables and argv
 * are borrowed; strings stored in the structs are owned by tg_options and live until
 * tg_options_done. Threads: one at a time.
 */
#ifndef TG_BASE_OPTION_H
#define TG_BASE_OPTION_H

#include "base/status.h"
#include "base/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum tg_option_type {
    TG_OPTION_BOOL,
    TG_OPTION_INT,
    TG_OPTION_DOUBLE,
    TG_OPTION_STRING,
    TG_OPTION_CHOICE,
    TG_OPTION_DOUBLES
} tg_option_type;

enum {
    TG_OPTION_AUTO = 1,      /* an INT that may be "auto" */
    TG_OPTION_FILE = 2,      /* a STRING that names a file: for completion; "" is refused */
    TG_OPTION_FOLDER = 4,    /* a STRING that names a folder, likewise */
    TG_OPTION_NO_CONFIG = 8, /* only on the command line, never in YAML: --config, --print-config */
    TG_OPTION_ARCHITECTURE =
        32, /* a FILE that may also be the name of an architecture: for completion */
    TG_OPTION_SOFT_LOW = 16, /* the value must be above `low`, not equal */
};

#define TG_OPTION_AUTO_VALUE INT64_C(-1)
#define TG_OPTION_DOUBLES_MAX 8

typedef struct tg_option_doubles {
    double values[TG_OPTION_DOUBLES_MAX];
    size_t count; /* 0: not given */
} tg_option_doubles;

typedef struct tg_option {
    const char *name; /* "batch-size" */
    char letter;      /* "-b", or 0 */
    tg_option_type type;
    size_t offset;              /* of the field in the group's struct */
    const char *initial;        /* default as it would be typed, or NULL */
    const char *metavar;        /* "N", "DIR"; not for BOOL */
    const char *help;           /* one sentence, no full stop; starts in lower case */
    const char *const *choices; /* CHOICE: names, NULL-terminated */
    double low, high;           /* numbers: allowed range when low < high */
    unsigned flags;
} tg_option;

typedef struct tg_option_group {
    const char *title; /* heading in --help */
    const tg_option *options;
    size_t count;
    void *target; /* the struct; NULL in tables that are only shown */
} tg_option_group;

/* Where an option's value came from. */
typedef enum tg_option_source {
    TG_OPTION_FROM_DEFAULT,
    TG_OPTION_FROM_FILE,
    TG_OPTION_FROM_ARGUMENTS
} tg_option_source;

typedef struct tg_options {
    const tg_option_group *groups; /* borrowed */
    size_t group_count;
    const char **positionals; /* arguments that are no options, in order */
    size_t positional_count;
    struct tg_option_entry *entries; /* one for each option */
    size_t entry_count;
    char **strings; /* owned texts */
    size_t string_count;
} tg_options;

/* Stores every default. A default that its own option refuses is an assert (our bug). */
tg_status tg_options_init(tg_options *options, const tg_option_group *groups,
                          size_t group_count) TG_MUST_CHECK;
void tg_options_done(tg_options *options);

/* argv[0 .. count): what follows the command's name. */
tg_status tg_options_parse_arguments(tg_options *options, int count,
                                     const char *const *argv) TG_MUST_CHECK;
/* The text of a YAML map of options; keys already set by arguments keep those. `name` for
 * messages. */
tg_status tg_options_parse_yaml(tg_options *options, const char *bytes, size_t length,
                                const char *name) TG_MUST_CHECK;

/* How the value of `name` was set; TG_OPTION_FROM_DEFAULT for an unknown name. */
tg_option_source tg_options_source(const tg_options *options, const char *name);

/* Whether somebody asked for the value of `name`: on the command line, or in a file with another value than
 * the default. */
bool tg_options_given(const tg_options *options, const char *name);

/* Columns that --help keeps to. */
enum { TG_HELP_WIDTH = 80 };
/* Appends the options part of --help. */
void tg_options_help(const tg_option_group *groups, size_t group_count, tg_text *out);
/* Appends every option as YAML that parse_yaml reads back to the same values; unset ones as
 * comments. This is job.yaml and the answer to --print-config. */
void tg_options_print(const tg_options *options, tg_text *out);
/* "--batch-size N" as usage shows it (for help and man pages). */
void tg_option_usage(const tg_option *option, tg_text *out);

#endif
