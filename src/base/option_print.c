#include "base/option_entry.h"

#include "base/number.h"

#include <math.h>
#include <string.h>
#include <strings.h>

/* A plain word that no YAML reader takes for a number, a boolean or null. */
static bool is_plain_word(const char *text)
{
    static const char *const RESERVED[] = {"true", "false", "yes", "no", "on",
                                           "off",  "null",  "y",   "n",  "nan"};
    for (size_t i = 0; i < sizeof RESERVED / sizeof RESERVED[0]; i++)
        if (strcasecmp(text, RESERVED[i]) == 0)
            return false;
    bool starts = (*text >= 'a' && *text <= 'z') || (*text >= 'A' && *text <= 'Z') || *text == '/';
    return starts && text[strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                       "0123456789_-./+")] == '\0';
}

static void print_string(const char *text, tg_text *out)
{
    if (is_plain_word(text))
        tg_text_append_string(out, text);
    else
        tg_text_append_json_string(out, text, strlen(text)); /* a YAML double-quoted scalar too */
}

/* YAML 1.1 readers take 1e-05 for a text; 1.0e-05 is a number to all of them. */
static void print_double(double value, tg_text *out)
{
    char number[TG_NUMBER_BYTES];
    size_t n = tg_number_format_double(value, number);
    size_t mantissa = strcspn(number, "e");
    tg_text_append(out, number, mantissa);
    if (mantissa < n && !memchr(number, '.', mantissa))
        tg_text_append_string(out, ".0");
    tg_text_append_string(out, number + mantissa);
}

static bool is_unset(const tg_option_entry *entry)
{
    switch (entry->option->type) {
    case TG_OPTION_INT:
        return !entry->option->initial && entry->source == TG_OPTION_FROM_DEFAULT;
    case TG_OPTION_DOUBLE:
        return isnan(*(const double *)entry->field);
    case TG_OPTION_STRING:
        return !*(const char *const *)entry->field;
    case TG_OPTION_DOUBLES:
        return ((const tg_option_doubles *)entry->field)->count == 0;
    default:
        return false;
    }
}

static void print_value(const tg_option_entry *entry, tg_text *out)
{
    const tg_option *option = entry->option;
    const tg_option_doubles *list = entry->field;
    switch (option->type) {
    case TG_OPTION_BOOL:
        tg_text_append_string(out, *(const bool *)entry->field ? "true" : "false");
        break;
    case TG_OPTION_INT: {
        int64_t value = *(const int64_t *)entry->field;
        if (option->flags & TG_OPTION_AUTO && value == TG_OPTION_AUTO_VALUE)
            tg_text_append_string(out, "auto");
        else
            tg_text_append_format(out, "%lld", (long long)value);
        break;
    }
    case TG_OPTION_DOUBLE:
        print_double(*(const double *)entry->field, out);
        break;
    case TG_OPTION_STRING:
        print_string(*(const char *const *)entry->field, out);
        break;
    case TG_OPTION_CHOICE:
        print_string(option->choices[*(const int *)entry->field], out);
        break;
    case TG_OPTION_DOUBLES:
        for (size_t i = 0; i < list->count; i++) {
            tg_text_append_string(out, i ? ", " : "[");
            print_double(list->values[i], out);
        }
        tg_text_append_char(out, ']');
        break;
    }
}

void tg_options_print(const tg_options *options, tg_text *out)
{
    for (size_t i = 0; i < options->entry_count; i++) {
        const tg_option_entry *entry = &options->entries[i];
        if (entry->option->flags & TG_OPTION_NO_CONFIG)
            continue;
        if (is_unset(entry)) {
            tg_text_append_format(out, "# %s:\n", entry->option->name);
            continue;
        }
        tg_text_append_format(out, "%s: ", entry->option->name);
        print_value(entry, out);
        tg_text_append_char(out, '\n');
    }
}

bool tg_options_given(const tg_options *options, const char *name)
{
    const tg_option_entry *entry = tg_option_find(options, name, strlen(name));
    if (!entry || entry->source != TG_OPTION_FROM_FILE)
        return entry && entry->source == TG_OPTION_FROM_ARGUMENTS;
    if (!entry->option->initial)
        return true;
    union {
        bool boolean;
        int64_t whole;
        double real;
        const char *text;
        int choice;
        tg_option_doubles list;
    } field;
    const tg_option_origin from = {.source = TG_OPTION_FROM_DEFAULT};
    tg_option_entry usual = {.option = entry->option, .field = &field};
    tg_options strings = {0}; /* owns what a text needs */
    tg_text a = {0}, b = {0};
    bool differs = true;
    if (tg_option_store(&strings, &usual, &from, entry->option->initial) == TG_OK) {
        print_value(entry, &a);
        print_value(&usual, &b);
        differs = strcmp(tg_text_string(&a), tg_text_string(&b)) != 0;
    }
    tg_text_done(&a);
    tg_text_done(&b);
    tg_options_done(&strings);
    return differs;
}
