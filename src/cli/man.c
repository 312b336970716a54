/* tagine man [COMMAND]: the manual page in roff, made from the same tables as --help. */
#include "cli/commands.h"
#include "cli/console.h"
#include "os/file.h"
#include "os/folder.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct man_settings {
    const char *all; /* folder, or NULL */
} man_settings;

static const tg_option OPTIONS[] = {
    {.name = "all",
     .type = TG_OPTION_STRING,
     .offset = offsetof(man_settings, all),
     .metavar = "DIR",
     .help = "write every page into this folder",
     .flags = TG_OPTION_FOLDER},
};

static const tg_command_group GROUPS[] = {{"Output", OPTIONS, TG_COUNT_OF(OPTIONS), 0}};

/* A leading dot or quote would be a request; a dash is typed, so it has to stay one. */
static void append_roff(tg_text *out, const char *text)
{
    bool line_start = out->length == 0 || out->data[out->length - 1] == '\n';
    for (; *text; text++) {
        if (line_start && (*text == '.' || *text == '\''))
            tg_text_append_string(out, "\\&");
        if (*text == '\\')
            tg_text_append_string(out, "\\e");
        else if (*text == '-')
            tg_text_append_string(out, "\\-");
        else
            tg_text_append_char(out, *text);
        line_start = *text == '\n';
    }
}

static void append_paragraphs(tg_text *out, const char *text)
{
    for (const char *at = text; *at;) {
        const char *end = strstr(at, "\n\n");
        size_t length = end ? (size_t)(end - at) : strlen(at);
        tg_text part = {0};
        tg_text_append(&part, at, length);
        tg_text_append_string(out, at == text ? "" : ".PP\n");
        append_roff(out, tg_text_string(&part));
        tg_text_append_char(out, '\n');
        tg_text_done(&part);
        at += length + (end ? 2 : 0);
    }
}

static void append_option(tg_text *out, const tg_option *option)
{
    tg_text usage = {0};
    tg_option_usage(option, &usage);
    tg_text_append_string(out, ".TP\n.B ");
    append_roff(out, tg_text_string(&usage));
    tg_text_append_char(out, '\n');
    append_roff(out, option->help);
    if (option->type == TG_OPTION_CHOICE && option->metavar)
        for (size_t i = 0; option->choices[i]; i++) {
            tg_text_append_string(out, i ? ", " : ": ");
            append_roff(out, option->choices[i]);
        }
    if (option->initial && option->type != TG_OPTION_BOOL) {
        tg_text_append_string(out, " [");
        append_roff(out, option->initial);
        tg_text_append_char(out, ']');
    }
    tg_text_append_string(out, ".\n");
    tg_text_done(&usage);
}

/* "tagine-data-stats": a page's name, as man looks it up. */
static void append_header(tg_text *out, const char *command, const char *summary)
{
    char page[64];
    snprintf(page, sizeof page, "tagine%s%s", command[0] ? "-" : "", command);
    for (char *at = page; *at; at++)
        if (*at == ' ')
            *at = '-';
    tg_text_append_string(out, ".TH ");
    for (const char *at = page; *at; at++)
        tg_text_append_char(out, (char)toupper((unsigned char)*at));
    tg_text_append_format(out, " 1 \"\" \"tagine %s\" \"User Commands\"\n.SH NAME\n",
                          TG_PROGRAM_VERSION);
    append_roff(out, page);
    tg_text_append_string(out, " \\- ");
    append_roff(out, summary);
    tg_text_append_char(out, '\n');
}

/* ", tagine-data-stats(1)"; the first without the comma. */
static void append_reference(tg_text *out, const char *name, size_t length, bool *io_first)
{
    tg_text_append_string(out, *io_first ? "" : ",\n");
    tg_text_append_string(out, ".BR tagine");
    if (length)
        tg_text_append_string(out, "\\-");
    for (size_t i = 0; i < length; i++)
        tg_text_append_string(out, name[i] == ' ' ? "\\-" : (char[]){name[i], '\0'});
    tg_text_append_string(out, " (1)");
    *io_first = false;
}

static bool same_family(const char *a, const char *b)
{
    size_t n = strcspn(a, " ");
    return a[n] && strncmp(a, b, n + 1) == 0 && strcmp(a, b) != 0;
}

