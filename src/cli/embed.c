/* tagine embed: the features that a model sees in photos, written to one file. */
#include "base/json_writer.h"
#include "base/log.h"
#include "base/number.h"
#include "ckpt/model_path.h"
#include "ckpt/safetensors.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/options_infer.h"
#include "data/dataset.h"
#include "os/clock.h"
#include "os/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

typedef struct embed_settings {
    tg_infer_choice infer;
    const char *output;
    bool strict;
} embed_settings;

#define AT(field) offsetof(embed_settings, field)
static const tg_option OPTIONS[] = {
    {.name = "output",
     .letter = 'o',
     .type = TG_OPTION_STRING,
     .offset = AT(output),
     .metavar = "FILE",
     .help = "file to write: NAME.safetensors or NAME.csv",
     .flags = TG_OPTION_FILE},
    {.name = "strict",
     .type = TG_OPTION_BOOL,
     .offset = AT(strict),
     .help = "a photo that cannot be read is an error and nothing is written"},
};

static const tg_command_group GROUPS[] = {
    {"Model", tg_infer_option_table, TG_INFER_OPTION_COUNT, AT(infer)},
    {"Features", OPTIONS, TG_COUNT_OF(OPTIONS), 0},
};

typedef struct embedding {
    const embed_settings *settings;
    tg_dataset *folders; /* one for each argument; empty for a file */
    size_t folder_count;
    const char **paths; /* of all photos; borrowed */
    size_t path_count;
    const char **kept; /* those with features, in order */
    float *features;   /* [kept_count,C] */
    size_t kept_count, C;
    char reason[512]; /* why the first photo without features has none */
    int64_t start_ns;
} embedding;

