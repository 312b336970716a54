#include "cli/command.h"

#include <string.h>

/* The width of the table's lines is that of the source; a terminal has its own. */
static void append_paragraphs(tg_text *out, const char *text)
{
    tg_text part = {0};
    for (const char *at = text; *at;) {
        const char *end = strstr(at, "\n\n");
        const size_t length = end ? (size_t)(end - at) : strlen(at);
        tg_text_clear(&part);
        tg_text_append(&part, at, length);
        tg_text_append_char(out, '\n');
        tg_text_append_wrapped(out, tg_text_string(&part), 0, TG_HELP_WIDTH);
        tg_text_append_char(out, '\n');
        at += length + (end ? 2 : 0);
    }
    out->failed = out->failed || part.failed;
    tg_text_done(&part);
}

void tg_command_help(const tg_command *command, tg_text *out)
{
    tg_option_group groups[TG_COMMAND_GROUPS_MAX];
    size_t count = tg_command_groups(command, NULL, NULL, groups);
    tg_text_append_format(out, "Usage: tagine %s [OPTION]...%s%s\n\n%s.\n", command->name,
                          command->arguments[0] ? " " : "", command->arguments, command->summary);
    append_paragraphs(out, command->description);
    tg_text_append_char(out, '\n');
    tg_options_help(groups, count, out);
    tg_text_append_string(out, "\nEvery option may also stand in a YAML file (--config), without "
                               "the dashes:\n\"epochs: 5\".\n");
    const tg_command_note *example = command->examples;
    if (example)
        tg_text_append_string(out, "\nExamples:\n");
    for (; example && example->what; example++)
        tg_text_append_format(out, "  %s:\n      %s\n", example->why, example->what);
}

void tg_program_help(tg_text *out)
{
    size_t count;
    const tg_command *const *commands = tg_commands(&count);
    tg_text_append_string(out,
                          "Usage: tagine COMMAND [OPTION]...\n\n"
                          "Train and distil vision transformers, and name what is on photos.\n\n"
                          "Commands:\n");
    for (size_t i = 0; i < count; i++)
        tg_text_append_format(out, "  %-14s %s\n", commands[i]->name, commands[i]->summary);
    tg_text_append_string(out, "\n\"tagine COMMAND --help\" shows a command's options.\n"
                               "Exit codes: 0 done, 1 failed, 2 wrong usage, 3 bad input, 4 the "
                               "machine,\n5 another rank failed, 130 or 143 stopped by a signal "
                               "after saving.\n");
}