static void append_see_also(tg_text *out, const tg_command *command)
{
    size_t count;
    bool first = true;
    const tg_command *const *commands = tg_commands(&count);
    tg_text_append_string(out, ".SH SEE ALSO\n");
    append_reference(out, "", 0, &first);
    for (const char *at = command->see_also; at && *at; at += strspn(at, ", ")) {
        size_t n = strcspn(at, ",");
        append_reference(out, at, n, &first);
        at += n;
    }
    for (size_t i = 0; i < count; i++)
        if (same_family(command->name, commands[i]->name))
            append_reference(out, commands[i]->name, strlen(commands[i]->name), &first);
    tg_text_append_char(out, '\n');
}

static void append_files(tg_text *out, const tg_command_note *file)
{
    if (file)
        tg_text_append_string(out, ".SH FILES\n");
    for (; file && file->what; file++) {
        tg_text_append_string(out, ".TP\n.I ");
        append_roff(out, file->what);
        tg_text_append_char(out, '\n');
        append_roff(out, file->why);
        tg_text_append_string(out, ".\n");
    }
}

static void append_examples(tg_text *out, const tg_command_note *example)
{
    if (example)
        tg_text_append_string(out, ".SH EXAMPLES\n");
    for (; example && example->what; example++) {
        tg_text_append_string(out, ".PP\n");
        append_roff(out, example->why);
        tg_text_append_string(out, ":\n.PP\n.RS 4\n.nf\n");
        append_roff(out, example->what);
        tg_text_append_string(out, "\n.fi\n.RE\n");
    }
}

static void append_exit_status(tg_text *out)
{
    tg_text_append_string(out, ".SH EXIT STATUS\n0 done, 1 failed, 2 wrong usage, 3 bad input, 4 "
                               "the machine, 5 another rank failed, 130 or 143 stopped by a "
                               "signal after saving.\n");
}

static void command_page(const tg_command *command, tg_text *out)
{
    tg_option_group groups[TG_COMMAND_GROUPS_MAX];
    size_t count = tg_command_groups(command, NULL, NULL, groups);
    append_header(out, command->name, command->summary);
    tg_text_append_format(out, ".SH SYNOPSIS\n.B tagine %s\n[\\fIOPTION\\fR]...", command->name);
    if (command->arguments[0]) {
        tg_text_append_string(out, " \\fI");
        append_roff(out, command->arguments);
        tg_text_append_string(out, "\\fR");
    }
    tg_text_append_string(out, "\n.SH DESCRIPTION\n");
    append_roff(out, command->summary);
    tg_text_append_string(out, ".\n");
    if (command->description[0]) {
        tg_text_append_string(out, ".PP\n");
        append_paragraphs(out, command->description);
    }
    tg_text_append_string(out, ".SH OPTIONS\nEvery option may also stand in a YAML file (\\-\\-"
                               "config), without the dashes.\n");
    for (size_t g = 0; g < count; g++) {
        tg_text_append_format(out, ".SS %s\n", groups[g].title);
        for (size_t i = 0; i < groups[g].count; i++)
            append_option(out, &groups[g].options[i]);
    }
    append_exit_status(out);
    append_files(out, command->files);
    append_examples(out, command->examples);
    append_see_also(out, command);
}

/* What holds for every command, in roff. */
static const char MODELS[] =
    ".SH MODELS\nMODEL on the command line is one of\n"
    ".TP\na model folder\nwith model.safetensors and config.json: what training leaves in "
    "RUN/model, and what timm and Hugging Face transformers write.\n"
    ".TP\na .safetensors file\nwith its config.json beside it.\n"
    ".TP\na run directory or a checkpoint\n(RUN, or RUN/checkpoints/step\\-N): the model in it.\n"
    ".TP\nan architecture name\nas timm has it, vit_tiny_patch16_224: fresh weights. For commands "
    "that make or measure a model, not for those that use a trained one. Completion lists the "
    "names, and a name that is unknown is answered with the nearest ones.\n"
    ".PP\nNothing is ever downloaded.\n";
static const char RUNS[] =
    ".SH FILES\n.TP\n.I runs/COMMAND\\-TIME\nWhere train and distill put a run when \\-\\-output "
    "names no other folder, below the current one.\n";

static void append_commands(tg_text *out)
{
    size_t count;
    const tg_command *const *commands = tg_commands(&count);
    tg_text_append_string(out, ".SH COMMANDS\n");
    for (size_t i = 0; i < count; i++) {
        tg_text_append_format(out, ".TP\n.B %s\n", commands[i]->name);
        append_roff(out, commands[i]->summary);
        tg_text_append_string(out, ".\n");
    }
}

