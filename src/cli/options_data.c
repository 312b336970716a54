#include "cli/options_data.h"

#include "os/file.h"

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
     .help = "split to validate on; the share (0.1) to hold out of the training split; or none"},
};

const tg_option tg_scored_option_table[TG_SCORED_OPTION_COUNT] = {
    DATA_OPTION,
    {.name = "val-split",
     .type = TG_OPTION_STRING,
     .offset = AT(val_split),
     .initial = "val",
     .metavar = "NAME|SHARE",
     .help = "split to score, several joined by +; or the share (0.1) held out of DIR/train, or of "
             "DIR where it has none"},
};

bool tg_data_choice_has_val(const tg_data_choice *choice)
{
    char name[TG_SPLIT_NAME_BYTES];
    const char *split = choice->val_split;
    if (!split || !*split || strcmp(split, "none") == 0)
        return false;
    return strcmp(split, "val") != 0 || !tg_data_choice_lacks(choice, split, name);
}

tg_status tg_data_choice_refuse_val(const tg_data_choice *choice)
{
    double share;
    const char *split = choice->val_split;
    TG_TRY(tg_data_choice_share(choice, &share));
    if (share > 0 || !split || !*split || strcmp(split, "none") == 0 || strcmp(split, "val") == 0)
        return TG_OK;
    return tg_fail(TG_ERROR_USAGE,
                   "--val-split %s: only a share (0.1), held out of the training split, makes a "
                   "difference to what is read here; --train-split names the split",
                   split);
}

/* Whether the folder that --data names is itself called `name`: a split where its parent is wanted. */
static bool is_called(const char *path, const char *name)
{
    size_t length = strlen(path), n = strlen(name);
    while (length > 1 && path[length - 1] == '/')
        length--;
    return length > n && memcmp(path + length - n, name, n) == 0 && path[length - n - 1] == '/';
}

/* Of a validation split that was named, or without which there is nothing to do. */
static tg_status check_val_split(const tg_data_choice *choice)
{
    char name[TG_SPLIT_NAME_BYTES];
    if (!tg_file_exists(choice->data))
        return tg_fail(TG_ERROR_INPUT, "--data %s: there is no such folder", choice->data);
    if (!tg_data_choice_lacks(choice, choice->val_split, name))
        return TG_OK;
    if (is_called(choice->data, name))
        return tg_fail(TG_ERROR_INPUT,
                       "--data %s: it has no folder \"%s\", it is one; give the folder above it",
                       choice->data, name);
    return tg_fail(TG_ERROR_INPUT,
                   "--data %s: it has no folder \"%s\"; --val-split names the folder, or the share "
                   "(0.1) to hold out of a folder of classes",
                   choice->data, name);
}

tg_status tg_data_choice_open(const tg_data_choice *choice, tg_data_part part, uint64_t seed,
                              const char *const *class_names, size_t class_count, tg_dataset *out)
{
    double share;
    const char *split = choice->val_split;
    if (!choice->data)
        return tg_fail(TG_ERROR_USAGE, "no photos given: --data DIR");
    TG_TRY(tg_data_choice_share(choice, &share));
    if (part == TG_DATA_TRAIN || share > 0)
        TG_TRY(tg_data_choice_train_split(choice, &split));
    else
        TG_TRY(check_val_split(choice));
    const tg_dataset_options dataset = {.root = choice->data,
                                        .split = split,
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
