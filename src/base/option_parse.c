#include "base/option_entry.h"

#include "base/nearest.h"
#include "base/number.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static tg_option_entry *find_letter(const tg_options *options, char letter)
{
    for (size_t i = 0; i < options->entry_count; i++)
        if (letter && options->entries[i].option->letter == letter)
            return &options->entries[i];
    return NULL;
}

static const char *nearest_name(const tg_options *options, const char *word)
{
    tg_nearest nearest = {.word = word};
    for (size_t i = 0; i < options->entry_count; i++)
        tg_nearest_offer(&nearest, options->entries[i].option->name);
    return nearest.best;
}

/* Names that other programs give to what we have under another name. */
static const char *known_elsewhere(const char *word)
{
    static const struct {
        const char *theirs, *hint;
    } names[] = {
        {"data-dir", "here it is --data"},
        {"data-path", "here it is --data"},
        {"learning-rate", "here it is --lr"},
        {"betas", "here it is --opt-betas"},
        {"momentum", "AdamW has --opt-betas"},
        {"train-batch-size", "here it is --batch-size"},
        {"num-workers", "here it is --workers"},
        {"num-epochs", "here it is --epochs"},
        {"output-dir", "here it is --output"},
        {"pretrained", "nothing is downloaded; --initial-checkpoint FOLDER starts from weights"},
        {"checkpoint", "here it is --initial-checkpoint (weights) or --resume (a run)"},
        {"device", "it computes on the CPU; --threads says on how many cores"},
        {"mixed-precision", "here it is --amp"},
        {"bf16", "here it is --amp"},
        {"fp16", "here it is --amp, in bfloat16"},
        {"label-smoothing", "here it is --smoothing"},
        {"temperature", "here it is --kd-temperature"},
        {"teacher-model", "here it is --teacher"},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i].theirs, word) == 0)
            return names[i].hint;
    return NULL;
}

static tg_status unknown_option(const tg_options *options, const char *argument)
{
    char word[64];
    size_t dashes = strspn(argument, "-");
    snprintf(word, sizeof word, "%.*s", (int)strcspn(argument + dashes, "="), argument + dashes);
    for (char *at = word; *at; at++)
        if (*at == '_')
            *at = '-';
    const char *hint = known_elsewhere(word), *best = nearest_name(options, word);
    if (hint)
        return tg_fail(TG_ERROR_USAGE, "unknown option %.*s; %s", (int)strcspn(argument, "="),
                       argument, hint);
    return tg_fail(TG_ERROR_USAGE, "unknown option %.*s%s%s%s; --help lists all",
                   (int)strcspn(argument, "="), argument, best ? "; did you mean --" : "",
                   best ? best : "", best ? "?" : "");
}

/* A list of numbers may also be typed as several arguments: takes those that are numbers. */
static tg_status take_numbers(tg_options *options, tg_option_entry *entry, int count,
                              const char *const *argv, int *at)
{
    const tg_option_origin from = {.source = TG_OPTION_FROM_ARGUMENTS};
    tg_text joined = {0};
    double ignored;
    tg_text_append_string(&joined, argv[*at]);
    while (*at + 1 < count &&
           tg_number_parse_double(argv[*at + 1], strlen(argv[*at + 1]), &ignored)) {
        tg_text_append_char(&joined, ',');
        tg_text_append_string(&joined, argv[++*at]);
    }
    tg_status status = tg_text_check(&joined, "options");
    if (status == TG_OK)
        status = tg_option_store(options, entry, &from, tg_text_string(&joined));
    tg_text_done(&joined);
    return status;
}

/* argv[*at] named the option; `value` is what followed '=', or NULL. */
static tg_status take_value(tg_options *options, tg_option_entry *entry, const char *value,
                            int count, const char *const *argv, int *at)
{
    const tg_option_origin from = {.source = TG_OPTION_FROM_ARGUMENTS};
    double ignored;
    if (value && entry->option->type == TG_OPTION_DOUBLES && *at + 1 < count &&
        tg_number_parse_double(argv[*at + 1], strlen(argv[*at + 1]), &ignored))
        return tg_fail(TG_ERROR_USAGE,
                       "--%s=%.100s %.100s: a list follows a blank, --%s %.100s %.100s, or has "
                       "commas, --%s=%.100s,%.100s",
                       entry->option->name, value, argv[*at + 1], entry->option->name, value,
                       argv[*at + 1], entry->option->name, value, argv[*at + 1]);
    if (value)
        return tg_option_store(options, entry, &from, value);
    if (entry->option->type == TG_OPTION_BOOL)
        return tg_option_store(options, entry, &from, "true");
    if (*at + 1 >= count || strncmp(argv[*at + 1], "--", 2) == 0)
        return tg_fail(TG_ERROR_USAGE, "--%s needs a value: --%s %s", entry->option->name,
                       entry->option->name,
                       entry->option->metavar ? entry->option->metavar : "VALUE");
    ++*at;
    if (entry->option->type == TG_OPTION_DOUBLES)
        return take_numbers(options, entry, count, argv, at);
    return tg_option_store(options, entry, &from, argv[*at]);
}

