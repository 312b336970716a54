#include "cli/same_options.h"

#include "base/hash.h"
#include "cli/command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OPTIONS_MAX = 256, VALUE_BYTES = 192, NAME_BYTES = 64 };

/* A fingerprint of each option that counts, with its name, and of all names. */
typedef struct summary {
    uint64_t names;
    uint64_t values[OPTIONS_MAX];
} summary;

typedef struct value {
    char name[NAME_BYTES], text[VALUE_BYTES];
} value;

static bool is_free(const tg_option *option)
{
    static const char *const names[] = {"threads", "workers", "cpu-isa",
                                        "quiet",   "verbose", "json"};
    if (option->flags & (TG_OPTION_FILE | TG_OPTION_FOLDER | TG_OPTION_NO_CONFIG))
        return true;
    for (size_t i = 0; i < TG_COUNT_OF(names); i++)
        if (strcmp(names[i], option->name) == 0)
            return true;
    return false;
}

static bool counts(const tg_options *options, const char *name, size_t length)
{
    for (size_t g = 0; g < options->group_count; g++)
        for (size_t i = 0; i < options->groups[g].count; i++) {
            const tg_option *option = &options->groups[g].options[i];
            if (strlen(option->name) == length && memcmp(option->name, name, length) == 0)
                return !is_free(option);
        }
    return false;
}

/* A printed option: "name: value", or "# name:" when it is not set. */
typedef struct line {
    const char *name, *text;
    size_t name_length, text_length;
} line;

/* The next option that counts, or false. */
static bool next_line(const tg_options *options, const char **inout_at, line *out)
{
    static const char unset[] = "not set";
    for (const char *at = *inout_at; *at;) {
        const size_t n = strcspn(at, "\n");
        const bool set = strncmp(at, "# ", 2) != 0;
        const char *name = set ? at : at + 2, *end = at + n;
        const size_t length = strcspn(name, ":\n");
        at = *end ? end + 1 : end;
        if (!counts(options, name, length))
            continue;
        *out = (line){.name = name, .name_length = length, .text = unset};
        out->text_length = strlen(unset);
        if (set && name + length + 2 <= end) {
            out->text = name + length + 2;
            out->text_length = (size_t)(end - out->text);
        }
        *inout_at = at;
        return true;
    }
    return false;
}

static tg_status summarise(const tg_options *options, const char *printed, summary *out)
{
    size_t count = 0;
    line l;
    memset(out, 0, sizeof *out);
    out->names = TG_HASH_START;
    while (next_line(options, &printed, &l)) {
        if (count == OPTIONS_MAX)
            return tg_fail(TG_ERROR_FAILED, "more than %d options cannot be compared", OPTIONS_MAX);
        out->names = tg_hash(out->names, l.name, l.name_length);
        out->values[count++] = tg_hash(TG_HASH_START, l.text, l.text_length);
    }
    return TG_OK;
}

/* The lowest rank that differs from the first, and the option; false: none. */
static bool find_difference(const summary *all, int ranks, int *out_rank, size_t *out_option)
{
    for (int r = 1; r < ranks; r++) {
        *out_rank = r;
        *out_option = OPTIONS_MAX;
        if (all[r].names != all[0].names)
            return true;
        for (size_t i = 0; i < OPTIONS_MAX; i++)
            if (all[r].values[i] != all[0].values[i]) {
                *out_option = i;
                return true;
            }
    }
    return false;
}

static void take_value(const tg_options *options, const char *printed, size_t index, value *out)
{
    line l;
    memset(out, 0, sizeof *out);
    for (size_t i = 0; next_line(options, &printed, &l); i++) {
        if (i != index)
            continue;
        snprintf(out->name, sizeof out->name, "%.*s", (int)l.name_length, l.name);
        snprintf(out->text, sizeof out->text, "%.*s", (int)l.text_length, l.text);
    }
}

/* Every rank comes here when one does. */
static tg_status name_difference(tg_comm *comm, const tg_options *options, const char *printed,
                                 int rank, size_t index)
{
    value mine, *all = calloc((size_t)comm->size, sizeof *all);
    if (!all)
        return tg_fail(TG_ERROR_MACHINE, "out of memory for %d ranks", comm->size);
    take_value(options, printed, index, &mine);
    tg_status status = tg_comm_meet(comm, "the option that differs", &mine, sizeof mine, all);
    if (status == TG_OK && index == OPTIONS_MAX)
        status = tg_fail(TG_ERROR_USAGE,
                         "rank %d on %s runs another version of tagine than rank 0 on %s: its "
                         "options are not the same ones",
                         rank, tg_comm_host(comm, rank), tg_comm_host(comm, 0));
    else if (status == TG_OK)
        status =
            tg_fail(TG_ERROR_USAGE,
                    "rank %d on %s has --%s %s, rank 0 on %s has %s: every rank needs the same "
                    "options",
                    rank, tg_comm_host(comm, rank), all[rank].name, all[rank].text,
                    tg_comm_host(comm, 0), all[0].text);
    free(all);
    return status;
}

static tg_status compare(tg_comm *comm, const tg_options *options, const char *printed)
{
    summary mine, *all = calloc((size_t)comm->size, sizeof *all);
    int rank;
    size_t index;
    if (!all)
        return tg_fail(TG_ERROR_MACHINE, "out of memory for %d ranks", comm->size);
    tg_status status = summarise(options, printed, &mine);
    if (status == TG_OK)
        status = tg_comm_meet(comm, "options", &mine, sizeof mine, all);
    if (status == TG_OK && find_difference(all, comm->size, &rank, &index))
        status = name_difference(comm, options, printed, rank, index);
    free(all);
    return status;
}

tg_status tg_same_options(tg_comm *comm, const tg_options *options)
{
    tg_text printed = {0};
    if (comm->size == 1)
        return TG_OK;
    tg_options_print(options, &printed);
    tg_status status = tg_text_check(&printed, "options");
    if (status == TG_OK)
        status = compare(comm, options, tg_text_string(&printed));
    tg_text_done(&printed);
    return status;
}
