/* tagine completion SHELL: a completion script made from the same tables as --help. */
#include "base/nearest.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "model/config.h"

#include <string.h>

/* "data check" as an identifier: "data_check". */
static void append_identifier(tg_text *out, const char *name)
{
    for (; *name; name++)
        tg_text_append_char(out, *name == ' ' || *name == '-' ? '_' : *name);
}

/* Inside single quotes of any of the three shells: bash and zsh end, escape and reopen; fish takes
 * that too. */
static void append_quoted(tg_text *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '\'')
            tg_text_append_string(out, "'\\''");
        else
            tg_text_append_char(out, *text);
    }
}

/* First words of the commands, each once. */
static void append_first_words(tg_text *out)
{
    size_t count;
    const tg_command *const *commands = tg_commands(&count);
    for (size_t i = 0; i < count; i++) {
        size_t n = strcspn(commands[i]->name, " ");
        bool seen = false;
        for (size_t j = 0; j < i && !seen; j++)
            seen = strncmp(commands[j]->name, commands[i]->name, n) == 0 &&
                   (commands[j]->name[n] == ' ' || !commands[j]->name[n]);
        if (!seen)
            tg_text_append_format(out, "%s%.*s", i ? " " : "", (int)n, commands[i]->name);
    }
}

/* Calls for every option of a command, the common ones last. */
typedef void (*visit_option)(const tg_command *command, const tg_option *option, tg_text *out);

static void each_option(const tg_command *command, visit_option visit, tg_text *out)
{
    tg_option_group groups[TG_COMMAND_GROUPS_MAX];
    size_t count = tg_command_groups(command, NULL, NULL, groups);
    for (size_t g = 0; g < count; g++)
        for (size_t i = 0; i < groups[g].count; i++)
            visit(command, &groups[g].options[i], out);
}

static void append_architectures(tg_text *out)
{
    for (const char *const *name = tg_vit_preset_names(); *name; name++)
        tg_text_append_format(out, "%s ", *name);
}

static void bash_word(const tg_command *command, const tg_option *option, tg_text *out)
{
    (void)command;
    tg_text_append_format(out, "--%s ", option->name);
    if (option->type == TG_OPTION_BOOL && option->initial)
        tg_text_append_format(out, "--no-%s ", option->name);
}

/* What may follow the option: words, folders, or files. */
static void bash_value(const tg_command *command, const tg_option *option, tg_text *out)
{
    (void)command;
    if (option->type == TG_OPTION_BOOL)
        return;
    tg_text_append_format(out, "        --%s) ", option->name);
    if (option->type == TG_OPTION_CHOICE) {
        tg_text_append_string(out, "COMPREPLY=($(compgen -W '");
        for (size_t i = 0; option->choices[i]; i++)
            tg_text_append_format(out, "%s%s", i ? " " : "", option->choices[i]);
        tg_text_append_string(out, "' -- \"$cur\")) ;;\n");
    } else if (option->flags & TG_OPTION_ARCHITECTURE) {
        tg_text_append_string(out,
                              "COMPREPLY=($(compgen -f -W \"$_tagine_models\" -- \"$cur\")) ;;\n");
    } else if (option->flags & TG_OPTION_FOLDER) {
        tg_text_append_string(out, "COMPREPLY=($(compgen -d -- \"$cur\")) ;;\n");
    } else if (option->flags & TG_OPTION_FILE) {
        tg_text_append_string(out, "COMPREPLY=($(compgen -f -- \"$cur\")) ;;\n");
    } else {
        tg_text_append_string(out, "COMPREPLY=() ;;\n");
    }
}

static void bash_command(const tg_command *command, tg_text *out)
{
    tg_text_append_string(out, "_tagine_");
    append_identifier(out, command->name);
    tg_text_append_string(out, "()\n{\n    case $prev in\n");
    each_option(command, bash_value, out);
    tg_text_append_string(out, "        *) if [[ $cur == -* ]]; then\n"
                               "            COMPREPLY=($(compgen -W '");
    each_option(command, bash_word, out);
    tg_text_append_string(out, "' -- \"$cur\"))\n        else\n"
                               "            COMPREPLY=($(compgen -f -- \"$cur\"))\n"
                               "        fi ;;\n    esac\n}\n");
}