static tg_status take_long(tg_options *options, int count, const char *const *argv, int *at)
{
    const char *name = argv[*at] + 2;
    size_t length = strcspn(name, "=");
    const char *value = name[length] ? name + length + 1 : NULL;
    tg_option_entry *entry = tg_option_find(options, name, length);
    if (entry)
        return take_value(options, entry, value, count, argv, at);
    if (length > 3 && strncmp(name, "no-", 3) == 0 && !value)
        entry = tg_option_find(options, name + 3, length - 3);
    if (!entry || entry->option->type != TG_OPTION_BOOL)
        return unknown_option(options, argv[*at]);
    return take_value(options, entry, "false", count, argv, at);
}

static tg_status take_positional(tg_options *options, const char *argument)
{
    size_t bytes = (options->positional_count + 1) * sizeof *options->positionals;
    const char **positionals = realloc(options->positionals, bytes);
    if (!positionals)
        return tg_fail(TG_ERROR_MACHINE, "options: out of memory");
    options->positionals = positionals;
    positionals[options->positional_count++] = argument;
    return TG_OK;
}

/* "-q", "-j4", and several switches as one argument: "-qv". */
static tg_status take_letters(tg_options *options, int count, const char *const *argv, int *at)
{
    const char *argument = argv[*at];
    for (const char *letter = argument + 1; *letter; letter++) {
        tg_option_entry *entry = find_letter(options, *letter);
        if (!entry)
            return unknown_option(options, argument);
        if (entry->option->type != TG_OPTION_BOOL)
            return take_value(options, entry, letter[1] ? letter + 1 : NULL, count, argv, at);
        TG_TRY(take_value(options, entry, NULL, count, argv, at));
    }
    return TG_OK;
}

tg_status tg_options_parse_arguments(tg_options *options, int count, const char *const *argv)
{
    bool ended = false;
    for (int at = 0; at < count; at++) {
        const char *argument = argv[at];
        if (!ended && strcmp(argument, "--") == 0) {
            ended = true;
        } else if (ended || argument[0] != '-' || !argument[1]) {
            TG_TRY(take_positional(options, argument));
        } else if (argument[1] == '-') {
            TG_TRY(take_long(options, count, argv, &at));
        } else {
            TG_TRY(take_letters(options, count, argv, &at));
        }
    }
    return TG_OK;
}

/* A list becomes the text that the command line would give. */
static tg_status store_list(tg_options *options, tg_option_entry *entry,
                            const tg_option_origin *from)
{
    tg_text joined = {0};
    tg_status status = TG_OK;
    if (entry->option->type != TG_OPTION_DOUBLES)
        return tg_yaml_fail(from->node, "expected a single value, found a list");
    for (const tg_yaml_node *item = from->node->first; item && status == TG_OK; item = item->next) {
        const char *text;
        status = tg_yaml_as_string(item, &text);
        if (status < 0)
            break;
        if (joined.length)
            tg_text_append_char(&joined, ',');
        tg_text_append_string(&joined, text);
    }
    if (status == TG_OK)
        status = tg_text_check(&joined, "options");
    if (status == TG_OK)
        status = tg_option_store(options, entry, from, tg_text_string(&joined));
    tg_text_done(&joined);
    return status;
}

static tg_status take_yaml_key(tg_options *options, const tg_yaml_node *node)
{
    const tg_option_origin from = {.source = TG_OPTION_FROM_FILE, .node = node};
    tg_option_entry *entry = tg_option_find(options, node->key, strlen(node->key));
    if (!entry || entry->option->flags & TG_OPTION_NO_CONFIG) {
        const char *best = nearest_name(options, node->key);
        return tg_yaml_fail(node, "%s" TG_NEAREST_FORMAT,
                            entry ? "can only be given on the command line" : "unknown option",
                            TG_NEAREST_HINT(entry ? NULL : best));
    }
    if (entry->source == TG_OPTION_FROM_ARGUMENTS || tg_yaml_is_null(node))
        return TG_OK;
    if (node->kind == TG_YAML_LIST)
        return store_list(options, entry, &from);
    const char *text;
    TG_TRY(tg_yaml_as_string(node, &text));
    return tg_option_store(options, entry, &from, text);
}

/* Settings are part of what the user asked for, so whatever is wrong in them is wrong usage. */
static tg_status as_usage(tg_status status)
{
    return status == TG_ERROR_INPUT ? TG_ERROR_USAGE : status;
}

tg_status tg_options_parse_yaml(tg_options *options, const char *bytes, size_t length,
                                const char *name)
{
    tg_yaml yaml;
    TG_TRY(as_usage(tg_yaml_parse(bytes, length, name, &yaml)));
    tg_status status = TG_OK;
    if (yaml.root->kind != TG_YAML_MAP)
        status = tg_yaml_fail(yaml.root, "expected lines like \"epochs: 5\"");
    for (const tg_yaml_node *node = yaml.root->first; node && status == TG_OK; node = node->next)
        status = take_yaml_key(options, node);
    tg_yaml_done(&yaml);
    return as_usage(status);
}
