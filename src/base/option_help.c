#include "base/option.h"

#include <string.h>

enum { HELP_COLUMN = 28 };

void tg_option_usage(const tg_option *option, tg_text *out)
{
    bool negative =
        option->type == TG_OPTION_BOOL && option->initial && strcmp(option->initial, "true") == 0;
    if (option->letter)
        tg_text_append_format(out, "-%c, ", option->letter);
    tg_text_append_format(out, "--%s%s", negative ? "[no-]" : "", option->name);
    if (option->type == TG_OPTION_BOOL)
        return;
    tg_text_append_char(out, ' ');
    if (option->type != TG_OPTION_CHOICE || option->metavar) {
        tg_text_append_string(out, option->metavar ? option->metavar : "VALUE");
        return;
    }
    for (size_t i = 0; option->choices[i]; i++)
        tg_text_append_format(out, "%s%s", i ? "|" : "", option->choices[i]);
}

static void append_option(const tg_option *option, tg_text *out)
{
    tg_text words = {0};
    size_t start = out->length;
    tg_text_append_string(out, option->letter ? "  " : "      ");
    tg_option_usage(option, out);
    size_t width = out->length - start;
    if (width + 2 > HELP_COLUMN)
        tg_text_append_format(out, "\n%*s", HELP_COLUMN, "");
    else
        tg_text_append_format(out, "%*s", (int)(HELP_COLUMN - width), "");
    tg_text_append_string(&words, option->help);
    bool shown = option->initial && option->type != TG_OPTION_BOOL;
    if (option->type == TG_OPTION_CHOICE && option->metavar) {
        for (size_t i = 0; option->choices[i]; i++)
            tg_text_append_format(&words, "%s%s", i ? ", " : ": ", option->choices[i]);
    }
    if (shown)
        tg_text_append_format(&words, " [%s]", option->initial);
    tg_text_append_wrapped(out, tg_text_string(&words), HELP_COLUMN, TG_HELP_WIDTH);
    tg_text_append_char(out, '\n');
    if (words.failed)
        out->failed = true;
    tg_text_done(&words);
}

void tg_options_help(const tg_option_group *groups, size_t group_count, tg_text *out)
{
    for (size_t g = 0; g < group_count; g++) {
        tg_text_append_format(out, "%s%s:\n", g ? "\n" : "", groups[g].title);
        for (size_t i = 0; i < groups[g].count; i++)
            append_option(&groups[g].options[i], out);
    }
}
