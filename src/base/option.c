#include "base/option_entry.h"

#include "base/number.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static tg_status refuse(const tg_option *option, const tg_option_origin *from, const char *value,
                        const char *why)
{
    if (from->node)
        return tg_fail(TG_ERROR_USAGE, "%s: line %zu, column %zu: %s: \"%.100s\" %s",
                       from->node->name, from->node->line, from->node->column, option->name, value,
                       why);
    return tg_fail(TG_ERROR_USAGE, "--%s: \"%.100s\" %s", option->name, value, why);
}

/* A limit as a user would type it: 1048576, not 1.04858e+06. */
static void print_limit(double limit, char out[TG_NUMBER_BYTES])
{
    if (limit == floor(limit) && fabs(limit) < 1e16)
        snprintf(out, TG_NUMBER_BYTES, "%lld", (long long)limit);
    else
        tg_number_format_double(limit, out);
}

static tg_status check_range(const tg_option *option, const tg_option_origin *from,
                             const char *text, double value)
{
    char why[128], limit[TG_NUMBER_BYTES];
    if (!(option->low < option->high))
        return TG_OK;
    bool exclusive = option->flags & TG_OPTION_SOFT_LOW;
    if (value > option->low || (!exclusive && value == option->low)) {
        if (value <= option->high)
            return TG_OK;
        print_limit(option->high, limit);
        snprintf(why, sizeof why, "is above the highest allowed, %s", limit);
    } else {
        print_limit(option->low, limit);
        snprintf(why, sizeof why,
                 exclusive ? "has to be above %s" : "is below %s, the lowest allowed", limit);
    }
    return refuse(option, from, text, why);
}

static tg_status store_bool(const tg_option_entry *entry, const tg_option_origin *from,
                            const char *text)
{
    static const char *const WORDS[] = {"false", "true", "no", "yes", "off", "on", "0", "1"};
    for (size_t i = 0; i < 8; i++) {
        if (strcasecmp(text, WORDS[i]) == 0) {
            *(bool *)entry->field = i % 2;
            return TG_OK;
        }
    }
    return refuse(entry->option, from, text, "is not true or false");
}

static tg_status store_int(const tg_option_entry *entry, const tg_option_origin *from,
                           const char *text)
{
    bool may_be_auto = entry->option->flags & TG_OPTION_AUTO;
    int64_t value;
    if (may_be_auto && strcmp(text, "auto") == 0) {
        *(int64_t *)entry->field = TG_OPTION_AUTO_VALUE;
        return TG_OK;
    }
    if (!tg_number_parse_i64(text, strlen(text), &value))
        return refuse(entry->option, from, text,
                      may_be_auto ? "is neither a whole number nor auto" : "is not a whole number");
    TG_TRY(check_range(entry->option, from, text, (double)value));
    *(int64_t *)entry->field = value;
    return TG_OK;
}

static tg_status read_double(const tg_option *option, const tg_option_origin *from,
                             const char *text, size_t length, double *out)
{
    char copy[64];
    snprintf(copy, sizeof copy, "%.*s", (int)length, text);
    if (!tg_number_parse_double(text, length, out))
        return refuse(option, from, copy, "is not a number like 0.5");
    return check_range(option, from, copy, *out);
}

static tg_status store_double(const tg_option_entry *entry, const tg_option_origin *from,
                              const char *text)
{
    double value;
    TG_TRY(read_double(entry->option, from, text, strlen(text), &value));
    *(double *)entry->field = value;
    return TG_OK;
}

/* Numbers with commas between. */
static tg_status store_doubles(const tg_option_entry *entry, const tg_option_origin *from,
                               const char *text)
{
    tg_option_doubles list = {.count = 0};
    for (const char *at = text;; at++) {
        size_t length = strcspn(at, ",");
        if (list.count == TG_OPTION_DOUBLES_MAX)
            return refuse(entry->option, from, text, "has too many numbers");
        TG_TRY(read_double(entry->option, from, at, length, &list.values[list.count]));
        list.count++;
        at += length;
        if (!*at)
            break;
    }
    *(tg_option_doubles *)entry->field = list;
    return TG_OK;
}

static tg_status store_choice(const tg_option_entry *entry, const tg_option_origin *from,
                              const char *text)
{
    char why[512] = "is not one of";
    for (int i = 0; entry->option->choices[i]; i++) {
        if (strcmp(entry->option->choices[i], text) == 0) {
            *(int *)entry->field = i;
            return TG_OK;
        }
        size_t used = strlen(why);
        snprintf(why + used, sizeof why - used, "%s %s", i ? "," : "", entry->option->choices[i]);
    }
    return refuse(entry->option, from, text, why);
}