static void bash_script(tg_text *out)
{
    size_t count;
    const tg_command *const *commands = tg_commands(&count);
    tg_text_append_string(out, "# bash completion for tagine\n_tagine_models='");
    append_architectures(out);
    tg_text_append_string(out, "'\n");
    for (size_t i = 0; i < count; i++)
        bash_command(commands[i], out);
    tg_text_append_string(out, "_tagine()\n{\n    local cur=${COMP_WORDS[COMP_CWORD]}\n"
                               "    local prev=${COMP_WORDS[COMP_CWORD-1]}\n"
                               "    COMPREPLY=()\n    if ((COMP_CWORD == 1)); then\n"
                               "        COMPREPLY=($(compgen -W '");
    append_first_words(out);
    tg_text_append_string(out, " --help --version' -- \"$cur\"))\n        return\n    fi\n"
                               "    case \"${COMP_WORDS[1]} ${COMP_WORDS[2]}\" in\n");
    for (int words = 2; words >= 1; words--) { /* the longer names first */
        for (size_t i = 0; i < count; i++) {
            if ((strchr(commands[i]->name, ' ') ? 2 : 1) != words)
                continue;
            tg_text_append_format(out, "        '%s%s'*) _tagine_", commands[i]->name,
                                  words == 1 ? " " : "");
            append_identifier(out, commands[i]->name);
            tg_text_append_string(out, " ;;\n");
        }
    }
    tg_text_append_string(out, "        *) ((COMP_CWORD == 2)) && COMPREPLY=($(compgen -W \"$(case "
                               "${COMP_WORDS[1]} in\n");
    for (size_t i = 0; i < count; i++) {
        const char *space = strchr(commands[i]->name, ' ');
        if (space)
            tg_text_append_format(out, "            %.*s) echo %s ;;&\n",
                                  (int)(space - commands[i]->name), commands[i]->name, space + 1);
    }
    tg_text_append_string(out, "            *) ;; esac)\" -- \"$cur\")) ;;\n    esac\n}\n"
                               "complete -F _tagine tagine\n");
}

/* zsh: '--name=[help]:metavar:action', brackets and colons escaped. */
static void append_zsh_text(tg_text *out, const char *text)
{
    for (; *text; text++) {
        if (strchr("[]:\\", *text))
            tg_text_append_char(out, '\\');
        if (*text == '\'')
            tg_text_append_string(out, "'\\''");
        else
            tg_text_append_char(out, *text);
    }
}

static void zsh_option(const tg_command *command, const tg_option *option, tg_text *out)
{
    (void)command;
    bool flag = option->type == TG_OPTION_BOOL;
    tg_text_append_format(out, "        '--%s%s[", option->name, flag ? "" : "=");
    append_zsh_text(out, option->help);
    tg_text_append_char(out, ']');
    if (!flag) {
        tg_text_append_char(out, ':');
        append_zsh_text(out, option->metavar ? option->metavar : option->name);
        tg_text_append_char(out, ':');
        if (option->type == TG_OPTION_CHOICE) {
            tg_text_append_char(out, '(');
            for (size_t i = 0; option->choices[i]; i++)
                tg_text_append_format(out, "%s%s", i ? " " : "", option->choices[i]);
            tg_text_append_char(out, ')');
        } else if (option->flags & TG_OPTION_ARCHITECTURE) {
            tg_text_append_string(out, "_tagine_models");
        } else if (option->flags & TG_OPTION_FOLDER) {
            tg_text_append_string(out, "_files -/");
        } else if (option->flags & TG_OPTION_FILE) {
            tg_text_append_string(out, "_files");
        }
    }
    tg_text_append_string(out, "' \\\n");
    if (flag && option->initial)
        tg_text_append_format(out, "        '--no-%s[not: --%s]' \\\n", option->name, option->name);
}

static void zsh_script(tg_text *out)
{
    size_t count;
    const tg_command *const *commands = tg_commands(&count);
    tg_text_append_string(out, "#compdef tagine\n_tagine_models()\n{\n    compadd -- ");
    append_architectures(out);
    tg_text_append_string(out, "\n    _files\n}\n_tagine()\n{\n    local key\n"
                               "    if ((CURRENT == 2)); then\n        compadd -- ");
    append_first_words(out);
    tg_text_append_string(out, " --help --version\n        return\n    fi\n"
                               "    key=\"$words[2] $words[3]\"\n    case $key in\n");
    for (int words = 2; words >= 1; words--) {
        for (size_t i = 0; i < count; i++) {
            if ((strchr(commands[i]->name, ' ') ? 2 : 1) != words)
                continue;
            tg_text_append_format(out, "    ('%s%s'*)\n        shift %d words; ((CURRENT -= %d))\n",
                                  commands[i]->name, words == 1 ? " " : "", words, words);
            tg_text_append_string(out, "        _arguments -S \\\n");
            each_option(commands[i], zsh_option, out);
            tg_text_append_string(out, "        '*:file:_files' ;;\n");
        }
    }
    tg_text_append_string(out, "    (*)\n        ((CURRENT == 3)) || return 0\n");
    for (size_t i = 0; i < count; i++) {
        const char *space = strchr(commands[i]->name, ' ');
        if (space)
            tg_text_append_format(out, "        [[ $words[2] == %.*s ]] && compadd -- %s\n",
                                  (int)(space - commands[i]->name), commands[i]->name, space + 1);
    }
    tg_text_append_string(out, "        ;;\n    esac\n}\n_tagine \"$@\"\n");
}

