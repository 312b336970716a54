#include "cli/options_data.h"

#include "os/file.h"

#include <stdlib.h>
#include <string.h>

#define AT(field) offsetof(tg_data_choice, field)
#define DATA_OPTION                                                                                \
    {                                                                                              \
        .name = "data", .type = TG_OPTION_STRING, .offset = AT(data), .metavar = "DIR",            \
        .help = "photos: a folder with a folder for each split, or with a folder for each class",  \
        .flags = TG_OPTION_FOLDER                                                                  \
    }

const tg_option tg_data_option_table[TG_DATA_OPTION_COUNT] = {
    DATA_OPTION,
    {.name = "train-split",
     .type = TG_OPTION_STRING,
     .offset = AT(train_split),
     .initial = "train",
     .metavar = "NAME",
     .help = "split to train on; several joined by +"},
    {.name = "val-split",
     .type = TG_OPTION_STRING,
     .offset = AT(val_split),
     .initial = "val",
     .metavar = "NAME|SHARE|none",
     .help = "split to validate on; the share (0.1) to hold out of a folder of classes; or none"},
};

const tg_option tg_scored_option_table[TG_SCORED_OPTION_COUNT] = {
    DATA_OPTION,
    {.name = "val-split",
     .type = TG_OPTION_STRING,
     .offset = AT(val_split),
     .initial = "val",
     .metavar = "NAME|SHARE",
     .help = "split to score, several joined by +; or the share (0.1) held out of a folder of "
             "classes"},
};

/* The first name of "a+b" that is not a folder below the data, cut off; false when all are. */
static bool missing_split(const tg_data_choice *choice, const char *names, char out[256])
{
    for (const char *at = names; *at; at += strspn(at, "+")) {
        size_t n = strcspn(at, "+");
        n = n < 255 ? n : 255;
        memcpy(out, at, n);
        out[n] = '\0';
        at += strcspn(at, "+");
        char *path = tg_path_join(choice->data, out);
        bool found = path && tg_file_exists(path);
        free(path);
        if (!found)
            return true;
    }
    return false;
}

bool tg_data_choice_has_val(const tg_data_choice *choice)
{
    char name[256];
    const char *split = choice->val_split;
    if (!split || !*split || strcmp(split, "none") == 0)
        return false;
    return strcmp(split, "val") != 0 || !missing_split(choice, split, name);
}

tg_status tg_data_choice_refuse_val(const tg_data_choice *choice)
{
    double share;
    const char *split = choice->val_split;
    TG_TRY(tg_data_choice_share(choice, &share));
    if (share > 0 || !split || !*split || strcmp(split, "none") == 0 || strcmp(split, "val") == 0)
        return TG_OK;
    return tg_fail(TG_ERROR_USAGE,
                   "--val-split %s: only a share (0.1), held out of a folder of classes, makes a "
                   "difference to what is read here; --train-split names the split",
                   split);
}

tg_status tg_data_choice_open(const tg_data_choice *choice, tg_data_part part, uint64_t seed,
                              const char *const *class_names, size_t class_count, tg_dataset *out)
{
    char name[256];
    double share;
    const char *split = part == TG_DATA_TRAIN ? choice->train_split : choice->val_split;
    if (!choice->data)
        return tg_fail(TG_ERROR_USAGE, "no photos given: --data DIR");
    TG_TRY(tg_data_choice_share(choice, &share));
    if (!tg_file_exists(choice->data))
        return tg_fail(TG_ERROR_INPUT, "--data %s: there is no such folder", choice->data);
    if (share == 0 && missing_split(choice, split, name))
        return tg_fail(TG_ERROR_INPUT,
                       "--data %s: it has no folder \"%s\"; name the splits (--train-split, "
                       "--val-split), or give --val-split 0.1 if it holds the classes themselves",
                       choice->data, name);
    const tg_dataset_options dataset = {.root = choice->data,
                                        .split = share > 0 ? NULL : split,
                                        .val_share = share,
                                        .part = part == TG_DATA_VAL,
                                        .seed = seed,
                                        .class_names = class_names,
                                        .class_count = class_count};
    return tg_dataset_open(&dataset, out);
}

tg_status tg_data_choice_open_both(const tg_data_choice *choice, uint64_t seed,
                                   tg_dataset *out_train, tg_dataset *out_val)
{
    TG_TRY(tg_data_choice_open(choice, TG_DATA_TRAIN, seed, NULL, 0, out_train));
    if (!tg_data_choice_has_val(choice))
        return TG_OK;
    return tg_data_choice_open(choice, TG_DATA_VAL, seed,
                               (const char *const *)out_train->class_names, out_train->class_count,
                               out_val);
}