static bool is_folder(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static bool is_csv(const char *path)
{
    size_t n = strlen(path);
    return n > 4 && strcmp(path + n - 4, ".csv") == 0;
}

/* The folder of a file's path. */
static bool has_parent(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *parent = slash && slash > path ? strndup(path, (size_t)(slash - path)) : NULL;
    bool found = !parent || is_folder(parent);
    free(parent);
    return found;
}

/* Asked before any photo is read, so that no work is lost. */
static tg_status check_output(const char *path)
{
    static const char ending[] = ".safetensors";
    size_t n = path ? strlen(path) : 0, e = sizeof ending - 1;
    if (!path || (!is_csv(path) && !(n > e && strcmp(path + n - e, ending) == 0)))
        return tg_fail(TG_ERROR_USAGE,
                       "--output %s: a name that ends in .safetensors or .csv is needed",
                       path ? path : "is missing");
    if (is_folder(path))
        return tg_fail(TG_ERROR_USAGE, "--output %s: there is a folder of that name", path);
    if (!has_parent(path))
        return tg_fail(TG_ERROR_USAGE, "--output %s: there is no such folder to write it to", path);
    return TG_OK;
}

static bool is_same_file(const char *path, const struct stat *file)
{
    struct stat st;
    return path && stat(path, &st) == 0 && st.st_dev == file->st_dev && st.st_ino == file->st_ino;
}

/* What is read must not be written over, whatever name it goes by. */
static tg_status check_overwrite(const embedding *e)
{
    struct stat file;
    tg_model_path model;
    const char *output = e->settings->output, *victim = NULL;
    if (stat(output, &file) < 0)
        return TG_OK;
    TG_TRY(tg_model_path_find(e->settings->infer.model, &model));
    char *config = tg_path_join(model.folder, "config.json");
    if (is_same_file(model.weights, &file) || is_same_file(config, &file))
        victim = "the model";
    for (size_t i = 0; i < e->path_count && !victim; i++)
        if (is_same_file(e->paths[i], &file))
            victim = "a photo";
    free(config);
    tg_model_path_done(&model);
    return victim
               ? tg_fail(TG_ERROR_USAGE,
                         "--output %s: that is %s to be read, and would be lost; give another name",
                         output, victim)
               : TG_OK;
}

static tg_status open_folders(const tg_invocation *invocation, embedding *e)
{
    e->folders = calloc(invocation->argument_count, sizeof *e->folders);
    if (!e->folders)
        return tg_fail(TG_ERROR_MACHINE, "out of memory");
    e->folder_count = invocation->argument_count;
    for (size_t i = 0; i < e->folder_count; i++) {
        const tg_dataset_options options = {.root = invocation->arguments[i], .unlabelled = 1};
        if (is_folder(options.root))
            TG_TRY(tg_dataset_open(&options, &e->folders[i]));
        e->path_count += e->folders[i].count ? e->folders[i].count : 1;
    }
    return TG_OK;
}

/* The photos of folders in their order, and files as given, in the order of the arguments. */
static tg_status collect_paths(const tg_invocation *invocation, embedding *e)
{
    TG_TRY(open_folders(invocation, e));
    e->paths = calloc(e->path_count, sizeof *e->paths);
    e->kept = calloc(e->path_count, sizeof *e->kept);
    e->features = calloc(e->path_count, e->C * sizeof *e->features);
    if (!e->paths || !e->kept || !e->features)
        return tg_fail(TG_ERROR_MACHINE, "out of memory for the features of %zu photos",
                       e->path_count);
    size_t n = 0;
    for (size_t i = 0; i < e->folder_count; i++) {
        const tg_dataset *folder = &e->folders[i];
        for (size_t s = 0; s < folder->count; s++)
            e->paths[n++] = folder->samples[s].path;
        if (folder->count == 0)
            e->paths[n++] = invocation->arguments[i];
    }
    return TG_OK;
}

static tg_status receive(void *user, const tg_engine_answer *answer)
{
    embedding *e = user;
    if (answer->error && e->settings->strict)
        return tg_fail(TG_ERROR_INPUT, "%s", answer->error);
    if (answer->error) {
        tg_log_warning("left out: %s", answer->error);
        if (!e->reason[0])
            snprintf(e->reason, sizeof e->reason, "%s", answer->error);
    } else {
        memcpy(e->features + e->kept_count * e->C, answer->feature, e->C * sizeof(float));
        e->kept[e->kept_count++] = e->paths[answer->index];
    }
    size_t done = answer->index + 1;
    char note[64];
    tg_number_print(note, sizeof note, "%.1f images/s",
                    (double)done / tg_clock_seconds(tg_clock_ns() - e->start_ns));
    tg_console_progress("embed", done, e->path_count, note);
    return tg_infer_check_stop();
}

/* A CSV field in quotes, those inside doubled. */
static void append_field(const char *field, tg_text *out)
{
    tg_text_append_char(out, '"');
    for (; *field; field++) {
        if (*field == '"')
            tg_text_append_char(out, '"');
        tg_text_append_char(out, *field);
    }
    tg_text_append_char(out, '"');
}

static tg_status write_csv(const embedding *e)
{
    tg_text text = {0};
    char number[TG_NUMBER_BYTES];
    tg_text_append_string(&text, "file");
    for (size_t c = 0; c < e->C; c++)
        tg_text_append_format(&text, ",feature_%zu", c);
    tg_text_append_char(&text, '\n');
    for (size_t i = 0; i < e->kept_count; i++) {
        append_field(e->kept[i], &text);
        for (size_t c = 0; c < e->C; c++) {
            size_t n = tg_number_format_float(e->features[i * e->C + c], number);
            tg_text_append_char(&text, ',');
            tg_text_append(&text, number, n);
        }
        tg_text_append_char(&text, '\n');
    }
    tg_status status = tg_text_check(&text, "the features");
    if (status == TG_OK)
        status = tg_file_write(e->settings->output, text.data, text.length);
    tg_text_done(&text);
    return status;
}

/* The file names go into the notes as a JSON array, in the order of the rows. */
static tg_status write_safetensors(const embedding *e)
{
    tg_text files = {0};
    tg_json_writer w = tg_json_writer_init(&files);
    tg_json_begin_array(&w, NULL);
    for (size_t i = 0; i < e->kept_count; i++)
        tg_json_put_string(&w, NULL, e->kept[i]);
    tg_json_end_array(&w);
    const tg_safetensors_note notes[] = {{"format", "pt"}, {"files", tg_text_string(&files)}};
    const tg_safetensors_tensor tensor = {.name = "features",
                                          .dtype = TG_F32,
                                          .ndim = 2,
                                          .shape = {e->kept_count, e->C},
                                          .data = e->features};
    tg_status status = tg_text_check(&files, "the file names");
    if (status == TG_OK)
        status = tg_safetensors_write(e->settings->output, &tensor, 1, notes, 2);
    tg_text_done(&files);
    return status;
}

static tg_status write_features(const embedding *e, bool json)
{
    size_t left_out = e->path_count - e->kept_count;
    tg_text text = {0};
    if (e->kept_count == 0)
        return tg_fail(TG_ERROR_INPUT, "none of %zu photos has features: %s", e->path_count,
                       e->reason);
    TG_TRY(is_csv(e->settings->output) ? write_csv(e) : write_safetensors(e));
    if (json) {
        tg_json_writer w = tg_json_writer_init(&text);
        tg_json_begin_object(&w, NULL);
        tg_json_put_string(&w, "output", e->settings->output);
        tg_json_put_uint(&w, "images", e->kept_count);
        tg_json_put_uint(&w, "skipped", left_out);
        tg_json_put_uint(&w, "features", e->C);
        tg_json_end_object(&w);
        tg_text_append_char(&text, '\n');
    } else {
        tg_text_append_format(&text, "%s: %zu photos, %zu values each", e->settings->output,
                              e->kept_count, e->C);
        if (left_out)
            tg_text_append_format(&text, ", %zu left out", left_out);
        tg_text_append_char(&text, '\n');
    }
    tg_status status = tg_console_print(&text);
    tg_text_done(&text);
    return status;
}

static tg_status run(const tg_invocation *invocation)
{
    embedding e = {.settings = invocation->settings};
    tg_engine *engine = NULL;
    tg_status status;
    TG_TRY_GOTO(check_output(e.settings->output), close_all);
    TG_TRY_GOTO(tg_infer_choice_open(&e.settings->infer, invocation, &engine), close_all);
    e.C = tg_engine_info(engine)->config.embed_dim;
    TG_TRY_GOTO(collect_paths(invocation, &e), close_all);
    TG_TRY_GOTO(check_overwrite(&e), close_all);
    e.start_ns = tg_clock_ns();
    TG_TRY_GOTO(tg_engine_run_files(engine, e.paths, e.path_count, receive, &e), close_all);
    tg_console_progress_end();
    status = write_features(&e, invocation->common->json);

close_all:
    tg_engine_close(engine);
    for (size_t i = 0; i < e.folder_count; i++)
        tg_dataset_done(&e.folders[i]);
    free(e.folders);
    free(e.paths);
    free(e.kept);
    free(e.features);
    return status;
}

static const tg_command_note EXAMPLES[] = {
    {"tagine embed --model runs/student --output features.csv photos/val",
     "A line of features for each photo of a folder"},
    {0},
};

const tg_command tg_command_embed = {
    .name = "embed",
    .arguments = "DIR|FILE...",
    .summary = "Write the features that a model sees in photos",
    .description = "The pooled features behind the final norm, what the classifier reads. A "
                   ".safetensors file has\none tensor \"features\" [photos, width], float32, and "
                   "the file names as a JSON array in its\nmetadata under \"files\"; a .csv file "
                   "has a line for each photo. Folders are searched for photos\nat any depth. A "
                   "photo that cannot be read is named and left out.",
    .examples = EXAMPLES,
    .see_also = "predict",
    .groups = GROUPS,
    .group_count = TG_COUNT_OF(GROUPS),
    .settings_bytes = sizeof(embed_settings),
    .arguments_min = 1,
    .arguments_max = (size_t)-1,
    .run = run,
};