/* The condition "the command line so far names this command". */
static void fish_condition(const tg_command *command, tg_text *out)
{
    const char *space = strchr(command->name, ' ');
    int n = (int)strcspn(command->name, " ");
    tg_text_append_format(out, "__fish_seen_subcommand_from %.*s", n, command->name);
    if (space)
        tg_text_append_format(out, "; and __fish_seen_subcommand_from %s", space + 1);
}

static void fish_option(const tg_command *command, const tg_option *option, tg_text *out)
{
    tg_text_append_string(out, "complete -c tagine -n '");
    fish_condition(command, out);
    tg_text_append_format(out, "' -l %s", option->name);
    if (option->letter)
        tg_text_append_format(out, " -s %c", option->letter);
    if (option->type == TG_OPTION_CHOICE) {
        tg_text_append_string(out, " -x -a '");
        for (size_t i = 0; option->choices[i]; i++)
            tg_text_append_format(out, "%s%s", i ? " " : "", option->choices[i]);
        tg_text_append_char(out, '\'');
    } else if (option->type != TG_OPTION_BOOL) {
        bool path = option->flags & (TG_OPTION_FILE | TG_OPTION_FOLDER);
        tg_text_append_string(out, path ? " -r -F" : " -x");
        if (option->flags & TG_OPTION_ARCHITECTURE) {
            tg_text_append_string(out, " -a '");
            append_architectures(out);
            tg_text_append_char(out, '\'');
        }
    }
    tg_text_append_string(out, " -d '");
    append_quoted(out, option->help);
    tg_text_append_string(out, "'\n");
}

static void fish_script(tg_text *out)
{
    size_t count;
    const tg_command *const *commands = tg_commands(&count);
    tg_text_append_string(out, "# fish completion for tagine\n");
    for (size_t i = 0; i < count; i++) {
        const char *space = strchr(commands[i]->name, ' ');
        int n = (int)strcspn(commands[i]->name, " ");
        tg_text_append_string(out, "complete -c tagine -f -n __fish_use_subcommand");
        tg_text_append_format(out, " -a %.*s", n, commands[i]->name);
        if (!space) {
            tg_text_append_string(out, " -d '");
            append_quoted(out, commands[i]->summary);
            tg_text_append_char(out, '\'');
        } else {
            tg_text_append_format(out,
                                  "\ncomplete -c tagine -f -n '__fish_seen_subcommand_from %.*s' "
                                  "-a %s -d '",
                                  n, commands[i]->name, space + 1);
            append_quoted(out, commands[i]->summary);
            tg_text_append_char(out, '\'');
        }
        tg_text_append_char(out, '\n');
        each_option(commands[i], fish_option, out);
    }
}

static tg_status run(const tg_invocation *invocation)
{
    static const char *const SHELLS[] = {"bash", "zsh", "fish"};
    static void (*const SCRIPTS[])(tg_text *) = {bash_script, zsh_script, fish_script};
    const char *shell = invocation->arguments[0];
    for (size_t i = 0; i < TG_COUNT_OF(SHELLS); i++) {
        if (strcmp(SHELLS[i], shell) != 0)
            continue;
        tg_text text = {0};
        SCRIPTS[i](&text);
        tg_status status = tg_console_print(&text);
        tg_text_done(&text);
        return status;
    }
    const char *best = tg_nearest_of(shell, SHELLS, TG_COUNT_OF(SHELLS));
    return tg_fail(TG_ERROR_USAGE,
                   "no completion for \"%s\", only bash, zsh and fish" TG_NEAREST_FORMAT, shell,
                   TG_NEAREST_HINT(best));
}

static const tg_command_note EXAMPLES[] = {
    {"tagine completion bash >tagine.bash", "Write the script into a file"},
    {0},
};

const tg_command tg_command_completion = {
    .name = "completion",
    .arguments = "bash|zsh|fish",
    .summary = "Print a shell's completion script",
    .description = "For the running shell: source <(tagine completion bash). An installed tagine "
                   "has them\nin place.",
    .examples = EXAMPLES,
    .see_also = "man",
    .work = TG_COMMAND_PRINTS,
    .arguments_min = 1,
    .arguments_max = 1,
    .run = run,
};