static void append_shared_options(tg_text *out)
{
    tg_text_append_string(out, ".SH COMMON OPTIONS\nEvery command has these:\n");
    for (size_t i = 0; i < tg_common_option_count; i++)
        append_option(out, &tg_common_option_table[i]);
    tg_text_append_string(out, ".PP\nand those that compute have these:\n");
    for (size_t i = 0; i < TG_COMPUTE_OPTION_COUNT; i++)
        append_option(out, &tg_compute_option_table[i]);
}

static void program_page(tg_text *out)
{
    size_t count;
    bool first = true;
    const tg_command *const *commands = tg_commands(&count);
    append_header(out, "", "train and distil vision transformers, and name what is on photos");
    tg_text_append_string(out, ".SH SYNOPSIS\n.B tagine\n\\fICOMMAND\\fR [\\fIOPTION\\fR]...\n");
    append_commands(out);
    append_shared_options(out);
    tg_text_append_string(out, MODELS);
    append_exit_status(out);
    tg_text_append_string(out, RUNS);
    tg_text_append_string(out, ".SH SEE ALSO\n");
    for (size_t i = 0; i < count; i++)
        append_reference(out, commands[i]->name, strlen(commands[i]->name), &first);
    tg_text_append_char(out, '\n');
}

/* NULL: the page of the program itself. */
static void append_page(const tg_command *command, tg_text *out)
{
    if (command)
        command_page(command, out);
    else
        program_page(out);
}

/* Joins the words, so that "tagine man data stats" works without quotes. */
static tg_status find_command(const tg_invocation *invocation, const tg_command **out)
{
    tg_text name = {0};
    for (size_t i = 0; i < invocation->argument_count; i++)
        tg_text_append_format(&name, "%s%s", i ? " " : "", invocation->arguments[i]);
    tg_status status = tg_text_check(&name, "man");
    const tg_command *command = status == TG_OK ? tg_command_find(tg_text_string(&name)) : NULL;
    if (status == TG_OK && !command)
        status = tg_fail(TG_ERROR_USAGE, "\"%s\" is no command; \"tagine --help\" lists them",
                         tg_text_string(&name));
    tg_text_done(&name);
    *out = command;
    return status;
}

static tg_status write_page(const char *folder, const tg_command *command)
{
    char name[64];
    tg_text text = {0};
    append_page(command, &text);
    snprintf(name, sizeof name, "tagine%s%s.1", command ? "-" : "", command ? command->name : "");
    for (char *at = name; *at; at++)
        if (*at == ' ')
            *at = '-';
    char *path = tg_path_join(folder, name);
    tg_status status =
        path ? tg_text_check(&text, name) : tg_fail(TG_ERROR_MACHINE, "%s: out of memory", name);
    if (status == TG_OK)
        status = tg_file_write(path, text.data, text.length);
    free(path);
    tg_text_done(&text);
    return status;
}

static tg_status write_all(const char *folder)
{
    size_t count;
    const tg_command *const *commands = tg_commands(&count);
    TG_TRY(tg_folder_make(folder));
    TG_TRY(write_page(folder, NULL));
    for (size_t i = 0; i < count; i++)
        TG_TRY(write_page(folder, commands[i]));
    return TG_OK;
}

static tg_status run(const tg_invocation *invocation)
{
    const man_settings *settings = invocation->settings;
    const tg_command *command = NULL;
    tg_text text = {0};
    if (settings->all)
        return write_all(settings->all);
    if (invocation->argument_count)
        TG_TRY(find_command(invocation, &command));
    append_page(command, &text);
    tg_status status = tg_console_print(&text);
    tg_text_done(&text);
    return status;
}

static const tg_command_note EXAMPLES[] = {
    {"tagine man data stats", "The page of one command"},
    {"tagine man --all pages", "Every page as a file of its own"},
    {0},
};

const tg_command tg_command_man = {
    .name = "man",
    .arguments = "[COMMAND]",
    .summary = "Print a command's manual page (roff)",
    .description = "To read one without installing: tagine man plan | man -l -",
    .examples = EXAMPLES,
    .see_also = "completion",
    .work = TG_COMMAND_PRINTS,
    .groups = GROUPS,
    .group_count = TG_COUNT_OF(GROUPS),
    .settings_bytes = sizeof(man_settings),
    .arguments_max = 2,
    .run = run,
};