static tg_status store_string(tg_options *options, const tg_option_entry *entry,
                              const tg_option_origin *from, const char *text)
{
    if (!text[0] && entry->option->flags & (TG_OPTION_FILE | TG_OPTION_FOLDER))
        return refuse(entry->option, from, text, "is the name of nothing");
    char **strings =
        realloc(options->strings, (options->string_count + 1) * sizeof *options->strings);
    if (strings)
        options->strings = strings;
    char *copy = strings ? strdup(text) : NULL;
    if (!copy)
        return tg_fail(TG_ERROR_MACHINE, "--%s: out of memory", entry->option->name);
    strings[options->string_count++] = copy;
    *(const char **)entry->field = copy;
    return TG_OK;
}

tg_status tg_option_store(tg_options *options, tg_option_entry *entry, const tg_option_origin *from,
                          const char *text)
{
    tg_status status = TG_OK;
    switch (entry->option->type) {
    case TG_OPTION_BOOL:
        status = store_bool(entry, from, text);
        break;
    case TG_OPTION_INT:
        status = store_int(entry, from, text);
        break;
    case TG_OPTION_DOUBLE:
        status = store_double(entry, from, text);
        break;
    case TG_OPTION_STRING:
        status = store_string(options, entry, from, text);
        break;
    case TG_OPTION_CHOICE:
        status = store_choice(entry, from, text);
        break;
    case TG_OPTION_DOUBLES:
        status = store_doubles(entry, from, text);
        break;
    }
    if (status == TG_OK)
        entry->source = from->source;
    return status;
}

static void clear_field(const tg_option_entry *entry)
{
    switch (entry->option->type) {
    case TG_OPTION_BOOL:
        *(bool *)entry->field = false;
        break;
    case TG_OPTION_INT:
        *(int64_t *)entry->field = 0;
        break;
    case TG_OPTION_DOUBLE:
        *(double *)entry->field = NAN;
        break;
    case TG_OPTION_STRING:
        *(const char **)entry->field = NULL;
        break;
    case TG_OPTION_CHOICE:
        *(int *)entry->field = 0;
        break;
    case TG_OPTION_DOUBLES:
        ((tg_option_doubles *)entry->field)->count = 0;
        break;
    }
}

static tg_status store_default(tg_options *options, tg_option_entry *entry)
{
    const tg_option_origin from = {.source = TG_OPTION_FROM_DEFAULT};
    clear_field(entry);
    if (!entry->option->initial)
        return TG_OK;
    tg_status status = tg_option_store(options, entry, &from, entry->option->initial);
    assert(status != TG_ERROR_USAGE); /* the table's own default */
    return status;
}

tg_status tg_options_init(tg_options *options, const tg_option_group *groups, size_t group_count)
{
    *options = (tg_options){.groups = groups, .group_count = group_count};
    size_t count = 0;
    for (size_t g = 0; g < group_count; g++)
        count += groups[g].count;
    options->entries = calloc(count ? count : 1, sizeof *options->entries);
    if (!options->entries)
        return tg_fail(TG_ERROR_MACHINE, "options: out of memory");
    for (size_t g = 0; g < group_count; g++) {
        for (size_t i = 0; i < groups[g].count; i++) {
            const tg_option *option = &groups[g].options[i];
            tg_option_entry *entry = &options->entries[options->entry_count++];
            *entry = (tg_option_entry){.option = option,
                                       .field = (char *)groups[g].target + option->offset};
            tg_status status = store_default(options, entry);
            if (status < 0) {
                tg_options_done(options);
                return status;
            }
        }
    }
    return TG_OK;
}

void tg_options_done(tg_options *options)
{
    if (!options)
        return;
    for (size_t i = 0; i < options->string_count; i++)
        free(options->strings[i]);
    free(options->strings);
    free(options->entries);
    free(options->positionals);
    *options = (tg_options){0};
}

/* Equal when '_' counts as '-'. */
static bool same_name(const char *name, const char *typed, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (name[i] == '\0' || name[i] != (typed[i] == '_' ? '-' : typed[i]))
            return false;
    return name[length] == '\0';
}

tg_option_entry *tg_option_find(const tg_options *options, const char *typed, size_t length)
{
    for (size_t i = 0; i < options->entry_count; i++)
        if (same_name(options->entries[i].option->name, typed, length))
            return &options->entries[i];
    return NULL;
}

tg_option_source tg_options_source(const tg_options *options, const char *name)
{
    const tg_option_entry *entry = tg_option_find(options, name, strlen(name));
    return entry ? entry->source : TG_OPTION_FROM_DEFAULT;
}
