#include "cli/command.h"

void tg_command_help(const tg_command *command, tg_text *out)
{
    tg_option_group groups[TG_COMMAND_GROUPS_MAX];
    size_t count = tg_command_groups(command, NULL, NULL, groups);
    tg_text_append_format(out, "Usage: tagine %s [OPTION]...%s%s\n\n%s.\n", command->name,
                          command->arguments[0] ? " " : "", command->arguments, command->summary);
    if (command->description[0])
        tg_text_append_format(out, "\n%s\n", command->description);
    tg_text_append_char(out, '\n');
    tg_options_help(groups, count, out);
    tg_text_append_string(out, "\nEvery option may also stand in a YAML file (--config), without "
                               "the dashes: \"epochs: 5\".\n");
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
    tg_text_append_string(out, "\n\"tagine COMMAND --help\" shows a command's options, "
                               "\"tagine --version\" the version.\n"
                               "Exit codes: 0 done, 1 failed, 2 wrong usage, 3 bad input, 4 the "
                               "machine, 5 another rank failed,\n130 or 143 stopped by a signal "
                               "after saving.\n");
}
